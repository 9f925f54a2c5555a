/* frame.c: a program with Linux's context as the handler of a card's frames. Most programs need none: they are handlers themselves
 * (crates/ebpf/src/translate/bounds.rs). */
#include "check.h"
#include "verdict.h"

/* A function of its own, so that a handler saves no registers for it. */
__attribute__((noinline)) static int forwarded(const struct nicety_xdp_context *context, uint32_t verdict) {
    const frame_t *frame = context->frame;
    if (context->changed) {
        /* Metadata ends with the program: neither host nor wire expects it. */
        if (context->data_meta != context->data) {
            frame_pull(frame, context->data - context->data_meta);
        }
        if (is_too_long(frame, verdict)) {
            return counted(&nicety_xdp_counts.too_long, FRAME_DROP);
        }
    }
    return destination_of(verdict);
}

__attribute__((visibility("default"))) __handler int frame_handler(const frame_t *frame, void *state) {
    (void)state;
    struct nicety_xdp_context context;
    const uint32_t data = ADDRESS(frame->data);
    context.data = context.data_meta = data;
    context.data_end = data + frame->length;
    context.ingress_ifindex = nicety_xdp_card.interface;
    context.rx_queue_index = frame->channel;
    context.egress_ifindex = 0;
    context.frame = frame;
    context.first = data;
    context.changed = 0;
    xdp_begin(&context);
    const uint32_t verdict = nicety_xdp_program(&context);
    return __builtin_expect(verdict == XDP_DROP, 1) ? FRAME_DROP : forwarded(&context, verdict);
}
