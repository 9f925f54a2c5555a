/* A host's program with Portals 4: each of its arguments is a test of one part of the interface. Every wrong value ends it. */
#include <nicety_exec.h>
#include <portals4.h>
#include <portals4_spin.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WANT(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "line %d: not %s; the last reason is '%s'\n", __LINE__, #what, nicety_reason());           \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define OK(call) WANT((call) == PTL_OK)
#define SILENT (PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE)

static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;
static ptl_handle_ct_t ct;
static uint32_t rank;
static ptl_process_t other;
static char in[65536], out[65536];

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static ptl_handle_me_t entry(void *start, size_t length, unsigned options, ptl_match_bits_t bits, ptl_list_t list) {
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = start, .length = length, .ct_handle = ct, .uid = PTL_UID_ANY, .options = options,
                   .match_id.rank = PTL_RANK_ANY, .match_bits = bits};
    if (list == PTL_OVERFLOW_LIST)
        me.ignore_bits = UINT64_MAX;
    OK(PtlMEAppend(ni, 1, &me, list, &in, &handle));
    return handle;
}

static ptl_handle_md_t descriptor(void *start, size_t length, unsigned options) {
    ptl_handle_md_t handle;
    ptl_md_t md = {.start = start, .length = length, .options = options, .eq_handle = eq, .ct_handle = ct};
    OK(PtlMDBind(ni, &md, &handle));
    return handle;
}

static ptl_event_t next(void) {
    ptl_event_t event;
    OK(PtlEQWait(eq, &event));
    return event;
}

static uint64_t wait_for(uint64_t count) {
    ptl_ct_event_t value;
    OK(PtlCTWait(ct, count, &value));
    return value.success;
}

