/* An index from a search. The bug uses it where the search has failed. */
#include <nicety.h>

static __attribute__((noinline)) bool search(const uint8_t *bytes, ptl_size_t length, uint32_t *found) {
    for (ptl_size_t i = 0; i < length; i++)
        if (bytes[i] == 0x77) {
            *found = i & 63;
            return true;
        }
    return false;
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint32_t *counts = state, found;
    bool ok = search(p.base, 8, &found);
#ifndef BUG
    if (!ok)
        return SUCCESS;
#endif
    (void)ok;
    __atomic_fetch_add(&counts[found & 63], 1, __ATOMIC_RELAXED); // bug
    return SUCCESS;
}
