/* saturate.c: handlers that keep an engine of PsPIN busy, with one or two commands per packet. One of these macros is
 * defined:
 *
 * - WRITE: a word from registers to the host
 * - TO_HOST: the packet to the host
 * - FROM_HOST: as many bytes from the host, over the packet
 * - STORE_AND_SEND: the packet to the host, and back to its sender
 * - FETCH_AND_SEND: as many bytes from the host, over the packet, which then goes back to its sender
 *
 * All handlers but the last end without waiting. The feedback for the packet waits for their commands. */
#include <handler.h>
#include <pspin.h>

__handler__ void saturate_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    uint32_t packet = (uint32_t)task->pkt_mem, bytes = task->pkt_mem_size;
    spin_cmd_t command;
#if defined(WRITE)
    (void)packet;
    (void)bytes;
    spin_write_to_host(host, 1, &command);
#endif
#if defined(TO_HOST) || defined(STORE_AND_SEND)
    spin_dma_to_host(host, packet, bytes, 0, &command);
#endif
#if defined(FROM_HOST) || defined(FETCH_AND_SEND)
    spin_dma_from_host(host, packet, bytes, 0, &command);
#endif
#if defined(FETCH_AND_SEND)
    spin_cmd_wait(command);
#endif
#if defined(STORE_AND_SEND) || defined(FETCH_AND_SEND)
    spin_send_packet((void *)packet, bytes, &command);
#endif
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = saturate_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
