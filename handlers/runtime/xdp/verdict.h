/* verdict.h: the destinations of a card's frames by the verdicts of programs. */
#ifndef NICETY_XDP_VERDICT_H
#define NICETY_XDP_VERDICT_H

#include "helper.h"

static inline int counted(uint32_t *count, int destination) {
    count_verdict(count);
    return destination;
}

static inline int redirected(void) {
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

/* Whether the card cannot send a frame that a program has made longer. */
static inline bool is_too_long(const frame_t *frame, uint32_t verdict) {
    return verdict >= XDP_PASS && verdict <= XDP_REDIRECT && frame->length > nicety_xdp_card.longest;
}

/* The destination of a frame. Frequent verdicts are first. */
static inline int destination_of(uint32_t verdict) {
    if (verdict == XDP_PASS) {
        return FRAME_HOST;
    }
    if (verdict == XDP_TX) {
        return FRAME_WIRE;
    }
    if (verdict == XDP_REDIRECT) {
        return redirected();
    }
    if (verdict == XDP_DROP) {
        return FRAME_DROP;
    }
    return counted(verdict == XDP_ABORTED ? &nicety_xdp_counts.aborted : &nicety_xdp_counts.invalid, FRAME_DROP);
}

#endif
