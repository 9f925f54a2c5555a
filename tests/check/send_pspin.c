/* Sends the packet back. The bug sends more bytes than the packet has. */
#include <handler.h>

__handler__ void back_ph(handler_args_t *args) {
    task_t *task = args->task;
    spin_cmd_t command;
#ifdef BUG
    uint32_t length = task->pkt_mem_size + 28;
#else
    uint32_t length = task->pkt_mem_size;
#endif
    spin_send_packet(task->pkt_mem, length, &command); // bug
    spin_cmd_wait(command);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = back_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
