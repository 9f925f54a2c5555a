/* Two locks. The bug takes them in two orders. */
#include <nfp.h>
#include "locks.h"

__process void first(void) {
    take(nfp_emem(0));
    take(nfp_emem(64)); // bug
    give(nfp_emem(64));
    give(nfp_emem(0));
}

__process void second(void) {
    for (uint32_t i = 0; i < 2000; i++) nfp_yield();
#ifdef BUG
    take(nfp_emem(64));
    take(nfp_emem(0)); // bug
#else
    take(nfp_emem(0));
    take(nfp_emem(64));
#endif
    give(nfp_emem(64));
    give(nfp_emem(0));
}
