/* Copies the packet to the scratchpad by the DMA engine. The bug changes the source before the copy is done. */
#include <handler.h>

__handler__ void copy_ph(handler_args_t *args) {
    task_t *task = args->task;
    volatile uint32_t *words = task->pkt_mem;
    uint32_t *pad = (uint32_t *)task->scratchpad[args->cluster_id] + 64 * args->hpu_id;
    spin_dma_t copy;
    spin_dma((void *)words, pad, 32, SPIN_DMA_LOC2EXT, 0, &copy);
#ifndef BUG
    spin_dma_wait(copy);
#endif
    words[1] = 5; // bug
#ifdef BUG
    spin_dma_wait(copy);
#endif
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = copy_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
