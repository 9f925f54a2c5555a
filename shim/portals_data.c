/* Portals 4: events, counters, and the movement of data. */

#include "generated/portals_calls.h"

#include <string.h>

/* ---- events ---- */

static void set_event(const struct told_event *told, ptl_event_t *event) {
    memset(event, 0, sizeof *event);
    event->type = (ptl_event_kind_t)told->kind;
    event->ni_fail_type = (ptl_ni_fail_t)told->fail;
    event->initiator = portals_process(told->initiator);
    event->pt_index = (ptl_pt_index_t)told->pt;
    event->ptl_list = (ptl_list_t)told->list;
    event->match_bits = told->match_bits;
    event->uid = (ptl_uid_t)told->uid;
    event->atomic_operation = (ptl_op_t)told->operation;
    event->atomic_type = (ptl_datatype_t)told->datatype;
    event->hdr_data = told->hdr_data;
    event->rlength = told->rlength;
    event->mlength = told->mlength;
    event->remote_offset = told->remote_offset;
    event->start = (void *)(uintptr_t)told->start;
    event->user_ptr = (void *)(uintptr_t)told->user_ptr;
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event) {
    struct told_event told;
    if (!event)
        return portals_refuse(PTL_ARG_INVALID, "event is NULL");
    int code = ask_eq_get(&(struct asked_eq_get){.eq = eq_handle}, &told);
    if (!code)
        set_event(&told, event);
    return code;
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event) {
    unsigned which;
    return PtlEQPoll(&eq_handle, 1, PTL_TIME_FOREVER, event, &which);
}

int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout, ptl_event_t *event,
              unsigned int *which) {
    struct asked_eq_poll asked = {.eqs = (uintptr_t)eq_handles, .size = size, .timeout = timeout};
    struct told_event told;
    if (!eq_handles || !size || !event || !which)
        return portals_refuse(PTL_ARG_INVALID, "no queues, or event or which is NULL");
    if (portals_aborted())
        return portals_refuse(PTL_ABORTED, "PtlAbort was called");
    int code = ask_eq_poll(&asked, &told);
    if (!code) {
        set_event(&told, event);
        *which = (unsigned)told.which;
    }
    return code;
}

/* ---- counters ---- */

/* Returns PTL_OK if there is a place for the value and waits are not aborted. Returns another code otherwise. */
static int may_count(const ptl_ct_event_t *event, int waits) {
    if (!event)
        return portals_refuse(PTL_ARG_INVALID, "event is NULL");
    if (waits && portals_aborted())
        return portals_refuse(PTL_ABORTED, "PtlAbort was called");
    return PTL_OK;
}

static int count(int code, const struct told_count *told, ptl_ct_event_t *event) {
    if (!code)
        *event = (ptl_ct_event_t){.success = told->success, .failure = told->failure};
    return code;
}

int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event) {
    struct told_count told;
    int code = may_count(event, 0);
    return code ? code : count(ask_ct_get(&(struct asked_ct_get){.ct = ct_handle}, &told), &told, event);
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event) {
    struct told_count told;
    int code = may_count(event, 1);
    return code ? code : count(ask_ct_wait(&(struct asked_ct_wait){.ct = ct_handle, .test = test}, &told), &told, event);
}

int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size, ptl_time_t timeout,
              ptl_ct_event_t *event, unsigned int *which) {
    struct asked_ct_poll asked = {
        .cts = (uintptr_t)ct_handles,
        .tests = (uintptr_t)tests,
        .size = size,
        .timeout = timeout,
    };
    struct told_count told;
    if (!ct_handles || !tests || !size || !which)
        return portals_refuse(PTL_ARG_INVALID, "no counters or tests, or which is NULL");
    int code = may_count(event, 1);
    if (!code)
        code = count(ask_ct_poll(&asked, &told), &told, event);
    if (!code)
        *which = (unsigned)told.which;
    return code;
}

/* ---- operations ---- */

int portals_triggered(ptl_handle_ct_t trigger) {
    return trigger == PTL_CT_NONE ? portals_refuse(PTL_ARG_INVALID, "a triggered operation needs a counter") : PTL_OK;
}

static unsigned size_of(ptl_datatype_t type) {
    static const unsigned char sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16};
    return (unsigned)type < sizeof sizes ? sizes[type] : 0;
}

int portals_type(ptl_datatype_t type) {
    return size_of(type) ? PTL_OK : portals_refuse(PTL_ARG_INVALID, "these cards have no atomics on this type");
}

int portals_operand(const void *operand, struct asked_swap *asked) {
    uint64_t words[2] = {0};
    if (asked->operation <= PTL_SWAP)
        return PTL_OK;
    if (!operand)
        return portals_refuse(PTL_ARG_INVALID, "a conditional or masked swap needs an operand");
    asked->operand_bytes = size_of((ptl_datatype_t)asked->datatype);
    memcpy(words, operand, asked->operand_bytes);
    asked->operand_low = words[0];
    asked->operand_high = words[1];
    return PTL_OK;
}
