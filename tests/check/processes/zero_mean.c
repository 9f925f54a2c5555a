/* The mean of no values. */
#include <nfp.h>

__process uint32_t mean(void) {
    volatile uint32_t *words = nfp_ctm(0);
    uint32_t sum = words[0], count = words[1];
#ifndef BUG
    if (count == 0) return 0;
#endif
    return sum / count; // bug
}
