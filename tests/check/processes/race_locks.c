/* Two processes add under locks. With the bug, each has a lock of its own. */
#include <nfp.h>
#include "locks.h"

static void add(uint32_t lock, uint32_t value) {
    volatile uint32_t *total = nfp_emem(128);
    for (uint32_t i = 0; i < 10; i++) {
        take(nfp_emem(lock));
        *total = *total + value; // bug
        give(nfp_emem(lock));
    }
}

__process void first(void) { add(0, 1); }

__process void second(void) {
#ifdef BUG
    add(64, 2);
#else
    add(0, 2);
#endif
}
