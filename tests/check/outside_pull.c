/* Removes a tag of 4 bytes. The bug writes by a pointer to the old beginning. */
#include <frame.h>

__handler int frame_handler(const frame_t *frame, void *state) {
    (void)state;
    uint8_t *data = frame->data;
#ifdef BUG
    frame_pull(frame, 4);
#else
    data = frame_pull(frame, 4);
#endif
    data[0] = 2; // bug
    return FRAME_DROP;
}
