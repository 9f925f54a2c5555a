/* The header handler writes, payload handlers read, the completion handler writes: sPIN orders them. The bug lets a payload
 * handler write. */
#include <nicety.h>

typedef struct {
    uint32_t length, result, seen;
} message_t;

__handler int header_handler(const ptl_header_t h, void *state) {
    message_t *message = state;
    message->length = h.length;
    message->seen = 0;
    return PROCESS_DATA;
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    message_t *message = state;
    if (p.length > message->length) // bug
        return FAIL;
#ifdef BUG
    if (p.offset)
        message->length -= p.length & 1; // bug
#endif
    return SUCCESS;
}

__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    message_t *message = state;
    (void)dropped_bytes, (void)flow_control_triggered;
    message->result = message->length;
    return SUCCESS;
}
