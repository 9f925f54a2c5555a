/* A buffer in the state is sent under a lock. The bug releases the lock before the wait, so that others overwrite it. */
#include <handler.h>

typedef struct {
    spin_lock_t lock;
    volatile uint32_t buffer[16];
} shared_t;

__handler__ void payload_handler(handler_args_t *args) {
    shared_t *shared = args->task->handler_mem;
    uint64_t host = (uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low;
    spin_cmd_t sending;
    spin_lock_lock(&shared->lock);
    for (int i = 0; i < 16; i++) shared->buffer[i] = i; // bug
    spin_dma_to_host(host, (uint32_t)shared->buffer, 64, false, &sending); // bug
#ifdef BUG
    spin_lock_unlock(&shared->lock);
    spin_cmd_wait(sending);
#else
    spin_cmd_wait(sending);
    spin_lock_unlock(&shared->lock);
#endif
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = payload_handler;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
