/* Copies a part of the packet to the host, then clears it. The bug waits for no transfer. The twin tests the transfer. */
#include <handler.h>

__handler__ void store_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint32_t *words = task->pkt_mem;
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    spin_cmd_t transfer;
    spin_dma_to_host(host, (uint32_t)(words + 8), 16, false, &transfer);
#ifndef BUG
    bool done = false;
    while (!done)
        spin_cmd_test(transfer, &done);
#endif
    words[7] = 0;
    words[11] = 0; // bug
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = store_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
