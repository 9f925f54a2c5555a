/* The header handler reads a header of its own format. The bug reads behind the first packet. */
#include <nicety.h>

__handler int header_handler(const ptl_header_t h, void *state) {
    const uint8_t *bytes = h.base;
#ifdef BUG
    uint32_t at = h.packet_length + (bytes[0] & 7);
#else
    uint32_t at = bytes[0] & 7;
#endif
    uint32_t value = bytes[at]; // bug
    __atomic_fetch_add((uint32_t *)state, value, __ATOMIC_RELAXED);
    return PROCEED;
}
