/* Microengines of an island keep words in its scratch. With the bug, all use the first one. */
#include <nfp.h>

__process uint32_t note(uint32_t value) {
#ifdef BUG
    volatile uint32_t *word = nfp_cls(0);
#else
    volatile uint32_t *word = nfp_cls(4 * nfp_microengine());
#endif
    for (uint32_t i = 0; i < 8; i++) {
        *word = value + i; // bug
        value += *word; // bug
    }
    return value;
}
