/* Contexts of a microengine append words to a ring in memory. The bug advances the index after the write. */
#include <nfp.h>

static volatile uint32_t next;

__process void put(uint32_t value) {
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t at = next;
#ifdef BUG
        nfp_write((volatile uint8_t *)nfp_ctm(0) + 4 * at, &value, 4);
        next = at + 1; // bug
#else
        next = at + 1;
        nfp_write((volatile uint8_t *)nfp_ctm(0) + 4 * at, &value, 4);
#endif
        value += 2;
    }
}
