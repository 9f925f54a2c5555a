/* Contexts of a microengine count in local memory. The bug gives up the core between load and store. */
#include <nfp.h>

static volatile uint32_t counted;

__process uint32_t count(void) {
    for (uint32_t i = 0; i < 10; i++) {
#ifdef BUG
        uint32_t before = counted;
        nfp_yield();
        counted = before + 1; // bug
#else
        nfp_yield();
        counted = counted + 1;
#endif
    }
    return counted;
}
