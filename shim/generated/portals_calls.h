/* Calls of Portals: their numbers, arguments and outcomes.
 *
 * Made of crates/nicety/src/commands/table.rs by crates/exec/tests/portals_calls, and not to be changed by hand. */

#ifndef NICETY_PORTALS_CALLS_H
#define NICETY_PORTALS_CALLS_H

#include "portals.h"

enum {
    OP_NI_INIT = 1,
    OP_NI_FINI = 2,
    OP_NI_STATUS = 3,
    OP_UID = 4,
    OP_PT_ALLOC = 5,
    OP_PT_FREE = 6,
    OP_PT_ENABLE = 7,
    OP_MD_BIND = 8,
    OP_MD_RELEASE = 9,
    OP_ME_APPEND = 10,
    OP_ME_UNLINK = 11,
    OP_ME_SEARCH = 12,
    OP_EQ_ALLOC = 13,
    OP_EQ_FREE = 14,
    OP_EQ_GET = 15,
    OP_EQ_POLL = 16,
    OP_CT_ALLOC = 17,
    OP_CT_FREE = 18,
    OP_CT_CANCEL = 19,
    OP_CT_GET = 20,
    OP_CT_WAIT = 21,
    OP_CT_POLL = 22,
    OP_CT_SET = 23,
    OP_CT_INC = 24,
    OP_PUT = 25,
    OP_GET = 26,
    OP_ATOMIC = 27,
    OP_FETCH_ATOMIC = 28,
    OP_SWAP = 29,
    OP_ATOMIC_SYNC = 30,
    OP_HPU_ALLOC = 31,
    OP_HPU_FREE = 32,
    OP_HPU_WRITE = 33,
    OP_HPU_READ = 34,
    OP_ATTACH = 35,
    OP_DETACH = 36,
    OP_BARRIER = 37,
    OP_COMPUTE = 38,
    OP_FINI = 39,
    OP_CT_AWAIT = 40,
    OP_COPY = 41,
};

struct told_number {
    uint64_t value;
};

struct told_count {
    uint64_t success;
    uint64_t failure;
    uint64_t which;
};

struct told_event {
    uint64_t kind;
    uint64_t fail;
    uint64_t initiator;
    uint64_t pt;
    uint64_t list;
    uint64_t match_bits;
    uint64_t uid;
    uint64_t operation;
    uint64_t datatype;
    uint64_t hdr_data;
    uint64_t rlength;
    uint64_t mlength;
    uint64_t remote_offset;
    uint64_t start;
    uint64_t user_ptr;
    uint64_t which;
};

struct told_limits {
    uint64_t max_entries;
    uint64_t max_unexpected_headers;
    uint64_t max_mds;
    uint64_t max_eqs;
    uint64_t max_cts;
    uint64_t max_pt_index;
    uint64_t max_list_size;
    uint64_t max_triggered_ops;
    uint64_t max_msg_size;
    uint64_t max_atomic_size;
    uint64_t max_fetch_atomic_size;
};

struct asked_ni_init {
    uint64_t options;
};

struct asked_ni_status {
    uint64_t status_register;
};

struct asked_pt_alloc {
    uint64_t options;
    uint64_t eq;
    uint64_t pt;
};

struct asked_pt_free {
    uint64_t pt;
};

struct asked_pt_enable {
    uint64_t pt;
    uint64_t enabled;
};

struct asked_md_bind {
    uint64_t start;
    uint64_t length;
    uint64_t options;
    uint64_t eq;
    uint64_t ct;
};

struct asked_md_release {
    uint64_t md;
};

struct asked_me_append {
    uint64_t pt;
    uint64_t start;
    uint64_t length;
    uint64_t ct;
    uint64_t uid;
    uint64_t options;
    uint64_t match_id;
    uint64_t match_bits;
    uint64_t ignore_bits;
    uint64_t min_free;
    uint64_t list;
    uint64_t user_ptr;
    uint64_t handlers;
};

struct asked_me_unlink {
    uint64_t me;
};

struct asked_me_search {
    uint64_t pt;
    uint64_t start;
    uint64_t length;
    uint64_t ct;
    uint64_t uid;
    uint64_t options;
    uint64_t match_id;
    uint64_t match_bits;
    uint64_t ignore_bits;
    uint64_t min_free;
    uint64_t op;
    uint64_t user_ptr;
    uint64_t handlers;
};

struct asked_eq_alloc {
    uint64_t count;
};

struct asked_eq_free {
    uint64_t eq;
};

struct asked_eq_get {
    uint64_t eq;
};

struct asked_eq_poll {
    uint64_t eqs;
    uint64_t size;
    uint64_t timeout;
};

struct asked_ct_free {
    uint64_t ct;
};

struct asked_ct_cancel {
    uint64_t ct;
};

struct asked_ct_get {
    uint64_t ct;
};

struct asked_ct_wait {
    uint64_t ct;
    uint64_t test;
};

