/* task.c: a program as the packet handler of PsPIN. Each packet of a message is an Ethernet frame.
 *
 * A handler of PsPIN has no result that names a destination, so commands carry verdicts out. They are a copy to the
 * message's host memory, or a packet to the wire. Counters tell the verdicts apart. A dropped frame needs neither. */
#include "check.h"
#include <handler.h>

static void send_frame(const struct nicety_xdp_context *context, uint32_t *count) {
    spin_cmd_t command;
    count_verdict(count);
    spin_send_packet(AT(void, context->data), context->data_end - context->data, &command);
}

static void to_host(const handler_args_t *args, const struct nicety_xdp_context *context, uint32_t *count) {
    const task_t *task = args->task;
    const uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    spin_cmd_t command;
    count_verdict(count);
    spin_dma_to_host(host, context->data, context->data_end - context->data, true, &command);
}

static void redirect(const handler_args_t *args, const struct nicety_xdp_context *context) {
    struct xdp_redirect *own = &nicety_xdp_redirects[this_cpu()];
    const uint32_t kind = own->kind;
    own->kind = REDIRECT_NONE;
    if (kind == REDIRECT_WIRE) {
        send_frame(context, &nicety_xdp_counts.to_wire);
    } else if (kind == REDIRECT_QUEUE && own->queue < nicety_xdp_card.queues) {
        to_host(args, context, &nicety_xdp_counts.to_queue);
    } else {
        count_verdict(&nicety_xdp_counts.failed);
    }
}

static __handler__ void nicety_xdp_task(handler_args_t *args) {
    const task_t *task = args->task;
    struct nicety_xdp_context context;
    context.data = context.data_meta = context.first = ADDRESS(task->pkt_mem);
    context.data_end = context.room = context.data + (uint32_t)task->pkt_mem_size;
    context.ingress_ifindex = nicety_xdp_card.interface;
    context.rx_queue_index = 0;
    context.egress_ifindex = 0;
    xdp_begin(&context);
    const uint32_t verdict = nicety_xdp_program(&context);
    switch (verdict) {
    case XDP_DROP:
        return;
    case XDP_PASS:
        return to_host(args, &context, &nicety_xdp_counts.passed);
    case XDP_TX:
        return send_frame(&context, &nicety_xdp_counts.sent);
    case XDP_REDIRECT:
        return redirect(args, &context);
    default:
        count_verdict(verdict == XDP_ABORTED ? &nicety_xdp_counts.aborted : &nicety_xdp_counts.invalid);
    }
}

__attribute__((visibility("default"))) void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {
    *hh = *th = NULL;
    *ph = nicety_xdp_task;
    *memory = NULL;
}
