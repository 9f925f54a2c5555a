/* Marks packets in bytes. The bug has one byte for two packets. Bytes of one word are no race. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint8_t *marks = state;
    uint32_t number = p.offset / 64;
#ifdef BUG
    marks[number / 2] = 1 + (number & 1); // bug
#else
    marks[number] = 1;
#endif
    return SUCCESS;
}

__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    uint8_t *marks = state;
    (void)dropped_bytes, (void)flow_control_triggered;
    return marks[0] ? SUCCESS : FAIL;
}
