/* Fetches 64 bytes of host memory over the packet. The bug reads them before they are there. */
#include <handler.h>

__handler__ void fetch_ph(handler_args_t *args) {
    task_t *task = args->task;
    volatile uint32_t *words = task->pkt_mem;
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    spin_cmd_t transfer;
    spin_dma_from_host(host, (uint32_t)words, 64, false, &transfer);
#ifdef BUG
    uint32_t value = words[15]; // bug
    spin_cmd_wait(transfer);
#else
    spin_cmd_wait(transfer);
    uint32_t value = words[15];
#endif
    amo_add((volatile int32_t *)task->handler_mem, (int32_t)value);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = fetch_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