struct asked_ct_poll {
    uint64_t cts;
    uint64_t tests;
    uint64_t size;
    uint64_t timeout;
};

struct asked_ct_set {
    uint64_t ct;
    uint64_t success;
    uint64_t failure;
    uint64_t trigger;
    uint64_t threshold;
};

struct asked_ct_inc {
    uint64_t ct;
    uint64_t success;
    uint64_t failure;
    uint64_t trigger;
    uint64_t threshold;
};

struct asked_put {
    uint64_t md;
    uint64_t local_offset;
    uint64_t length;
    uint64_t ack;
    uint64_t target;
    uint64_t pt;
    uint64_t match_bits;
    uint64_t remote_offset;
    uint64_t user_ptr;
    uint64_t hdr_data;
    uint64_t trigger;
    uint64_t threshold;
};

struct asked_get {
    uint64_t md;
    uint64_t local_offset;
    uint64_t length;
    uint64_t target;
    uint64_t pt;
    uint64_t match_bits;
    uint64_t remote_offset;
    uint64_t user_ptr;
    uint64_t trigger;
    uint64_t threshold;
};

struct asked_atomic {
    uint64_t md;
    uint64_t local_offset;
    uint64_t length;
    uint64_t ack;
    uint64_t target;
    uint64_t pt;
    uint64_t match_bits;
    uint64_t remote_offset;
    uint64_t user_ptr;
    uint64_t hdr_data;
    uint64_t operation;
    uint64_t datatype;
    uint64_t trigger;
    uint64_t threshold;
};

struct asked_fetch_atomic {
    uint64_t get_md;
    uint64_t local_get_offset;
    uint64_t md;
    uint64_t local_offset;
    uint64_t length;
    uint64_t target;
    uint64_t pt;
    uint64_t match_bits;
    uint64_t remote_offset;
    uint64_t user_ptr;
    uint64_t hdr_data;
    uint64_t operation;
    uint64_t datatype;
    uint64_t trigger;
    uint64_t threshold;
};

struct asked_swap {
    uint64_t get_md;
    uint64_t local_get_offset;
    uint64_t md;
    uint64_t local_offset;
    uint64_t length;
    uint64_t target;
    uint64_t pt;
    uint64_t match_bits;
    uint64_t remote_offset;
    uint64_t user_ptr;
    uint64_t hdr_data;
    uint64_t operand_low;
    uint64_t operand_high;
    uint64_t operand_bytes;
    uint64_t operation;
    uint64_t datatype;
    uint64_t trigger;
    uint64_t threshold;
};

struct asked_hpu_alloc {
    uint64_t length;
};

struct asked_hpu_free {
    uint64_t memory;
};

struct asked_hpu_write {
    uint64_t memory;
    uint64_t offset;
    uint64_t from;
    uint64_t length;
};

struct asked_hpu_read {
    uint64_t memory;
    uint64_t offset;
    uint64_t to;
    uint64_t length;
};

struct asked_attach {
    uint64_t program;
    uint64_t program_bytes;
    uint64_t header;
    uint64_t header_bytes;
    uint64_t payload;
    uint64_t payload_bytes;
    uint64_t completion;
    uint64_t completion_bytes;
    uint64_t memory;
    uint64_t state;
    uint64_t state_bytes;
    uint64_t start;
    uint64_t length;
};

struct asked_detach {
    uint64_t handlers;
};

struct asked_compute {
    uint64_t ns;
};

struct asked_ct_await {
    uint64_t ct;
    uint64_t test;
};

struct asked_copy {
    uint64_t bytes;
};

/* Each makes its call, and returns a code of portals4.h. The outcome is that of a call that succeeds. */

