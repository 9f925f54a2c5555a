// Drops every frame that its rule selects.
#include <frame.h>

__handler int frame_handler(const frame_t *frame, void *state) {
    (void)frame, (void)state;
    return FRAME_DROP;
}
