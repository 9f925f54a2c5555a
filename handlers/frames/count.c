// Counts frames and bytes of each flow, and forwards them to the host. The state is COUNT_FLOWS pairs of counters.
#include <frame.h>

#ifndef COUNT_FLOWS
#define COUNT_FLOWS 64
#endif

typedef struct {
    uint32_t frames, bytes;
} flow_t;

__handler int frame_handler(const frame_t *frame, void *state) {
    if (frame->length < 38)
        return FRAME_HOST;
    // In IPv4 without options, addresses and ports are bytes 26 to 37.
    uint16_t halves[6];
    __builtin_memcpy(halves, __builtin_assume_aligned(frame->data + 26, 2), 12);
    uint32_t hash = 2166136261u;
    for (int i = 0; i < 6; i++)
        hash = (hash ^ halves[i]) * 16777619u;
    hash ^= hash >> 16;
    flow_t *flow = (flow_t *)state + hash % COUNT_FLOWS;
    __atomic_fetch_add(&flow->frames, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&flow->bytes, frame->length, __ATOMIC_RELAXED);
    return FRAME_HOST;
}
