/* A lock around a sum. The bug releases it twice. */
#include <nfp.h>
#include "locks.h"

__process void add(uint32_t value) {
    volatile uint32_t *total = nfp_emem(128);
    for (uint32_t i = 0; i < 4; i++) {
        take(nfp_emem(0));
        *total = *total + value;
        give(nfp_emem(0));
#ifdef BUG
        if (i == 3) give(nfp_emem(0)); // bug
#endif
    }
}
