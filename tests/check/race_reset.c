/* A counter that begins anew behind ten frames. The bug sets it by a plain store. */
#include <frame.h>

__handler int frame_handler(const frame_t *frame, void *state) {
    uint32_t *count = state;
    if (__atomic_add_fetch(count, 1, __ATOMIC_RELAXED) > 10) // bug
#ifdef BUG
        *(volatile uint32_t *)count = 0; // bug
#else
        __atomic_exchange_n(count, 0, __ATOMIC_RELAXED);
#endif
    return FRAME_DROP;
}
