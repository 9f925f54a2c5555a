/* Counters by the core. The bug yields between load and store. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    volatile uint32_t *count = (volatile uint32_t *)state + PtlHandlerHPU();
#ifdef BUG
    uint32_t before = *count;
    for (volatile int i = 0; i < 50; i++) {
    }
    PtlHandlerYield();
    *count = before + 1; // bug
#else
    for (volatile int i = 0; i < 50; i++) {
    }
    PtlHandlerYield();
    *count = *count + 1;
#endif
    return SUCCESS;
}
