/* Drops some packets. The bug returns a code of header handlers. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    __atomic_fetch_add((uint32_t *)state, p.length, __ATOMIC_RELAXED);
#ifdef BUG
    return PROCEED; // bug
#else
    return DROP;
#endif
}
