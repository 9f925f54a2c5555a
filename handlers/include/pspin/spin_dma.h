/* spin_dma.h: copies by the DMA engine of the core's cluster. */
#ifndef PSPIN_SPIN_DMA_H
#define PSPIN_SPIN_DMA_H

#include "pspin.h"

enum { SPIN_DMA_LOC2EXT = 0, SPIN_DMA_EXT2LOC = 1 };

typedef uint32_t spin_dma_t;  /* a copy in flight: the cycle at which it is done */

/* Copies `size` bytes on the card. The engine is the one that copies packets. The direction (0 or 1) and the options are PsPIN's,
 * and change nothing here: addresses say where the bytes are. They are copied at once, and the copy is done in its time. */
PSPIN_INLINE int spin_dma(void *source, void *destination, size_t size, int direction, uint32_t options,
                          spin_dma_t *transfer) {
    (void)direction;
    (void)options;
    *transfer = pspin_call(PSPIN_CALL_DMA, (uint32_t)(uintptr_t)source, (uint32_t)(uintptr_t)destination, size);
    return SPIN_SUCCESS;
}

PSPIN_INLINE int spin_dma_wait(spin_dma_t transfer) {
    pspin_call(PSPIN_CALL_UNTIL, transfer, 0, 0);
    return SPIN_SUCCESS;
}

PSPIN_INLINE int spin_dma_test(spin_dma_t transfer, bool *completed) {
    uint32_t now;
    __asm__ volatile("csrr %0, time" : "=r"(now));
    *completed = (int32_t)(now - transfer) >= 0;
    return SPIN_SUCCESS;
}

#endif
