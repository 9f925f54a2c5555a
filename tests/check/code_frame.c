/* Chooses a receive channel. The bug chooses one that the host does not have. */
#include <frame.h>

__handler int frame_handler(const frame_t *frame, void *state) {
    (void)state;
#ifdef BUG
    return FRAME_QUEUE(200 + (frame->data[30] & 1)); // bug
#else
    return FRAME_QUEUE(frame->data[30] & 1);
#endif
}
