/* Portals 4: events, counters, and the movement of data. */

#include "portals.h"

#include <string.h>

/* ---- events ---- */

#define EVENT_WORDS 15

static void set_event(const uint64_t *words, ptl_event_t *event) {
    memset(event, 0, sizeof *event);
    event->type = (ptl_event_kind_t)words[0];
    event->ni_fail_type = (ptl_ni_fail_t)words[1];
    event->initiator = portals_process(words[2]);
    event->pt_index = (ptl_pt_index_t)words[3];
    event->ptl_list = (ptl_list_t)words[4];
    event->match_bits = words[5];
    event->uid = (ptl_uid_t)words[6];
    event->atomic_operation = (ptl_op_t)words[7];
    event->atomic_type = (ptl_datatype_t)words[8];
    event->hdr_data = words[9];
    event->rlength = words[10];
    event->mlength = words[11];
    event->remote_offset = words[12];
    event->start = (void *)(uintptr_t)words[13];
    event->user_ptr = (void *)(uintptr_t)words[14];
}

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle) {
    int code = portals_check(ni_handle);
    if (!code && !eq_handle)
        return portals_refuse(PTL_ARG_INVALID, "eq_handle is NULL");
    if (!code && !(code = portals_ask(OP_EQ_ALLOC, &count, 1)))
        *eq_handle = count;
    return code;
}

int PtlEQFree(ptl_handle_eq_t eq_handle) {
    return portals_ask(OP_EQ_FREE, &eq_handle, 1);
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event) {
    uint64_t words[EVENT_WORDS] = {eq_handle};
    if (!event)
        return portals_refuse(PTL_ARG_INVALID, "event is NULL");
    int code = portals_ask(OP_EQ_GET, words, EVENT_WORDS);
    if (!code)
        set_event(words, event);
    return code;
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event) {
    unsigned which;
    return PtlEQPoll(&eq_handle, 1, PTL_TIME_FOREVER, event, &which);
}

int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout, ptl_event_t *event,
              unsigned int *which) {
    uint64_t words[EVENT_WORDS + 1] = {(uintptr_t)eq_handles, size, timeout};
    if (!eq_handles || !size || !event || !which)
        return portals_refuse(PTL_ARG_INVALID, "no queues, or event or which is NULL");
    if (portals_aborted())
        return portals_refuse(PTL_ABORTED, "PtlAbort was called");
    int code = portals_ask(OP_EQ_POLL, words, EVENT_WORDS + 1);
    if (!code) {
        set_event(words, event);
        *which = (unsigned)words[EVENT_WORDS];
    }
    return code;
}

/* ---- counters ---- */

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle) {
    uint64_t word = 0;
    int code = portals_check(ni_handle);
    if (!code && !ct_handle)
        return portals_refuse(PTL_ARG_INVALID, "ct_handle is NULL");
    if (!code && !(code = portals_ask(OP_CT_ALLOC, &word, 1)))
        *ct_handle = word;
    return code;
}

int PtlCTFree(ptl_handle_ct_t ct_handle) {
    return portals_ask(OP_CT_FREE, &ct_handle, 1);
}

int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle) {
    return portals_ask(OP_CT_CANCEL, &ct_handle, 1);
}

static int count(uint32_t op, uint64_t *words, unsigned size, ptl_ct_event_t *event) {
    if (!event)
        return portals_refuse(PTL_ARG_INVALID, "event is NULL");
    if (op != OP_CT_GET && portals_aborted())
        return portals_refuse(PTL_ABORTED, "PtlAbort was called");
    int code = portals_ask(op, words, size);
    if (!code)
        *event = (ptl_ct_event_t){.success = words[0], .failure = words[1]};
    return code;
}

int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event) {
    uint64_t words[2] = {ct_handle};
    return count(OP_CT_GET, words, 2, event);
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event) {
    uint64_t words[] = {ct_handle, test};
    return count(OP_CT_WAIT, words, 2, event);
}

int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size, ptl_time_t timeout,
              ptl_ct_event_t *event, unsigned int *which) {
    uint64_t words[] = {(uintptr_t)ct_handles, (uintptr_t)tests, size, timeout};
    if (!ct_handles || !tests || !size || !which)
        return portals_refuse(PTL_ARG_INVALID, "no counters or tests, or which is NULL");
    int code = count(OP_CT_POLL, words, 4, event);
    if (!code)
        *which = (unsigned)words[2];
    return code;
}

/* A call without a trigger has PTL_CT_NONE as its counter. */
static int change(uint32_t op, ptl_handle_ct_t ct, ptl_ct_event_t by, ptl_handle_ct_t trigger, ptl_size_t threshold) {
    uint64_t words[] = {ct, by.success, by.failure, trigger, threshold};
    return portals_ask(op, words, 5);
}

/* Checks that the trigger of a triggered operation is a counter. */
static int triggered(ptl_handle_ct_t trigger) {
    return trigger == PTL_CT_NONE ? portals_refuse(PTL_ARG_INVALID, "a triggered operation has a counter") : PTL_OK;
}

int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct) {
    return change(OP_CT_SET, ct_handle, new_ct, PTL_CT_NONE, 0);
}

