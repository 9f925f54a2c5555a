/* A table among the variables of the program. The bug leaves the program's data by a pointer. */
#include <nicety.h>

static uint32_t table[16];

static __attribute__((noinline)) void add(uint32_t *to, uint32_t at, uint32_t value) {
    __atomic_fetch_add(to + at, value, __ATOMIC_RELAXED); // bug
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    (void)state;
#ifdef BUG
    add(table, 1024 + p.base[0], p.length);
#else
    add(table, p.base[0] & 15, p.length);
#endif
    return SUCCESS;
}
