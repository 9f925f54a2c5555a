/* A counter under a lock. The bug releases the lock twice. */
#include <handler.h>

typedef struct {
    spin_lock_t lock;
    volatile uint32_t packets;
} counts_t;

__handler__ void count_hh(handler_args_t *args) {
    counts_t *counts = args->task->handler_mem;
    spin_lock_init(&counts->lock);
}

__handler__ void count_ph(handler_args_t *args) {
    counts_t *counts = args->task->handler_mem;
    spin_lock_lock(&counts->lock);
    counts->packets++;
    spin_lock_unlock(&counts->lock);
#ifdef BUG
    spin_lock_unlock(&counts->lock); // bug
#endif
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = count_hh;
    *ph = count_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