static inline int ask_ni_init(const struct asked_ni_init *asked, struct told_limits *told) {
    return portals_ask(OP_NI_INIT, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_ni_fini(void) {
    return portals_ask(OP_NI_FINI, NULL, 0, NULL, 0);
}

static inline int ask_ni_status(const struct asked_ni_status *asked, struct told_number *told) {
    return portals_ask(OP_NI_STATUS, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_uid(struct told_number *told) {
    return portals_ask(OP_UID, NULL, 0, told, sizeof *told);
}

static inline int ask_pt_alloc(const struct asked_pt_alloc *asked, struct told_number *told) {
    return portals_ask(OP_PT_ALLOC, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_pt_free(const struct asked_pt_free *asked) {
    return portals_ask(OP_PT_FREE, asked, sizeof *asked, NULL, 0);
}

static inline int ask_pt_enable(const struct asked_pt_enable *asked) {
    return portals_ask(OP_PT_ENABLE, asked, sizeof *asked, NULL, 0);
}

static inline int ask_md_bind(const struct asked_md_bind *asked, struct told_number *told) {
    return portals_ask(OP_MD_BIND, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_md_release(const struct asked_md_release *asked) {
    return portals_ask(OP_MD_RELEASE, asked, sizeof *asked, NULL, 0);
}

static inline int ask_me_append(const struct asked_me_append *asked, struct told_number *told) {
    return portals_ask(OP_ME_APPEND, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_me_unlink(const struct asked_me_unlink *asked) {
    return portals_ask(OP_ME_UNLINK, asked, sizeof *asked, NULL, 0);
}

static inline int ask_me_search(const struct asked_me_search *asked) {
    return portals_ask(OP_ME_SEARCH, asked, sizeof *asked, NULL, 0);
}

static inline int ask_eq_alloc(const struct asked_eq_alloc *asked, struct told_number *told) {
    return portals_ask(OP_EQ_ALLOC, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_eq_free(const struct asked_eq_free *asked) {
    return portals_ask(OP_EQ_FREE, asked, sizeof *asked, NULL, 0);
}

static inline int ask_eq_get(const struct asked_eq_get *asked, struct told_event *told) {
    return portals_ask(OP_EQ_GET, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_eq_poll(const struct asked_eq_poll *asked, struct told_event *told) {
    return portals_ask(OP_EQ_POLL, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_ct_alloc(struct told_number *told) {
    return portals_ask(OP_CT_ALLOC, NULL, 0, told, sizeof *told);
}

static inline int ask_ct_free(const struct asked_ct_free *asked) {
    return portals_ask(OP_CT_FREE, asked, sizeof *asked, NULL, 0);
}

static inline int ask_ct_cancel(const struct asked_ct_cancel *asked) {
    return portals_ask(OP_CT_CANCEL, asked, sizeof *asked, NULL, 0);
}

static inline int ask_ct_get(const struct asked_ct_get *asked, struct told_count *told) {
    return portals_ask(OP_CT_GET, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_ct_wait(const struct asked_ct_wait *asked, struct told_count *told) {
    return portals_ask(OP_CT_WAIT, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_ct_poll(const struct asked_ct_poll *asked, struct told_count *told) {
    return portals_ask(OP_CT_POLL, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_ct_set(const struct asked_ct_set *asked) {
    return portals_ask(OP_CT_SET, asked, sizeof *asked, NULL, 0);
}

static inline int ask_ct_inc(const struct asked_ct_inc *asked) {
    return portals_ask(OP_CT_INC, asked, sizeof *asked, NULL, 0);
}

static inline int ask_put(const struct asked_put *asked) {
    return portals_ask(OP_PUT, asked, sizeof *asked, NULL, 0);
}

static inline int ask_get(const struct asked_get *asked) {
    return portals_ask(OP_GET, asked, sizeof *asked, NULL, 0);
}

static inline int ask_atomic(const struct asked_atomic *asked) {
    return portals_ask(OP_ATOMIC, asked, sizeof *asked, NULL, 0);
}

static inline int ask_fetch_atomic(const struct asked_fetch_atomic *asked) {
    return portals_ask(OP_FETCH_ATOMIC, asked, sizeof *asked, NULL, 0);
}

static inline int ask_swap(const struct asked_swap *asked) {
    return portals_ask(OP_SWAP, asked, sizeof *asked, NULL, 0);
}

static inline int ask_atomic_sync(void) {
    return portals_ask(OP_ATOMIC_SYNC, NULL, 0, NULL, 0);
}

static inline int ask_hpu_alloc(const struct asked_hpu_alloc *asked, struct told_number *told) {
    return portals_ask(OP_HPU_ALLOC, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_hpu_free(const struct asked_hpu_free *asked) {
    return portals_ask(OP_HPU_FREE, asked, sizeof *asked, NULL, 0);
}

static inline int ask_hpu_write(const struct asked_hpu_write *asked) {
    return portals_ask(OP_HPU_WRITE, asked, sizeof *asked, NULL, 0);
}

static inline int ask_hpu_read(const struct asked_hpu_read *asked) {
    return portals_ask(OP_HPU_READ, asked, sizeof *asked, NULL, 0);
}

static inline int ask_attach(const struct asked_attach *asked, struct told_number *told) {
    return portals_ask(OP_ATTACH, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_detach(const struct asked_detach *asked) {
    return portals_ask(OP_DETACH, asked, sizeof *asked, NULL, 0);
}

static inline int ask_barrier(void) {
    return portals_ask(OP_BARRIER, NULL, 0, NULL, 0);
}

static inline int ask_compute(const struct asked_compute *asked) {
    return portals_ask(OP_COMPUTE, asked, sizeof *asked, NULL, 0);
}

static inline int ask_fini(void) {
    return portals_ask(OP_FINI, NULL, 0, NULL, 0);
}

static inline int ask_ct_await(const struct asked_ct_await *asked, struct told_count *told) {
    return portals_ask(OP_CT_AWAIT, asked, sizeof *asked, told, sizeof *told);
}

static inline int ask_copy(const struct asked_copy *asked) {
    return portals_ask(OP_COPY, asked, sizeof *asked, NULL, 0);
}

#endif