/* Half a round trip of puts that the host answers, by size. */
static void pingpong(void) {
    static const size_t sizes[] = {8, 4096, 65536};
    entry(in, sizeof in, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE | SILENT, 7, PTL_PRIORITY_LIST);
    ptl_md_t md = {.start = out, .length = sizeof out, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t from;
    OK(PtlMDBind(ni, &md, &from));
    uint64_t received = 0;
    for (int s = 0; s < 3; s++) {
        OK(nicety_exec_barrier());
        double start = now_ns();
        for (int i = 0; i < 10; i++) {
            for (uint32_t turn = 0; turn < 2; turn++) {
                if (turn == rank) {
                    memset(out, i + s + (int)rank, sizes[s]);
                    OK(PtlPut(from, 0, sizes[s], PTL_NO_ACK_REQ, other, 1, 7, 0, NULL, 0));
                } else {
                    wait_for(++received);
                    for (size_t b = 0; b < sizes[s]; b++)
                        WANT(in[b] == (char)(i + s + 1 - (int)rank));
                }
            }
        }
        if (!rank)
            printf("%zu %.3f\n", sizes[s], (now_ns() - start) / 20);
    }
}

/* Full events at both ends, an acknowledgement, polls, and the fields of each. */
static void events(void) {
    ptl_event_t event;
    unsigned which;
    entry(in, 256, PTL_ME_OP_PUT, 5, PTL_PRIORITY_LIST);
    WANT(next().type == PTL_EVENT_LINK);
    WANT(PtlEQGet(eq, &event) == PTL_EQ_EMPTY);
    WANT(PtlEQPoll(&eq, 1, 1, &event, &which) == PTL_EQ_EMPTY);
    OK(nicety_exec_barrier());
    if (!rank) {
        memcpy(out, "forty-two", 10);
        ptl_handle_md_t md = descriptor(out, 10, 0);
        OK(PtlPut(md, 0, 10, PTL_ACK_REQ, other, 1, 5, 3, out + 1, 99));
        ptl_event_t sent = next(), ack = next();
        WANT(sent.type == PTL_EVENT_SEND && sent.ni_fail_type == PTL_NI_OK && sent.user_ptr == out + 1);
        WANT(ack.type == PTL_EVENT_ACK && ack.mlength == 10 && ack.remote_offset == 3 && ack.user_ptr == out + 1);
        OK(PtlMDRelease(md));
        return;
    }
    /* In a polling loop, time advances. */
    while (PtlEQGet(eq, &event) == PTL_EQ_EMPTY)
        ;
    WANT(event.type == PTL_EVENT_PUT && event.ni_fail_type == PTL_NI_OK && event.initiator.rank == 0);
    WANT(event.start == in + 3 && event.mlength == 10 && event.rlength == 10 && event.remote_offset == 3);
    WANT(event.match_bits == 5 && event.hdr_data == 99 && event.user_ptr == in && event.pt_index == 1);
    WANT(event.ptl_list == PTL_PRIORITY_LIST && !strcmp(in + 3, "forty-two"));
}

/* A message that precedes its entry is in the overflow list's memory; a search finds it first. */
static void overflow(void) {
    if (rank) {
        entry(in, 256, PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_COMM_DISABLE | SILENT, 0, PTL_OVERFLOW_LIST);
        OK(nicety_exec_barrier());
        OK(nicety_exec_barrier());
        ptl_me_t me = {.start = out, .length = 4, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | SILENT, .match_id.rank = 0, .match_bits = 9};
        OK(PtlMESearch(ni, 1, &me, PTL_SEARCH_ONLY, NULL));
        ptl_event_t event = next();
        WANT(event.type == PTL_EVENT_SEARCH && event.ni_fail_type == PTL_NI_NO_MATCH);
        me.match_bits = 3;
        OK(PtlMESearch(ni, 1, &me, PTL_SEARCH_ONLY, NULL));
        event = next();
        WANT(event.type == PTL_EVENT_SEARCH && event.ni_fail_type == PTL_NI_OK && event.mlength == 4);
        entry(out, 4, PTL_ME_OP_PUT | PTL_ME_USE_ONCE | SILENT, 3, PTL_PRIORITY_LIST);
        event = next();
        WANT(event.type == PTL_EVENT_PUT_OVERFLOW && event.mlength == 4 && event.start == in);
        WANT(!memcmp(event.start, "\7\10\11\12", 4));
    } else {
        memcpy(out, "\7\10\11\12", 4);
        OK(nicety_exec_barrier());
        OK(PtlPut(descriptor(out, 4, 0), 0, 4, PTL_NO_ACK_REQ, other, 1, 3, 0, NULL, 0));
        WANT(next().type == PTL_EVENT_SEND);
        OK(nicety_exec_compute(5000));
        OK(nicety_exec_barrier());
    }
}

/* A get, and the atomics, at the memory of rank 1. */
static void atomics(void) {
    uint64_t *there = (uint64_t *)in, *here = (uint64_t *)out, one = 0;
    there[0] = 100;
    OK(nicety_exec_barrier());
    if (rank) {
        entry(in, 64, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE | SILENT, 5, PTL_PRIORITY_LIST);
        OK(nicety_exec_barrier());
        OK(nicety_exec_barrier());
        OK(PtlAtomicSync());
        WANT(there[0] == 77 && there[1] == 0);
        return;
    }
    OK(nicety_exec_barrier());
    ptl_handle_md_t md = descriptor(out, 64, PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE);
    OK(PtlGet(md, 0, 8, other, 1, 5, 0, NULL));
    wait_for(1);
    WANT(here[0] == 100);
    here[1] = 11;
    OK(PtlAtomic(md, 8, 8, PTL_CT_ACK_REQ, other, 1, 5, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    wait_for(2);
    OK(PtlFetchAtomic(md, 16, md, 8, 8, other, 1, 5, 0, NULL, 0, PTL_MAX, PTL_UINT64_T));
    wait_for(3);
    WANT(here[2] == 111);
    here[3] = 77;
    one = 111;
    OK(PtlSwap(md, 32, md, 24, 8, other, 1, 5, 0, NULL, 0, &one, PTL_CSWAP, PTL_UINT64_T));
    wait_for(4);
    WANT(here[4] == 111);
    WANT(PtlAtomic(md, 8, 8, PTL_NO_ACK_REQ, other, 1, 5, 0, NULL, 0, PTL_CSWAP, PTL_UINT64_T) == PTL_ARG_INVALID);
    WANT(PtlAtomic(md, 8, 16, PTL_NO_ACK_REQ, other, 1, 5, 0, NULL, 0, PTL_SUM, PTL_LONG_DOUBLE) == PTL_ARG_INVALID);
    OK(nicety_exec_barrier());
}

/* Rank 1's card answers by itself: a triggered put after the arrival of a put, and a chain of counters. */
static void triggers(void) {
    ptl_ct_event_t value;
    ptl_handle_ct_t second, third;
    unsigned which;
    OK(PtlCTAlloc(ni, &second));
    OK(PtlCTAlloc(ni, &third));
    entry(in, 64, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE | SILENT, 5, PTL_PRIORITY_LIST);
    ptl_md_t of = {.start = out, .length = 64, .options = PTL_MD_EVENT_SEND_DISABLE, .eq_handle = eq,
                   .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t md;
    OK(PtlMDBind(ni, &of, &md));
    memset(out, 1 + (int)rank, 64);
    if (rank) {
        OK(PtlTriggeredPut(md, 0, 64, PTL_NO_ACK_REQ, other, 1, 5, 0, NULL, 0, ct, 1));
        OK(PtlTriggeredCTInc(second, (ptl_ct_event_t){.success = 5}, ct, 1));
        OK(PtlTriggeredCTSet(third, (ptl_ct_event_t){.failure = 2}, second, 5));
    }
    OK(nicety_exec_barrier());
    if (!rank) {
        OK(PtlPut(md, 0, 64, PTL_NO_ACK_REQ, other, 1, 5, 0, NULL, 0));
        wait_for(1);
        WANT(in[0] == 2 && in[63] == 2);
        /* A counter that does not change. */
        OK(PtlCTInc(second, (ptl_ct_event_t){.success = 3}));
        do
            OK(PtlCTGet(second, &value));
        while (value.success < 3);
        const ptl_handle_ct_t counters[] = {third, second};
        const ptl_size_t tests[] = {1, 4};
        WANT(PtlCTPoll(counters, tests, 2, 1, &value, &which) == PTL_CT_NONE_REACHED);
        OK(PtlCTSet(second, (ptl_ct_event_t){.success = 4}));
        OK(PtlCTPoll(counters, tests, 2, PTL_TIME_FOREVER, &value, &which));
        WANT(which == 1 && value.success == 4);
        return;
    }
    OK(PtlCTWait(third, 1, &value));
    WANT(value.failure == 2 && value.success == 0);
    OK(PtlCTGet(second, &value));
    WANT(value.success == 5);
}

/* Rank 1's card has handlers, which send a pong from the state of the ping's packet or from host memory. */
static void handlers(const char *program) {
    /* As in pingpong.h. */
    struct {
        uint64_t match_bits;
        uint32_t peer, packet_bytes, length, padding;
    } state = {8, 0, 4096, 0, 0}, there;
    static const size_t sizes[] = {8, 4096, 65536};
    if (rank) {
        ptl_handle_hpu_mem_t memory;
        ptl_handle_handlers_t attached;
        ptl_handle_me_t me;
        OK(PtlHPUAllocMem(ni, sizeof state, &memory));
        OK(PtlHPUWrite(memory, 0, &state, sizeof state));
        ptl_handlers_t own = {.program = program, .hpu_memory = memory};
        OK(PtlHandlersAttach(ni, &own, &attached));
        ptl_me_t of = {.start = in, .length = sizeof in, .ct_handle = ct, .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE | SILENT,
                       .match_id.rank = PTL_RANK_ANY, .match_bits = 7};
        OK(PtlMEAppendHandlers(ni, 1, &of, attached, PTL_PRIORITY_LIST, NULL, &me));
        for (int s = 0; s < 3; s++)
            OK(nicety_exec_barrier());
        wait_for(30);
        OK(PtlHPURead(memory, 0, &there, sizeof there));
        WANT(there.length == 65536 && there.match_bits == 8);
        WANT(PtlHandlersDetach(attached) == PTL_IN_USE && PtlHPUFreeMem(memory) == PTL_IN_USE);
        OK(PtlMEUnlink(me));
        OK(PtlHandlersDetach(attached));
        OK(PtlHPUFreeMem(memory));
        return;
    }
    entry(in, sizeof in, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE | SILENT, 8, PTL_PRIORITY_LIST);
    ptl_md_t md = {.start = out, .length = sizeof out, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t from;
    OK(PtlMDBind(ni, &md, &from));
    uint64_t received = 0;
    for (int s = 0; s < 3; s++) {
        OK(nicety_exec_barrier());
        double start = now_ns();
        for (int i = 0; i < 10; i++) {
            memset(out, i + s + 1, sizes[s]);
            OK(PtlPut(from, 0, sizes[s], PTL_NO_ACK_REQ, other, 1, 7, 0, NULL, 0));
            wait_for(++received);
            WANT(!memcmp(in, out, sizes[s]));
        }
        printf("%zu %.3f\n", sizes[s], (now_ns() - start) / 20);
    }
}

/* Rank 1's card multiplies arriving complex numbers into those of its host. */
static void accumulate(const char *program) {
    enum { NUMBERS = 1500 };
    float *there = (float *)in, *sent = (float *)out;
    for (int i = 0; i < 2 * NUMBERS; i++) {
        there[i] = (float)(i % 7);
        sent[i] = (float)(i % 5);
    }
    if (!rank) {
        /* With a counter alone, a full acknowledgement is a count. */
        ptl_md_t of = {.start = out, .length = sizeof out, .options = PTL_MD_EVENT_CT_ACK, .eq_handle = PTL_EQ_NONE,
                       .ct_handle = ct};
        ptl_handle_md_t md;
        OK(PtlMDBind(ni, &of, &md));
        OK(nicety_exec_barrier());
        double start = now_ns();
        OK(PtlPut(md, 0, sizeof(float) * 2 * NUMBERS, PTL_ACK_REQ, other, 1, 7, 0, NULL, 0));
        wait_for(1);
        printf("%.3f\n", now_ns() - start);
        OK(nicety_exec_barrier());
        return;
    }
    ptl_handle_handlers_t attached;
    ptl_handle_me_t me;
    ptl_handlers_t own = {.program = program};
    OK(PtlHandlersAttach(ni, &own, &attached));
    ptl_me_t of = {.start = in, .length = sizeof in, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | SILENT, .match_id.rank = PTL_RANK_ANY,
                   .match_bits = 7};
    OK(PtlMEAppendHandlers(ni, 1, &of, attached, PTL_PRIORITY_LIST, NULL, &me));
    OK(nicety_exec_barrier());
    OK(nicety_exec_barrier());
    for (int i = 0; i < NUMBERS; i++) {
        float a = (float)(2 * i % 5), b = (float)((2 * i + 1) % 5), c = (float)(2 * i % 7), d = (float)((2 * i + 1) % 7);
        WANT(there[2 * i] == a * c - b * d && there[2 * i + 1] == a * d + b * c);
    }
}

/* Invalid arguments, and their return codes. */
static void refusals(void) {
    ptl_handle_ni_t same;
    ptl_ni_limits_t limits;
    ptl_process_t map[3];
    ptl_size_t size;
    ptl_pt_index_t pt;
    ptl_ct_event_t value;
    ptl_event_t event;
    ptl_handle_any_t handle;
    ptl_handle_eq_t deep;
    unsigned options = PTL_NI_MATCHING | PTL_NI_LOGICAL;
    WANT(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING, PTL_PID_ANY, NULL, NULL, &same) == PTL_ARG_INVALID);
    WANT(PtlNIInit(7, options, PTL_PID_ANY, NULL, NULL, &same) == PTL_ARG_INVALID);
    WANT(PtlNIInit(0, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &same) == PTL_NO_SPACE);
    OK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, &limits, &same));
    WANT(same == ni && limits.max_msg_size > 1 << 20 && limits.max_entries > 100 && limits.max_pt_index > 3);
    OK(PtlNIFini(same));
    OK(PtlGetMap(ni, 3, map, &size));
    WANT(size == 2 && map[1].phys.nid == 1);
    OK(PtlSetMap(ni, 2, map));
    map[0].phys.nid = 1;
    WANT(PtlSetMap(ni, 2, map) == PTL_IGNORED);
    WANT(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 1, &pt) == PTL_PT_IN_USE);
    WANT(PtlPTAlloc(ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, PTL_PT_ANY, &pt) == PTL_PT_EQ_NEEDED);
    WANT(PtlPTAlloc(ni, 1u << 20, PTL_EQ_NONE, PTL_PT_ANY, &pt) == PTL_ARG_INVALID);
    WANT(PtlPTAlloc(ni + 1, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt) == PTL_ARG_INVALID);
    ptl_md_t md = {.start = out, .length = 64, .options = PTL_IOVEC, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    WANT(PtlMDBind(ni, &md, &handle) == PTL_ARG_INVALID && strstr(nicety_reason(), "memory descriptor"));
    md.options = 0;
    md.ct_handle = eq;
    WANT(PtlMDBind(ni, &md, &handle) == PTL_ARG_INVALID && strstr(nicety_reason(), "not the handle of a counter"));
    md.ct_handle = PTL_CT_NONE;
    md.length = PTL_SIZE_MAX;
    md.start = NULL;
    OK(PtlMDBind(ni, &md, &handle));
    WANT(PtlPut(handle, 0, 8, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 2}, 1, 0, 0, NULL, 0) == PTL_ARG_INVALID);
    WANT(PtlPut(handle, 0, 8, (ptl_ack_req_t)9, other, 1, 0, 0, NULL, 0) == PTL_ARG_INVALID);
    WANT(PtlPut(handle, 0, 8, PTL_NO_ACK_REQ, other, 0, 0, 0, NULL, 0) == PTL_ARG_INVALID);
    WANT(PtlPTFree(ni, 0) == PTL_ARG_INVALID && PtlPTDisable(ni, UINT32_MAX) == PTL_ARG_INVALID);
    WANT(PtlPut(eq, 0, 8, PTL_NO_ACK_REQ, other, 1, 0, 0, NULL, 0) == PTL_ARG_INVALID);
    WANT(PtlTriggeredGet(handle, 0, 8, other, 1, 0, 0, NULL, PTL_CT_NONE, 1) == PTL_ARG_INVALID);
    WANT(PtlTriggeredPut(handle, 0, 1ull << 63, PTL_NO_ACK_REQ, other, 1, 0, 0, NULL, 0, ct, 9) == PTL_ARG_INVALID);
    ptl_me_t me = {.start = in, .length = 8, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                   .options = PTL_ME_LOCAL_INC_UH_RLENGTH, .match_id.rank = PTL_RANK_ANY};
    WANT(PtlMEAppend(ni, 1, &me, PTL_PRIORITY_LIST, NULL, &handle) == PTL_ARG_INVALID);
    me.options = PTL_ME_OP_PUT;
    WANT(PtlMEAppend(ni, 3, &me, PTL_PRIORITY_LIST, NULL, &handle) == PTL_ARG_INVALID);
    WANT(PtlMEAppendHandlers(ni, 1, &me, ct, PTL_PRIORITY_LIST, NULL, &handle) == PTL_ARG_INVALID);
    ptl_le_t le = {.start = in, .length = 8, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY, .options = PTL_LE_OP_PUT};
    WANT(PtlLEAppend(ni, 1, &le, PTL_PRIORITY_LIST, NULL, &handle) == PTL_ARG_INVALID);
    ptl_handlers_t none = {.program = "/nowhere.elf"}, no = {.program = "/proc/self/exe"};
    WANT(PtlHandlersAttach(ni, &none, &handle) == PTL_ARG_INVALID && strstr(nicety_reason(), "/nowhere.elf"));
    WANT(PtlHandlersAttach(ni, &no, &handle) == PTL_ARG_INVALID);
    WANT(PtlHPUAllocMem(ni, 1ull << 40, &handle) == PTL_NO_SPACE);
    WANT(PtlCTInc(ct, (ptl_ct_event_t){.success = 1, .failure = 1}) == PTL_ARG_INVALID);
    OK(PtlEQAlloc(ni, 4, &deep));
    OK(PtlEQFree(deep));
    WANT(PtlEQGet(deep, &event) == PTL_ARG_INVALID);
    OK(PtlCTAlloc(ni, &handle));
    OK(PtlCTFree(handle));
    WANT(PtlCTWait(handle, 1, &value) == PTL_ARG_INVALID && PtlCTGet(handle, &value) == PTL_ARG_INVALID);
    WANT(PtlEQFree(eq) == PTL_IN_USE);
    OK(PtlNIHandle(ct, &same));
    WANT(same == ni && PtlHandleIsEqual(ct, ct) && !PtlHandleIsEqual(ct, eq));
    OK(PtlAbort());
    WANT(PtlCTWait(ct, 1, &value) == PTL_ABORTED && PtlEQWait(eq, &event) == PTL_ABORTED);
    /* A new interface has no state of the old one. */
    OK(PtlNIFini(ni));
    WANT(PtlCTGet(ct, &value) == PTL_NO_INIT);
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni));
    OK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 1, &pt));
    WANT(PtlCTGet(ct, &value) == PTL_ARG_INVALID);
    OK(PtlLEAppend(ni, 1, &le, PTL_PRIORITY_LIST, NULL, &handle));
    ptl_process_t id;
    OK(PtlGetId(ni, &id));
    WANT(id.phys.nid == rank && id.phys.pid == 0);
}

