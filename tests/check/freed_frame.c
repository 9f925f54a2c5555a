/* Compares a frame's byte with that of the preceding frame. The bug keeps the address of the frame. */
#include <frame.h>
#include "locks.h"

typedef struct {
    uint32_t lock, equal, byte;
    uint8_t *data;
} kept_t;

__handler int frame_handler(const frame_t *frame, void *state) {
    kept_t *kept = state;
    take(&kept->lock);
#ifdef BUG
    if (kept->data && kept->data[30] == frame->data[30]) // bug
        kept->equal++;
    kept->data = frame->data;
#else
    if (kept->byte == frame->data[30])
        kept->equal++;
    kept->byte = frame->data[30];
#endif
    give(&kept->lock);
    return FRAME_DROP;
}
