/* Sums a stack array. The bug fills only a part of it. */
#include <nicety.h>

static __attribute__((noinline)) void fill(uint32_t *sums, const uint8_t *bytes, int count) {
    for (int i = 0; i < count; i++)
        sums[i] = bytes[i];
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint32_t sums[8], total = 0;
#ifdef BUG
    fill(sums, p.base, 6);
#else
    fill(sums, p.base, 8);
#endif
    for (int i = 0; i < 8; i++)
        total += sums[i];
    if (total & 1) // bug
        __atomic_fetch_add((uint32_t *)state, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}
