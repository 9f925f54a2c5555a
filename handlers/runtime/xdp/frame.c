/* frame.c: a program as the handler of a card's frames. */
#include "check.h"

static int redirected(void) {
    struct xdp_redirect *own = &nicety_xdp_redirects[this_cpu()];
    const uint32_t kind = own->kind;
    own->kind = REDIRECT_NONE;
    if (kind == REDIRECT_WIRE) {
        count_verdict(&nicety_xdp_counts.to_wire);
        return FRAME_WIRE;
    }
    if (kind == REDIRECT_QUEUE && own->queue < nicety_xdp_card.queues) {
        count_verdict(&nicety_xdp_counts.to_queue);
        return FRAME_QUEUE(own->queue);
    }
    count_verdict(&nicety_xdp_counts.failed);
    return FRAME_DROP;
}

static int dropped(uint32_t *count) {
    count_verdict(count);
    return FRAME_DROP;
}

/* A function of its own, so that a handler saves no registers for it. */
__attribute__((noinline)) static int forwarded(const struct nicety_xdp_context *context, uint32_t verdict) {
    const frame_t *frame = context->frame;
    if (context->changed) {
        /* Metadata ends with the program: neither host nor wire expects it. */
        if (context->data_meta != context->data) {
            frame_pull(frame, context->data - context->data_meta);
        }
        if (verdict >= XDP_PASS && verdict <= XDP_REDIRECT && frame->length > nicety_xdp_card.longest) {
            return dropped(&nicety_xdp_counts.too_long);
        }
    }
    if (verdict == XDP_PASS) {
        return FRAME_HOST;
    }
    if (verdict == XDP_TX) {
        return FRAME_WIRE;
    }
    if (verdict == XDP_REDIRECT) {
        return redirected();
    }
    return dropped(verdict == XDP_ABORTED ? &nicety_xdp_counts.aborted : &nicety_xdp_counts.invalid);
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
