/* Collective operations of MPI that the cards execute by themselves: `nicety exec --offload`. */
#include <collectives.h>
#include <nicety.h>

/* The binomial tree of a root. Places are ranks counted from the root. The children of `place` are `half`, `half / 2`,
 * ... 1 places further. The child with the largest subtree is first, because its path is the longest. */
static uint32_t first_half(uint32_t place, uint32_t ranks) {
    uint32_t half = 1;
    if (place)
        return (place & -place) >> 1;
    while (half * 2 < ranks)
        half *= 2;
    return half;
}

/* Sends bytes of the card to all children of this rank. */
static int send_down(uint32_t rank, uint32_t ranks, uint32_t root, ptl_match_bits_t match_bits, const void *bytes,
                     ptl_size_t length, ptl_size_t offset) {
    const uint32_t place = rank >= root ? rank - root : rank + ranks - root;
    for (uint32_t half = first_half(place, ranks); half; half /= 2) {
        if (place + half >= ranks)
            continue;
        const uint32_t child = rank + half < ranks ? rank + half : rank + half - ranks;
        const int sent = PtlHandlerPutFromDevice(bytes, length, 0, PTL_NO_ACK_REQ, child, match_bits, offset, NULL, root);
        if (sent != PTL_OK)
            return sent;
    }
    return PTL_OK;
}

/* Returns the parent of a rank in the tree of rank 0. */
static uint32_t parent_of(uint32_t rank) {
    return rank & (rank - 1);
}

/* ---- barriers ---- */

static int release(const collective_barrier_t *s) {
    return send_down(s->rank, s->ranks, 0, COLLECTIVE_RELEASE + s->barrier, NULL, 0, 0);
}

/* Handles an arrival at a barrier. Arrivals of the next round follow after the release of this round has been sent, so
 * a count is sufficient. */
__handler int arrive(const ptl_header_t h, void *state) {
    collective_barrier_t *s = state;
    (void)h;
    if (__atomic_add_fetch(&s->arrived, 1, __ATOMIC_ACQ_REL) < s->expected)
        return DROP;
    __atomic_store_n(&s->arrived, 0, __ATOMIC_RELEASE);
    if (s->rank) {
        const int sent = PtlHandlerPutFromDevice(NULL, 0, 0, PTL_NO_ACK_REQ, parent_of(s->rank),
                                                 COLLECTIVE_ARRIVE + s->barrier, 0, NULL, 0);
        return sent == PTL_OK ? DROP : FAIL;
    }
    return release(s) == PTL_OK && PtlHandlerCTInc(1) == PTL_OK ? DROP : FAIL;
}

/* Handles a release. The match entry counts the release for the host. */
__handler int released(const ptl_header_t h, void *state) {
    (void)h;
    return release(state) == PTL_OK ? PROCEED : FAIL;
}

/* ---- broadcasts ---- */

/* Below the root's children, every packet is a message, with the offset of the packet's bytes in its header. So the
 * header handler forwards the message, and the card deposits it. */
__handler int slot_header(const ptl_header_t h, void *state) {
    collective_slot_t *s = state;
    const uint32_t root = (uint32_t)h.hdr_data;
    if (h.length > h.packet_length) {
        __atomic_store_n(&s->root, root, __ATOMIC_RELEASE);
        return PROCESS_DATA;
    }
    const int sent = send_down(s->rank, s->ranks, root, COLLECTIVE_SLOT + s->slot, h.base, h.length, h.offset);
    return sent == PTL_OK ? PROCEED : FAIL;
}

/* Handles a packet of the root's own message. The message begins at the slot's first byte. */
__handler int slot_payload(const ptl_payload_t p, void *state) {
    const collective_slot_t *s = state;
    if (send_down(s->rank, s->ranks, s->root, COLLECTIVE_SLOT + s->slot, p.base, p.length, p.offset) != PTL_OK)
        return FAIL;
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == PTL_OK ? SUCCESS : FAIL;
}

/* ---- reductions ---- */

#define EACH(type, expression)                                                                                         \
    do {                                                                                                               \
        type *to = into;                                                                                               \
        const type *from = with;                                                                                       \
        for (ptl_size_t i = 0; i < bytes / sizeof(type); i++) {                                                        \
            const type a = to[i], b = from[i];                                                                         \
            to[i] = (type)(expression);                                                                                \
        }                                                                                                              \
        return PTL_OK;                                                                                                 \
    } while (0)

/* Sums and products of signed integers wrap, because they are computed as unsigned integers. */
#define REDUCE(name, type, wide)                                                                                       \
    static int name(uint32_t op, void *into, const void *with, ptl_size_t bytes) {                                     \
        switch (op) {                                                                                                  \
        case COLLECTIVE_SUM:                                                                                           \
            EACH(type, (wide)a + (wide)b);                                                                             \
        case COLLECTIVE_PROD:                                                                                          \
            EACH(type, (wide)a *(wide)b);                                                                              \
        case COLLECTIVE_MIN:                                                                                           \
            EACH(type, b < a ? b : a);                                                                                 \
        case COLLECTIVE_MAX:                                                                                           \
            EACH(type, b > a ? b : a);                                                                                 \
            MORE(type)                                                                                                 \
        default:                                                                                                       \
            return PTL_ARG_INVALID;                                                                                    \
        }                                                                                                              \
    }

