/* Counts in the scratchpad of the cluster. The bug counts behind its end. */
#include <handler.h>

__handler__ void pad_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint8_t *pad = task->scratchpad[args->cluster_id];
    uint32_t size = task->scratchpad_size[args->cluster_id];
#ifdef BUG
    volatile int32_t *word = (volatile int32_t *)(pad + size);
#else
    volatile int32_t *word = (volatile int32_t *)(pad + size - 4);
#endif
    amo_add(word, 1); // bug
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = pad_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
