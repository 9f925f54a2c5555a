/* The state is read from the host under a lock. The bug releases the lock before the wait, so that others read it. */
#include <nicety.h>
#include "locks.h"

typedef struct {
    uint64_t values[8];
    uint32_t lock, sum;
} shared_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    shared_t *shared = state;
    ptl_dma_h reading;
    take(&shared->lock);
    shared->sum += (uint32_t)shared->values[1]; // bug
    PtlHandlerDMAFromHostNB(0, shared->values, 64, PTL_ME_HOST_MEM, &reading); // bug
#ifdef BUG
    give(&shared->lock);
    PtlHandlerDMAWait(reading);
#else
    PtlHandlerDMAWait(reading);
    give(&shared->lock);
#endif
    return SUCCESS;
}
