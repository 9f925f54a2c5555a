/* Fetches a word of host memory. The bug reads it before the transfer is done. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    volatile uint32_t fetched = 0;
    ptl_dma_h handle;
    (void)p;
    PtlHandlerDMAFromHostNB(0, (void *)&fetched, 4, PTL_HANDLER_HOST_MEM, &handle);
#ifdef BUG
    uint32_t value = fetched; // bug
    PtlHandlerDMAWait(handle);
#else
    PtlHandlerDMAWait(handle);
    uint32_t value = fetched;
#endif
    __atomic_fetch_add((uint32_t *)state, value, __ATOMIC_RELAXED);
    return SUCCESS;
}
