/* Adds in host memory, and uses the place of the result for something else. The bug does so before the result is there. The twin
 * tests the transfer until it is done. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    volatile uint64_t before = 0;
    ptl_dma_h handle;
    PtlHandlerDMAFetchAddNB(8, 1, (uint64_t *)&before, PTL_HANDLER_HOST_MEM, &handle);
#ifndef BUG
    while (!PtlHandlerDMATest(handle)) {
    }
#endif
    before = p.length; // bug
#ifdef BUG
    PtlHandlerDMAWait(handle);
#endif
    __atomic_fetch_add((uint32_t *)state, (uint32_t)before, __ATOMIC_RELAXED);
    return SUCCESS;
}
