/* The low half of a word has a value, and only that half is tested. The bug tests the word. */
#include <nicety.h>

static __attribute__((noinline)) void put(uint16_t *to, uint16_t value) { *to = value; }

__handler int payload_handler(const ptl_payload_t p, void *state) {
    union {
        uint16_t halves[2];
        uint32_t word;
    } value;
    put(value.halves, p.base[0]);
#ifdef BUG
    uint32_t tested = value.word;
#else
    uint32_t tested = value.word & 0xffff;
#endif
    if (tested > 100) // bug
        __atomic_fetch_add((uint32_t *)state, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}
