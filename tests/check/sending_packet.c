/* Sends the packet back. The bug changes it while it is being sent. */
#include <handler.h>

__handler__ void back_ph(handler_args_t *args) {
    task_t *task = args->task;
    volatile uint8_t *bytes = task->pkt_mem;
    spin_cmd_t command;
    spin_send_packet(task->pkt_mem, task->pkt_mem_size, &command);
#ifndef BUG
    spin_cmd_wait(command);
#endif
    bytes[20] = 1; // bug
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = back_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
