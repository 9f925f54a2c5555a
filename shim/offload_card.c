/* Collective operations on the card, by calls of Portals: barriers, broadcasts, reductions. */

#include "offload_card.h"

#include "collectives.h"
#include "nicety_exec.h"
#include "offload_base.h"
#include "portals4.h"
#include "portals4_spin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes arrive in slots of each rank's memory, and are copied from there. Slots are used in sequence, so a root need
 * not wait for the other ranks. A long broadcast takes several slots in sequence. A rank is at most SLOTS operations
 * ahead of the slowest rank. Ranks report their progress by a barrier without a wait, while the other half of the slots
 * is in flight. */
#define SLOTS 8u
#define SLOT_BYTES 65536u
/* A message up to this length is copied before the send, so the root does not wait for the message's SEND event. The
 * message libraries of the cards do the same (messages.eager). */
#define EAGER_BYTES 2048u
enum { PROGRAM, AHEAD };

void (*card_progress)(void);
void (*card_failed)(const char *what);

static uint32_t own, ranks;
static ptl_handle_ni_t ni;
static ptl_pt_index_t pt;
/* Descriptors of all memory. The second descriptor counts sends. */
static ptl_handle_md_t silent, counted;
static ptl_handle_ct_t left_ct, reduced_ct, released_ct[COLLECTIVE_BARRIERS], slot_ct[SLOTS];
static uint64_t left, reduced, released[COLLECTIVE_BARRIERS], received[SLOTS];
static unsigned char *slots;

/* The number of operations with a slot, and the number of these that all ranks are known to have done. Each operation
 * has the same number on all ranks. */
static uint64_t operations, done_by_all;
/* Whether this rank has reported its progress but does not have the reports of all ranks yet, and the reported
 * progress. */
static int is_told;
static uint64_t told;

/* ---- waits and puts ---- */

static void check(int code, const char *what) {
    if (code != PTL_OK)
        card_failed(what);
}

static void wait_for(ptl_handle_ct_t ct, uint64_t count, const char *what) {
    ptl_ct_event_t value = {0};
    int code = nicety_offload_await(ct, count, &value);
    /* MPI may have to handle arrived completions, as for one-sided operations. The number of calls that let MPI do so
     * is limited. */
    for (int tries = 0; code == PTL_CT_NONE_REACHED && tries < 1000; tries++) {
        card_progress();
        code = nicety_offload_await(ct, count, &value);
    }
    if (code == PTL_CT_NONE_REACHED)
        code = PtlCTWait(ct, count, &value);
    if (code != PTL_OK || value.failure)
        card_failed(what);
}

static void put(ptl_handle_md_t md, const void *bytes, size_t length, uint32_t to, ptl_match_bits_t match_bits,
                ptl_hdr_data_t data) {
    ptl_process_t target = {.rank = to};
    check(PtlPut(md, (uintptr_t)bytes, length, PTL_NO_ACK_REQ, target, pt, match_bits, 0, NULL, data), "a message");
}

/* ---- trees ---- */

/* Returns the distance to the first child of a place, as in the handlers. */
static uint32_t first_half(uint32_t place) {
    uint32_t half = 1;
    if (place)
        return (place & -place) >> 1;
    while (half * 2 < ranks)
        half *= 2;
    return half;
}

static uint32_t children(void) {
    uint32_t count = 0;
    for (uint32_t half = first_half(own); half; half /= 2)
        count += own + half < ranks;
    return count;
}

/* Returns the destination of contributions and arrivals. This is the own card, or the parent's card for a rank without
 * children. */
static uint32_t first_stop(void) {
    return own && !children() ? own & (own - 1) : own;
}

/* ---- barriers ---- */

static void arrive(unsigned barrier) {
    released[barrier]++;
    put(silent, NULL, 0, first_stop(), COLLECTIVE_ARRIVE + barrier, 0);
}

static void wait_for_release(unsigned barrier) {
    wait_for(released_ct[barrier], released[barrier], "a barrier");
}

static void hear(void) {
    wait_for_release(AHEAD);
    is_told = 0;
    if (told > done_by_all)
        done_by_all = told;
}