static uint64_t drawn;

static uint64_t draw(uint64_t below) {
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return drawn % below;
}

/* Returns a careless program's number, or a valid one. */
static uint64_t wild(uint64_t good) {
    static const uint64_t odd[] = {0, 1, 7, 4096, UINT32_MAX, 1ull << 40, 1ull << 63, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2};
    switch (draw(4)) {
    case 0:
        return odd[draw(sizeof odd / sizeof *odd)];
    case 1:
        return drawn;
    default:
        return good;
    }
}

/* Calls with arguments of all kinds. None may do more than be refused. */
static void wilds(const char *seed) {
    ptl_handle_any_t made[64];
    ptl_handle_eq_t queues[1] = {eq};
    ptl_event_t event;
    ptl_ct_event_t value;
    unsigned which;
    int refused = 0, done = 0;
    drawn = strtoull(seed, NULL, 10) * 2 + 1 + rank * 1000003ull;
    for (unsigned i = 0; i < 64; i++)
        made[i] = i % 2 ? ct : descriptor(out, 4096, PTL_MD_EVENT_CT_ACK);
    for (int i = 0; i < 1500; i++) {
        ptl_handle_any_t a = wild(made[draw(64)]), b = wild(made[draw(64)]), *into = &made[draw(64)];
        ptl_process_t to = {.phys = {(uint32_t)wild(1 - rank), (uint32_t)wild(0)}};
        uint64_t length = wild(draw(4096)), offset = wild(draw(4096));
        uint32_t pt = (uint32_t)wild(1), bits = (uint32_t)wild(draw(1 << 16));
        ptl_me_t me = {.start = in, .length = draw(65536), .ct_handle = wild(PTL_CT_NONE), .uid = (uint32_t)wild(PTL_UID_ANY),
                       .options = bits, .match_id = to, .match_bits = draw(4), .ignore_bits = wild(3), .min_free = draw(2)};
        ptl_md_t md = {.start = out, .length = 4096, .options = bits % 64, .eq_handle = wild(eq), .ct_handle = wild(ct)};
        ptl_ct_event_t by = {.success = wild(1), .failure = wild(0)};
        ptl_op_t op = (ptl_op_t)wild(draw(18));
        ptl_datatype_t type = (ptl_datatype_t)wild(draw(14));
        ptl_ack_req_t ack = (ptl_ack_req_t)wild(draw(4));
        int code = PTL_OK;
        switch (draw(26)) {
        case 0: code = PtlMDBind(ni, &md, into); break;
        case 1: code = PtlMDRelease(a); break;
        case 2: code = PtlMEAppend(ni, pt, &me, (ptl_list_t)wild(draw(2)), NULL, into); break;
        case 3: code = PtlMEUnlink(a); break;
        case 4: code = PtlMESearch(ni, pt, &me, (ptl_search_op_t)wild(draw(2)), NULL); break;
        case 5: code = PtlEQAlloc(ni, wild(8), into); break;
        case 6: code = PtlEQFree(a); break;
        case 7: code = PtlEQGet(wild(eq), &event); break;
        case 8: code = PtlEQPoll(queues, 1, (ptl_time_t)draw(2), &event, &which); break;
        case 9: code = PtlCTAlloc(ni, into); break;
        case 10: code = PtlCTFree(a); break;
        case 11: code = PtlCTGet(a, &value); break;
        case 12: code = PtlCTPoll(&a, &length, 1, (ptl_time_t)draw(2), &value, &which); break;
        case 13: code = PtlCTSet(a, by); break;
        case 14: code = PtlCTInc(a, by); break;
        case 15: code = PtlTriggeredCTInc(a, by, b, length); break;
        case 16: code = PtlCTCancelTriggered(a); break;
        case 17: code = PtlPut(a, offset, length, ack, to, pt, draw(4), offset, NULL, drawn); break;
        case 18: code = PtlGet(a, offset, length, to, pt, draw(4), offset, NULL); break;
        case 19: code = PtlAtomic(a, offset, length, ack, to, pt, draw(4), offset, NULL, drawn, op, type); break;
        case 20: code = PtlFetchAtomic(a, offset, b, 0, length, to, pt, draw(4), offset, NULL, drawn, op, type); break;
        case 21: code = PtlSwap(a, offset, b, 0, length, to, pt, draw(4), offset, NULL, drawn, in, op, type); break;
        case 22: code = PtlTriggeredPut(a, offset, length, ack, to, pt, draw(4), 0, NULL, drawn, b, wild(draw(9))); break;
        case 23: code = draw(2) ? PtlPTEnable(ni, pt) : PtlPTDisable(ni, pt); break;
        case 24: code = PtlHPUAllocMem(ni, length, into); break;
        default: code = draw(2) ? PtlHPUFreeMem(a) : PtlHPURead(a, offset, in, length % 4096); break;
        }
        WANT(code >= PTL_OK && code <= PTL_IGNORED && code != PTL_NO_INIT);
        *(code ? &refused : &done) += 1;
    }
    WANT(refused > 100 && done > 100);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    ptl_pt_index_t pt;
    ptl_process_t id;
    WANT(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni) == PTL_NO_INIT);
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    OK(PtlGetId(ni, &id));
    rank = id.rank;
    WANT(rank == nicety_exec_rank() && nicety_exec_ranks() == 2);
    other.rank = 1 - rank;
    OK(PtlEQAlloc(ni, 64, &eq));
    OK(PtlCTAlloc(ni, &ct));
    OK(PtlPTAlloc(ni, 0, eq, 1, &pt));
    WANT(pt == 1);
    if (!strcmp(what, "pingpong"))
        pingpong();
    else if (!strcmp(what, "events"))
        events();
    else if (!strcmp(what, "overflow"))
        overflow();
    else if (!strcmp(what, "atomics"))
        atomics();
    else if (!strcmp(what, "triggers"))
        triggers();
    else if (!strcmp(what, "handlers"))
        handlers(words[2]);
    else if (!strcmp(what, "accumulate"))
        accumulate(words[2]);
    else if (!strcmp(what, "refusals"))
        refusals();
    else if (!strcmp(what, "wilds"))
        wilds(words[2]);
    else if (!strcmp(what, "leave"))
        return rank ? 0 : (sleep(1), 0);
    else if (!strcmp(what, "killed"))
        return rank ? raise(SIGKILL) : (sleep(1), 0);
    else if (!strcmp(what, "lost")) {
        /* Nobody sends. */
        wait_for(1);
    } else if (!strcmp(what, "poll")) {
        ptl_event_t event;
        while (PtlEQGet(eq, &event))
            ;
    } else if (!strcmp(what, "unmapped")) {
        ptl_md_t md = {.start = (void *)64, .length = 64, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
        ptl_handle_md_t handle;
        OK(PtlMDBind(ni, &md, &handle));
        OK(PtlPut(handle, 0, 64, PTL_NO_ACK_REQ, other, 1, 0, 0, NULL, 0));
        wait_for(1);
    } else
        return 2;
    PtlFini();
    WANT(PtlInit() == PTL_FAIL);
    return 0;
}
