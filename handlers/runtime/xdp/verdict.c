/* verdict.c: the functions for programs that are a card's frame handler themselves. Their code has the usual verdicts, and reads
 * the fields of Linux's context in the frame (crates/ebpf/src/translate/direct.rs). */
#include "verdict.h"

int nicety_xdp_verdict(uint32_t verdict) { return destination_of(verdict); }

int nicety_xdp_too_long(void) { return counted(&nicety_xdp_counts.too_long, FRAME_DROP); }

/* The destination of a frame with other bounds than on arrival. */
int nicety_xdp_changed_verdict(uint32_t verdict, const frame_t *frame) {
    return is_too_long(frame, verdict) ? nicety_xdp_too_long() : destination_of(verdict);
}

/* The program moves the first byte once at most, and has no metadata, so that all of the headroom is there. */
uint64_t nicety_frame_adjust_head(uint64_t r1, uint64_t r2) {
    const frame_t *frame = AT(const frame_t, r1);
    const int32_t delta = (int32_t)r2;
    if (delta < 0) {
        const uint32_t more = -(uint32_t)delta;
        if (more > nicety_xdp_card.headroom) {
            return refused(EINVAL);
        }
        frame_push(frame, more);
    } else if (delta > 0) {
        if ((uint32_t)delta + SHORTEST > frame->length) {
            return refused(EINVAL);
        }
        frame_pull(frame, (uint32_t)delta);
    }
    return 0;
}

uint64_t nicety_frame_adjust_tail(uint64_t r1, uint64_t r2) {
    const frame_t *frame = AT(const frame_t, r1);
    const int32_t delta = (int32_t)r2;
    const uint32_t old = frame->length;
    const int64_t length = (int64_t)old + delta;
    if (length < SHORTEST || (delta > 0 && length > nicety_xdp_card.longest)) {
        return refused(EINVAL);
    }
    if (delta) {
        frame_resize(frame, (uint32_t)length);
    }
    if (delta > 0) {
        memset(frame->data + old, 0, (uint32_t)delta);
    }
    return 0;
}

uint64_t nicety_frame_get_buff_len(uint64_t r1) { return AT(const frame_t, r1)->length; }