/* Returns the next slot, once all ranks have done the slot's previous operation. */
static unsigned begin(void) {
    if (operations - done_by_all == SLOTS)
        hear();
    return operations % SLOTS;
}

/* Ends an operation after the bytes of the slot have been copied. */
static void end(void) {
    operations++;
    if (operations - done_by_all < SLOTS / 2)
        return;
    if (is_told && told <= done_by_all)
        hear();
    if (!is_told) {
        is_told = 1;
        told = operations;
        arrive(AHEAD);
    }
}

void card_barrier(void) {
    arrive(PROGRAM);
    wait_for_release(PROGRAM);
    done_by_all = operations;
}

/* ---- broadcasts ---- */

static void take(unsigned slot, void *into, size_t bytes) {
    received[slot] += bytes;
    wait_for(slot_ct[slot], received[slot], "a broadcast");
    memcpy(into, slots + slot * SLOT_BYTES, bytes);
    check(nicety_offload_copy(bytes), "a copy");
}

static void send_part(unsigned slot, const unsigned char *from, size_t bytes) {
    int is_eager = bytes <= EAGER_BYTES;
    if (is_eager) {
        from = memcpy(slots + slot * SLOT_BYTES, from, bytes);
        check(nicety_offload_copy(bytes), "a copy");
    }
    for (uint32_t half = first_half(0); half; half /= 2) {
        if (half >= ranks)
            continue;
        put(is_eager ? silent : counted, from, bytes, (own + half) % ranks, COLLECTIVE_SLOT + slot, own);
        left += !is_eager;
    }
}

void card_broadcast(void *buffer, size_t bytes, uint32_t root) {
    unsigned char *at = buffer;
    for (size_t done = 0; done < bytes; done += SLOT_BYTES) {
        size_t part = bytes - done < SLOT_BYTES ? bytes - done : SLOT_BYTES;
        unsigned slot = begin();
        if (own == root)
            send_part(slot, at + done, part);
        else
            take(slot, at + done, part);
        end();
    }
    if (own == root)
        wait_for(left_ct, left, "a broadcast");
}

/* ---- reductions ---- */

void card_reduce(const void *from, void *to, size_t bytes, int op, int type) {
    unsigned slot = begin();
    /* The contribution has left the buffer before the result arrives. */
    put(silent, from, bytes, first_stop(), COLLECTIVE_REDUCE, COLLECTIVE_WHAT(op, type, slot));
    if (own) {
        take(slot, to, bytes);
    } else {
        reduced += bytes;
        wait_for(reduced_ct, reduced, "a reduction");
        memcpy(to, slots + slot * SLOT_BYTES, bytes);
        check(nicety_offload_copy(bytes), "a copy");
    }
    /* All ranks have begun this operation, so all ranks have done the earlier operations. */
    done_by_all = operations;
    end();
}

/* ---- set-up ---- */

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_ != PTL_OK)                                                                                           \
            return code_;                                                                                              \
    } while (0)

static int entry(const ptl_handlers_t *handlers, void *start, size_t bytes, unsigned counts, ptl_handle_ct_t ct,
                 ptl_match_bits_t match_bits) {
    ptl_handle_handlers_t attached;
    ptl_handle_me_t me_handle;
    ptl_me_t me = {
        .start = start,
        .length = bytes,
        .ct_handle = ct,
        .uid = PTL_UID_ANY,
        .options = PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE | counts,
        .match_id.rank = PTL_RANK_ANY,
        .match_bits = match_bits,
    };
    TRY(PtlHandlersAttach(ni, handlers, &attached));
    return PtlMEAppendHandlers(ni, pt, &me, attached, PTL_PRIORITY_LIST, NULL, &me_handle);
}

