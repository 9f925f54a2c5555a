/* Joins bytes to a word. The bug writes two of its four bytes. */
#include <nicety.h>

static __attribute__((noinline)) void put(uint8_t *to, const uint8_t *from, int bytes) {
    for (int i = 0; i < bytes; i++)
        to[i] = from[i];
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint32_t word;
#ifdef BUG
    put((uint8_t *)&word, p.base, 2);
#else
    put((uint8_t *)&word, p.base, 4);
#endif
    if (word > 0x80000000u) // bug
        __atomic_fetch_add((uint32_t *)state, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}
