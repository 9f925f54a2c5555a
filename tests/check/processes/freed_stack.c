/* A process shows another context of its microengine where a word is. In the bug, the word is on its stack. */
#include <nfp.h>

static volatile uint32_t kept;
static volatile uint32_t *volatile shown;

__process void lend(void) {
#ifdef BUG
    volatile uint32_t word = 5;
    shown = &word;
#else
    kept = 5;
    shown = &kept;
#endif
    nfp_signal(0, 1, 1);
    nfp_wait_all(1 << 2);
}

__process uint32_t use(void) {
    nfp_wait_all(1 << 1);
    uint32_t value = *shown; // bug
    nfp_signal(0, 0, 2);
    return value;
}