static int set_up_barriers(const char *program) {
    for (unsigned barrier = 0; barrier < COLLECTIVE_BARRIERS; barrier++) {
        const collective_barrier_t state = {.rank = own, .ranks = ranks, .barrier = barrier, .expected = children() + 1};
        const ptl_handlers_t up = {
            .program = program,
            .header_handler = "arrive",
            .initial_state = &state,
            .initial_state_length = sizeof state,
        };
        ptl_handlers_t down = up;
        down.header_handler = "released";
        ptl_handle_ct_t *ct = &released_ct[barrier];
        TRY(PtlCTAlloc(ni, ct));
        TRY(entry(&up, slots, 0, 0, *ct, COLLECTIVE_ARRIVE + barrier));
        TRY(entry(&down, slots, 0, PTL_ME_EVENT_CT_COMM, *ct, COLLECTIVE_RELEASE + barrier));
    }
    return PTL_OK;
}

static int set_up_slots(const char *program) {
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        const collective_slot_t state = {.rank = own, .ranks = ranks, .slot = slot};
        const ptl_handlers_t handlers = {
            .program = program,
            .header_handler = "slot_header",
            .payload_handler = "slot_payload",
            .initial_state = &state,
            .initial_state_length = sizeof state,
        };
        TRY(PtlCTAlloc(ni, &slot_ct[slot]));
        TRY(entry(&handlers, slots + slot * SLOT_BYTES, SLOT_BYTES, PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES,
                  slot_ct[slot], COLLECTIVE_SLOT + slot));
    }
    return PTL_OK;
}

/* Prepares reductions of at most `bytes` bytes. This is at most one packet, or a multiple of whole packets. */
static int set_up_reductions(const char *program, uint32_t packet_bytes, uint32_t bytes) {
    uint32_t segments = (bytes + packet_bytes - 1) / packet_bytes;
    uint32_t vector = (uint32_t)(sizeof(collective_reduce_t) + segments * sizeof(collective_segment_t) + 15) & ~15u;
    collective_reduce_t *state = calloc(1, vector + bytes);
    if (!state)
        return PTL_NO_SPACE;
    state->rank = own;
    state->ranks = ranks;
    state->expected = children() + 1;
    state->packet_bytes = packet_bytes;
    state->slot_bytes = SLOT_BYTES;
    state->vector = vector;
    const ptl_handlers_t handlers = {
        .program = program,
        .header_handler = "reduce_header",
        .payload_handler = "reduce_payload",
        .initial_state = state,
        .initial_state_length = vector + bytes,
    };
    int code = entry(&handlers, slots, SLOTS * SLOT_BYTES, 0, reduced_ct, COLLECTIVE_REDUCE);
    free(state);
    return code;
}

static int set_up(const char *program) {
    ptl_ni_limits_t limits;
    TRY(PtlInit());
    TRY(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits, &ni));
    /* The highest index is used, because programs with Portals use low indices. */
    TRY(PtlPTAlloc(ni, 0, PTL_EQ_NONE, (ptl_pt_index_t)limits.max_pt_index, &pt));
    ptl_md_t memory = {.start = NULL, .length = PTL_SIZE_MAX, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    TRY(PtlMDBind(ni, &memory, &silent));
    TRY(PtlCTAlloc(ni, &left_ct));
    TRY(PtlCTAlloc(ni, &reduced_ct));
    memory.ct_handle = left_ct;
    memory.options = PTL_MD_EVENT_CT_SEND;
    TRY(PtlMDBind(ni, &memory, &counted));
    TRY(set_up_barriers(program));
    return set_up_slots(program);
}

int card_give_up(void) {
    if (ni)
        PtlNIFini(ni);
    return 0;
}

int card_set_up(const char *program, uint32_t packet_bytes) {
    own = nicety_exec_rank();
    ranks = nicety_exec_ranks();
    slots = aligned_alloc(4096, SLOTS * SLOT_BYTES);
    if (!slots)
        return 0;
    if (set_up(program) != PTL_OK)
        return card_give_up();
    for (uint32_t bytes = SLOT_BYTES; bytes >= packet_bytes; bytes /= 2) {
        int code = set_up_reductions(program, packet_bytes, bytes);
        if (code == PTL_OK)
            return (int)bytes;
        if (code != PTL_NO_SPACE)
            break;
    }
    return card_give_up();
}
