/* Reads the last word of a packet. The bug reads the next one, which is still in the packet buffer. */
#include <handler.h>

__handler__ void last_ph(handler_args_t *args) {
    task_t *task = args->task;
    const volatile uint32_t *words = task->pkt_mem;
    uint32_t count = task->pkt_mem_size / 4;
#ifdef BUG
    uint32_t last = words[count]; // bug
#else
    uint32_t last = words[count - 1];
#endif
    amo_add((volatile int32_t *)task->handler_mem, (int32_t)last);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = last_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
