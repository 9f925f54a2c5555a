/* empty.c: a handler for PsPIN that does nothing. It shows the time of a packet without the work of a handler. */
#include <handler.h>

__handler__ void empty_ph(handler_args_t *args) { (void)args; }

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = empty_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
