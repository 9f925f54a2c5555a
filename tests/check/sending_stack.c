/* A buffer on the stack is sent. The bug returns without a wait. */
#include <handler.h>

__handler__ void payload_handler(handler_args_t *args) {
    uint32_t reply[64];
    spin_cmd_t sending;
    uint64_t host = (uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low;
    for (int i = 0; i < 64; i++) reply[i] = args->hpu_gid + i;
    spin_dma_to_host(host, (uint32_t)reply, 256, false, &sending); // bug
#ifndef BUG
    spin_cmd_wait(sending);
#endif
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = payload_handler;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
