/* helper.h: the parts of the runtime of XDP programs that a card's interface joins. */
#ifndef NICETY_XDP_HELPER_H
#define NICETY_XDP_HELPER_H

#include "map.h"
#include <frame.h>

/* The context of a program. The first six words are those of Linux. */
struct nicety_xdp_context {
    uint32_t data;
    uint32_t data_end;
    uint32_t data_meta;
    uint32_t ingress_ifindex;
    uint32_t rx_queue_index;
    uint32_t egress_ifindex;
    /* The runtime's part: the frame, its first byte on arrival, and whether a helper has changed its bounds. */
    const frame_t *frame;
    uint32_t first;
    uint32_t changed;
#ifdef NICETY_XDP_CLUSTER
    /* The end of the packet's memory. */
    uint32_t room;
#endif
};

/* Bytes of the shortest packet: an Ethernet header. */
#define SHORTEST 14u

enum { XDP_ABORTED = 0, XDP_DROP = 1, XDP_PASS = 2, XDP_TX = 3, XDP_REDIRECT = 4 };

/* The card's part of a program: crates/ebpf/src/card writes it with the maps. */
struct nicety_xdp_card {
    uint32_t cpus;          /* cores */
    uint32_t headroom;      /* bytes in front of a frame */
    uint32_t longest;       /* bytes of the longest frame that it sends */
    uint32_t queues;        /* receive channels of the host */
    uint32_t interface;     /* the number of its interface */
    uint32_t ns_mult;       /* nanoseconds of a cycle, times 1 << 22 */
};
extern const struct nicety_xdp_card nicety_xdp_card;

/* The last redirect of a core. Like Linux, the card keeps it from the helper to the verdict. */
struct xdp_redirect {
    enum { REDIRECT_NONE, REDIRECT_WIRE, REDIRECT_QUEUE } kind;
    uint32_t queue;
};

/* Verdicts that a frame's destination does not tell. */
struct nicety_xdp_counts {
    uint32_t aborted;       /* XDP_ABORTED */
    uint32_t invalid;       /* a value that is no verdict */
    uint32_t to_wire;       /* XDP_REDIRECT to a device */
    uint32_t to_queue;      /* XDP_REDIRECT to a CPU or a socket */
    uint32_t failed;        /* XDP_REDIRECT without a destination */
    uint32_t too_long;      /* XDP_PASS, XDP_TX and XDP_REDIRECT of a frame that is longer than the card sends */
    uint32_t passed;        /* XDP_PASS, where handlers have no destinations (task.c) */
    uint32_t sent;          /* XDP_TX there */
};

extern struct nicety_xdp_counts nicety_xdp_counts;
/* One for each core. */
extern struct xdp_redirect nicety_xdp_redirects[];
extern uint32_t nicety_xdp_random[];

/* The program. */
uint32_t nicety_xdp_program(struct nicety_xdp_context *context);

/* A helper's result: 0 or a negative error number. */
MAP_INLINE uint64_t returned(int result) { return (uint64_t)(int64_t)result; }

int map_update(const struct nicety_map *map, const void *key, const struct map_value *value, uint64_t flags);
int map_delete(const struct nicety_map *map, const void *key);
uint64_t array_walk(const struct nicety_map *map, map_visitor visit, void *context);

MAP_INLINE uint64_t refused(int error) { return returned(-error); }

/* Changes of a packet's bounds. A card of frames keeps these bounds, and commands change them. In a task of PsPIN only the
 * context has them: the packet stays in its memory, without room in front of it or behind it. On a network flow processor the
 * context has them as well, and the packet has room in front of it. */
#if defined(NICETY_XDP_CLUSTER) || defined(NICETY_XDP_NFP)
MAP_INLINE uint8_t *packet_push(const struct nicety_xdp_context *context, uint32_t bytes) {
    return AT(uint8_t, context->data_meta - bytes);
}
MAP_INLINE void packet_pull(const struct nicety_xdp_context *context, uint32_t bytes) { (void)context, (void)bytes; }
MAP_INLINE void packet_resize(const struct nicety_xdp_context *context, uint32_t bytes) { (void)context, (void)bytes; }
#ifdef NICETY_XDP_NFP
/* The driver's code for a network flow processor shortens a packet and never lengthens it. */
MAP_INLINE uint32_t packet_longest(const struct nicety_xdp_context *context) { (void)context; return 0; }
/* The first byte of the headroom. */
MAP_INLINE uint32_t packet_room(const struct nicety_xdp_context *context) {
    return context->first - nicety_xdp_card.headroom;
}
#else
MAP_INLINE uint32_t packet_longest(const struct nicety_xdp_context *context) { return context->room - context->data; }
MAP_INLINE uint32_t packet_room(const struct nicety_xdp_context *context) { return context->first; }
#endif
#else
MAP_INLINE uint8_t *packet_push(const struct nicety_xdp_context *context, uint32_t bytes) {
    return frame_push(context->frame, bytes);
}
MAP_INLINE void packet_pull(const struct nicety_xdp_context *context, uint32_t bytes) {
    frame_pull(context->frame, bytes);
}
MAP_INLINE void packet_resize(const struct nicety_xdp_context *context, uint32_t bytes) {
    frame_resize(context->frame, bytes);
}
MAP_INLINE uint32_t packet_longest(const struct nicety_xdp_context *context) {
    (void)context;
    return nicety_xdp_card.longest;
}
/* The first byte of the headroom. */
MAP_INLINE uint32_t packet_room(const struct nicety_xdp_context *context) {
    return context->first - nicety_xdp_card.headroom;
}
#endif

MAP_INLINE void count_verdict(uint32_t *count) { __atomic_fetch_add(count, 1, __ATOMIC_RELAXED); }
/* Copies bytes of the packet from `offset` on; 0 or a negative error number. */
int packet_copy(struct nicety_xdp_context *context, uint32_t offset, void *other, uint32_t length, bool store);

#endif
