/* Counts in the state of PsPIN's handlers under a lock. The bug reads the counter without it. */
#include <handler.h>

typedef struct {
    spin_lock_t lock;
    uint32_t packets, most;
} counts_t;

__handler__ void count_ph(handler_args_t *args) {
    counts_t *counts = args->task->handler_mem;
#ifdef BUG
    uint32_t seen = counts->packets; // bug
#endif
    spin_lock_lock(&counts->lock);
#ifndef BUG
    uint32_t seen = counts->packets;
#endif
    counts->packets = seen + 1; // bug
    spin_lock_unlock(&counts->lock);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = count_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
