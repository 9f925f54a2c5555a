/* Sums the words of a packet. The bug reads the last word of a packet with a length that is no multiple of 4. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    const uint32_t *words = (const uint32_t *)p.base;
    uint32_t sum = 0;
#ifdef BUG
    ptl_size_t count = (p.length + 3) / 4;
#else
    ptl_size_t count = p.length / 4;
#endif
    for (ptl_size_t i = 0; i < count; i++)
        sum += words[i]; // bug
    __atomic_fetch_add((uint32_t *)state, sum, __ATOMIC_RELAXED);
    return SUCCESS;
}
