/* A lock around a sum. The bug takes it again in a function. */
#include <nfp.h>
#include "locks.h"

__attribute__((noinline)) static void more(volatile uint32_t *total, uint32_t value) {
#ifdef BUG
    for (uint32_t i = 0; i < 8; i++)
        if (!nfp_swap(nfp_emem(0), 1)) break; // bug
#endif
    *total = *total + value;
}

__process void add(uint32_t value) {
    volatile uint32_t *total = nfp_emem(128);
    for (uint32_t i = 0; i < 4; i++) {
        take(nfp_emem(0));
        more(total, value);
        give(nfp_emem(0));
    }
}
