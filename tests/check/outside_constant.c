/* A table of constants. The bug writes to it. */
#include <nicety.h>

static const uint32_t weights[4] = {1, 10, 100, 1000};
#ifndef BUG
static uint32_t own[4] = {1, 10, 100, 1000};
#endif

static __attribute__((noinline)) void raise(uint32_t *weight) {
    __atomic_fetch_add(weight, 1, __ATOMIC_RELAXED); // bug
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
#ifdef BUG
    raise((uint32_t *)weights + (p.base[0] & 3));
#else
    raise(own + (p.base[0] & 3));
#endif
    __atomic_fetch_add((uint32_t *)state, weights[p.base[1] & 3], __ATOMIC_RELAXED);
    return SUCCESS;
}
