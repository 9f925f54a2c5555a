/* A process waits for signals, by a set that it computes. The bug's set is empty. */
#include <nfp.h>

__process uint32_t wait(uint32_t first) {
#ifdef BUG
    uint32_t set = first;
#else
    uint32_t set = first | 1;
#endif
    nfp_signal(0, 0, 0);
    return nfp_wait_any(set); // bug
}
