/* A table in the state with 64 entries. The bug indexes it by a whole byte of the packet. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint32_t *table = state;
#ifdef BUG
    uint32_t at = p.base[1] | 64;
#else
    uint32_t at = p.base[1] & 63;
#endif
    __atomic_fetch_add(&table[at], 1, __ATOMIC_RELAXED); // bug
    return SUCCESS;
}
