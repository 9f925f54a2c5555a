/* verdict.c: the destinations of a card's frames by the verdicts of programs. */
#include "helper.h"

static int counted(uint32_t *count, int destination) {
    count_verdict(count);
    return destination;
}

static int redirected(void) {
    struct xdp_redirect *own = &nicety_xdp_redirects[this_cpu()];
    const uint32_t kind = own->kind;
    own->kind = REDIRECT_NONE;
    if (kind == REDIRECT_WIRE) {
        return counted(&nicety_xdp_counts.to_wire, FRAME_WIRE);
    }
    if (kind == REDIRECT_QUEUE && own->queue < nicety_xdp_card.queues) {
        return counted(&nicety_xdp_counts.to_queue, FRAME_QUEUE(own->queue));
    }
    return counted(&nicety_xdp_counts.failed, FRAME_DROP);
}

/* The destination of a frame. */
int nicety_xdp_verdict(uint32_t verdict) {
    switch (verdict) {
    case XDP_ABORTED:
        return counted(&nicety_xdp_counts.aborted, FRAME_DROP);
    case XDP_DROP:
        return FRAME_DROP;
    case XDP_PASS:
        return FRAME_HOST;
    case XDP_TX:
        return FRAME_WIRE;
    case XDP_REDIRECT:
        return redirected();
    default:
        return counted(&nicety_xdp_counts.invalid, FRAME_DROP);
    }
}