int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment) {
    return change(OP_CT_INC, ct_handle, increment, PTL_CT_NONE, 0);
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold) {
    int code = triggered(trig_ct_handle);
    return code ? code : change(OP_CT_INC, ct_handle, increment, trig_ct_handle, threshold);
}

int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold) {
    int code = triggered(trig_ct_handle);
    return code ? code : change(OP_CT_SET, ct_handle, new_ct, trig_ct_handle, threshold);
}

/* ---- operations ---- */

/* The arguments of an operation of any kind. */
struct operation {
    ptl_handle_md_t md, get_md;
    ptl_size_t local_offset, local_get_offset, length, remote_offset;
    ptl_ack_req_t ack;
    ptl_process_t target;
    ptl_pt_index_t pt;
    ptl_match_bits_t match_bits;
    void *user_ptr;
    ptl_hdr_data_t hdr_data;
    ptl_op_t op;
    ptl_datatype_t type;
    const void *operand;
    ptl_handle_ct_t trigger;
    ptl_size_t threshold;
};

static unsigned size_of(ptl_datatype_t type) {
    static const unsigned char sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16};
    return (unsigned)type < sizeof sizes ? sizes[type] : 0;
}

static int post(uint32_t kind, struct operation o) {
    uint64_t rank, operand[2] = {0};
    int code = portals_check(NI_HANDLE);
    if (!code)
        code = portals_index(o.pt);
    if (!code)
        code = portals_rank(o.target, 0, &rank);
    if (code)
        return code;
    int has_operand = kind == OP_SWAP && o.op > PTL_SWAP;
    if (kind >= OP_ATOMIC && !size_of(o.type))
        return portals_refuse(PTL_ARG_INVALID, "these cards have no atomics on this type");
    if (has_operand && !o.operand)
        return portals_refuse(PTL_ARG_INVALID, "a conditional or masked swap has an operand");
    if (has_operand)
        memcpy(operand, o.operand, size_of(o.type));
    uint64_t words[] = {
        o.md,       o.local_offset,
        o.length,   o.ack,
        rank,       o.pt,
        portals_matches() ? o.match_bits : 0,
        o.remote_offset,
        (uintptr_t)o.user_ptr,
        o.hdr_data, o.trigger,
        o.threshold, o.op,
        o.type,     o.get_md,
        o.local_get_offset,
        operand[0], operand[1],
        has_operand ? size_of(o.type) : 0,
    };
    return portals_ask(kind, words, sizeof words / sizeof *words);
}

/* The arguments that a call shares with its triggered form. */
#define TO                                                                                                             \
    .length = length, .target = target_id, .pt = pt_index, .match_bits = match_bits, .remote_offset = remote_offset,   \
    .user_ptr = user_ptr
#define ONE .md = md_handle, .local_offset = local_offset, TO
#define BOTH                                                                                                           \
    .md = put_md_handle, .local_offset = local_put_offset, .get_md = get_md_handle,                                    \
    .local_get_offset = local_get_offset, TO, .hdr_data = hdr_data, .op = operation, .type = datatype
#define NOW .trigger = PTL_CT_NONE
#define LATER .trigger = trig_ct_handle, .threshold = threshold

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
           void *user_ptr, ptl_hdr_data_t hdr_data) {
    return post(OP_PUT, (struct operation){ONE, .ack = ack_req, .hdr_data = hdr_data, NOW});
}

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
           ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr) {
    return post(OP_GET, (struct operation){ONE, NOW});
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
              ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
              void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype) {
    return post(OP_ATOMIC, (struct operation){ONE, .ack = ack_req, .hdr_data = hdr_data, .op = operation,
                                              .type = datatype, NOW});
}

int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                   ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                   ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                   ptl_op_t operation, ptl_datatype_t datatype) {
    return post(OP_FETCH_ATOMIC, (struct operation){BOTH, NOW});
}

int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
            const void *operand, ptl_op_t operation, ptl_datatype_t datatype) {
    return post(OP_SWAP, (struct operation){BOTH, .operand = operand, NOW});
}

int PtlAtomicSync(void) {
    int code = portals_check(NI_HANDLE);
    return code ? code : portals_ask(OP_ATOMIC_SYNC, NULL, 0);
}

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold) {
    int code = triggered(trig_ct_handle);
    return code ? code : post(OP_PUT, (struct operation){ONE, .ack = ack_req, .hdr_data = hdr_data, LATER});
}

int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
                    ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                    ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
    int code = triggered(trig_ct_handle);
    return code ? code : post(OP_GET, (struct operation){ONE, LATER});
}

int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                       ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                       ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                       ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
    int code = triggered(trig_ct_handle);
    return code ? code
                : post(OP_ATOMIC, (struct operation){ONE, .ack = ack_req, .hdr_data = hdr_data, .op = operation,
                                                     .type = datatype, LATER});
}

int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id,
                            ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                            void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                            ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
    int code = triggered(trig_ct_handle);
    return code ? code : post(OP_FETCH_ATOMIC, (struct operation){BOTH, LATER});
}

int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                     ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                     ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                     const void *operand, ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                     ptl_size_t threshold) {
    int code = triggered(trig_ct_handle);
    return code ? code : post(OP_SWAP, (struct operation){BOTH, .operand = operand, LATER});
}
