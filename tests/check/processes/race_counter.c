/* Two microengines count in external memory. The bug's addition is a load and a store. */
#include <nfp.h>

__process void count(uint32_t rounds) {
    volatile uint32_t *counter = nfp_emem(64);
    while (rounds-- > 0)
#ifdef BUG
        *counter = *counter + 1; // bug
#else
        nfp_fetch_add(counter, 1);
#endif
}
