/* Reads a byte of the payload. The bug does not ask for the length. */
#include <frame.h>

__handler int frame_handler(const frame_t *frame, void *state) {
#ifndef BUG
    if (frame->length < 80)
        return FRAME_DROP;
#endif
    uint32_t value = frame->data[79]; // bug
    __atomic_fetch_add((uint32_t *)state, value, __ATOMIC_RELAXED);
    return FRAME_DROP;
}
