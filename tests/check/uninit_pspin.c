/* A histogram on the stack. The bug clears a part of it. */
#include <handler.h>

static __attribute__((noinline)) void clear(uint32_t *counts, int entries) {
    for (int i = 0; i < entries; i++)
        counts[i] = 0;
}

__handler__ void count_ph(handler_args_t *args) {
    task_t *task = args->task;
    const uint8_t *bytes = task->pkt_mem;
    uint32_t counts[16], most = 0;
#ifdef BUG
    clear(counts, 12);
#else
    clear(counts, 16);
#endif
    for (int i = 0; i < 32; i++)
        counts[bytes[i] & 15]++;
    for (int i = 0; i < 16; i++)
        if (counts[i] > most) // bug
            most = counts[i];
    amo_maxu((volatile uint32_t *)task->handler_mem, most);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = count_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
