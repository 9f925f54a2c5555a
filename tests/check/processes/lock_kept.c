/* A lock around a sum. The bug returns early with it. */
#include <nfp.h>
#include "locks.h"

__process void add(uint32_t value) {
    volatile uint32_t *total = nfp_emem(128);
    for (uint32_t i = 0; i < 4; i++) {
        take(nfp_emem(0)); // bug
#ifdef BUG
        if (i == 3 && value == 5) return;
#endif
        *total = *total + value;
        give(nfp_emem(0));
    }
}
