/* Chooses one of some receive channels. The bug takes their number from the frame. */
#include <frame.h>

__handler int frame_handler(const frame_t *frame, void *state) {
    (void)state;
    uint32_t channels = frame->data[50] & 1;
#ifndef BUG
    channels += 1;
#endif
    return FRAME_QUEUE(frame->data[30] % channels); // bug
}
