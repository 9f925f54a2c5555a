/* Remembers a packet for the completion handler. The bug keeps its address, the twin its byte. */
#include <nicety.h>

typedef struct {
    uint8_t *at;
    uint32_t byte, total;
} kept_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    kept_t *kept = state;
    if (p.offset == 0) {
        kept->at = p.base;
        kept->byte = p.base[0];
    }
    return SUCCESS;
}

__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    kept_t *kept = state;
    (void)dropped_bytes, (void)flow_control_triggered;
#ifdef BUG
    uint32_t byte = kept->at[0]; // bug
#else
    uint32_t byte = kept->byte;
#endif
    __atomic_fetch_add(&kept->total, byte, __ATOMIC_RELAXED);
    return SUCCESS;
}
