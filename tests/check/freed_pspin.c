/* The tail handler answers with a byte of the first packet. The bug keeps that packet's address. */
#include <handler.h>

typedef struct {
    volatile uint8_t *packet;
    uint32_t byte;
    volatile int32_t total;
} kept_t;

__handler__ void first_hh(handler_args_t *args) {
    kept_t *kept = args->task->handler_mem;
    kept->packet = args->task->pkt_mem;
    kept->byte = kept->packet[28];
}

__handler__ void rest_ph(handler_args_t *args) { (void)args; }

__handler__ void last_th(handler_args_t *args) {
    kept_t *kept = args->task->handler_mem;
#ifdef BUG
    uint32_t byte = kept->packet[28]; // bug
#else
    uint32_t byte = kept->byte;
#endif
    amo_add(&kept->total, (int32_t)byte);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = first_hh;
    *ph = rest_ph;
    *th = last_th;
    *handler_mem_ptr = NULL;
}
