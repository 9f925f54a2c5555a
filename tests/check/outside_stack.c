/* A recursion with an array in each frame. The bug ends it too late for the stack. */
#include <nicety.h>

static __attribute__((noinline)) uint32_t depth(const uint8_t *bytes, uint32_t level) { // bug
    volatile uint32_t kept[64];
    kept[level & 63] = bytes[level & 31];
    return level ? depth(bytes, level - 1) + kept[level & 63] : kept[0];
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
#ifdef BUG
    uint32_t levels = 1000;
#else
    uint32_t levels = 3;
#endif
    __atomic_fetch_add((uint32_t *)state, depth(p.base, levels), __ATOMIC_RELAXED);
    return SUCCESS;
}
