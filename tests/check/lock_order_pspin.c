/* Packets under one lock, the tail under two. The bug takes these in the other order. */
#include <handler.h>

typedef struct {
    spin_lock_t packets_lock, bytes_lock;
    volatile uint32_t packets, bytes;
} counts_t;

__handler__ void count_ph(handler_args_t *args) {
    counts_t *counts = args->task->handler_mem;
    spin_lock_lock(&counts->packets_lock);
    counts->packets++;
    spin_lock_lock(&counts->bytes_lock); // bug
    counts->bytes += args->task->pkt_mem_size;
    spin_lock_unlock(&counts->bytes_lock);
    spin_lock_unlock(&counts->packets_lock);
}

__handler__ void count_th(handler_args_t *args) {
    counts_t *counts = args->task->handler_mem;
#ifdef BUG
    spin_lock_lock(&counts->bytes_lock);
    spin_lock_lock(&counts->packets_lock); // bug
#else
    spin_lock_lock(&counts->packets_lock);
    spin_lock_lock(&counts->bytes_lock);
#endif
    counts->packets = counts->bytes = 0;
    spin_lock_unlock(&counts->packets_lock);
    spin_lock_unlock(&counts->bytes_lock);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = count_ph;
    *th = count_th;
    *handler_mem_ptr = NULL;
}