#define MORE(type)                                                                                                     \
    case COLLECTIVE_BAND:                                                                                              \
        EACH(type, a & b);                                                                                             \
    case COLLECTIVE_BOR:                                                                                               \
        EACH(type, a | b);                                                                                             \
    case COLLECTIVE_BXOR:                                                                                              \
        EACH(type, a ^ b);                                                                                             \
    case COLLECTIVE_LAND:                                                                                              \
        EACH(type, a && b);                                                                                            \
    case COLLECTIVE_LOR:                                                                                               \
        EACH(type, a || b);                                                                                            \
    case COLLECTIVE_LXOR:                                                                                              \
        EACH(type, !a != !b);

REDUCE(reduce_int8, int8_t, uint32_t)
REDUCE(reduce_uint8, uint8_t, uint32_t)
REDUCE(reduce_int16, int16_t, uint32_t)
REDUCE(reduce_uint16, uint16_t, uint32_t)
REDUCE(reduce_int32, int32_t, uint32_t)
REDUCE(reduce_uint32, uint32_t, uint32_t)
REDUCE(reduce_int64, int64_t, uint64_t)
REDUCE(reduce_uint64, uint64_t, uint64_t)

#undef MORE
#define MORE(type)
REDUCE(reduce_float, float, float)
REDUCE(reduce_double, double, double)

static int reduce(uint32_t what, void *into, const void *with, ptl_size_t bytes) {
    const uint32_t op = what & 0xff;
    switch (what >> 8 & 0xff) {
    case COLLECTIVE_INT8:
        return reduce_int8(op, into, with, bytes);
    case COLLECTIVE_UINT8:
        return reduce_uint8(op, into, with, bytes);
    case COLLECTIVE_INT16:
        return reduce_int16(op, into, with, bytes);
    case COLLECTIVE_UINT16:
        return reduce_uint16(op, into, with, bytes);
    case COLLECTIVE_INT32:
        return reduce_int32(op, into, with, bytes);
    case COLLECTIVE_UINT32:
        return reduce_uint32(op, into, with, bytes);
    case COLLECTIVE_INT64:
        return reduce_int64(op, into, with, bytes);
    case COLLECTIVE_UINT64:
        return reduce_uint64(op, into, with, bytes);
    case COLLECTIVE_FLOAT:
        return reduce_float(op, into, with, bytes);
    case COLLECTIVE_DOUBLE:
        return reduce_double(op, into, with, bytes);
    default:
        return PTL_ARG_INVALID;
    }
}

/* Sends a segment with all contributions to the parent. The root sends the segment to its children and to its host
 * instead. The match entry's counter counts the bytes for the host. */
static int pass_on(const collective_reduce_t *s, uint32_t what, const void *bytes, ptl_size_t length, ptl_size_t offset) {
    if (s->rank)
        return PtlHandlerPutFromDevice(bytes, length, 0, PTL_NO_ACK_REQ, parent_of(s->rank), COLLECTIVE_REDUCE, offset,
                                       NULL, what);
    const uint32_t slot = what >> 16 & 0xff;
    int code = send_down(0, s->ranks, 0, COLLECTIVE_SLOT + slot, bytes, length, offset);
    if (code == PTL_OK)
        code = PtlHandlerDMAToHostB(bytes, slot * s->slot_bytes + offset, length, PTL_ME_HOST_MEM);
    return code == PTL_OK ? PtlHandlerCTInc(length) : code;
}

/* Adds a packet's part of a contribution. The segment stays locked until its bytes are sent, because the first rank
 * that gets them may begin the next reduction. */
static int contribute(collective_reduce_t *s, uint32_t what, const void *bytes, ptl_size_t length, ptl_size_t offset) {
    collective_segment_t *segment = &s->segments[offset / s->packet_bytes];
    uint8_t *own = (uint8_t *)s + s->vector + offset;
    int code = PTL_OK;
    while (__atomic_exchange_n(&segment->lock, 1, __ATOMIC_ACQUIRE))
        ;
    if (segment->count == 0)
        memcpy(own, bytes, length);
    else
        code = reduce(what, own, bytes, length);
    if (++segment->count == s->expected) {
        segment->count = 0;
        if (code == PTL_OK)
            code = pass_on(s, what, own, length, offset);
    }
    __atomic_store_n(&segment->lock, 0, __ATOMIC_RELEASE);
    return code;
}

/* All contributions to one reduction have the same header data. Contributions to the next reduction arrive after the
 * result of this one was sent. */
__handler int reduce_header(const ptl_header_t h, void *state) {
    collective_reduce_t *s = state;
    if (h.length > h.packet_length) {
        __atomic_store_n(&s->what, (uint32_t)h.hdr_data, __ATOMIC_RELEASE);
        return PROCESS_DATA;
    }
    return contribute(s, (uint32_t)h.hdr_data, h.base, h.length, h.offset) == PTL_OK ? DROP : FAIL;
}

__handler int reduce_payload(const ptl_payload_t p, void *state) {
    collective_reduce_t *s = state;
    return contribute(s, s->what, p.base, p.length, p.offset) == PTL_OK ? SUCCESS : FAIL;
}
