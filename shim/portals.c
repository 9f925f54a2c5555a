/* Portals 4: the interface, and its set-up by a process. */

#include "generated/portals_calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static unsigned inits, opened, options_of;
static ptl_ni_limits_t limits;
static int aborted;
static char reason[NICETY_REASON];

/* ---- calls ---- */

static uint64_t *words_of(void) {
    return (uint64_t *)((char *)nicety_slot + NICETY_PAGE) - NICETY_WORDS;
}

int portals_refuse(int code, const char *why) {
    snprintf(reason, sizeof reason, "%s", why);
    return code;
}

int portals_check(ptl_handle_ni_t ni) {
    if (!inits)
        return portals_refuse(PTL_NO_INIT, "call PtlInit first");
    if (!opened)
        return portals_refuse(PTL_NO_INIT, "no interface is open; PtlNIInit opens one");
    if (ni != NI_HANDLE)
        return portals_refuse(PTL_ARG_INVALID, "this is not the handle of the interface");
    return PTL_OK;
}

int portals_ask(uint32_t op, const void *asked, size_t asked_bytes, void *told, size_t told_bytes) {
    if (!inits)
        return portals_refuse(PTL_NO_INIT, "call PtlInit first");
    pthread_mutex_lock(&asking);
    if (asked)
        memcpy(words_of(), asked, asked_bytes);
    int64_t code = nicety_call(CALL_PORTALS, op, NULL, 0);
    if (code)
        snprintf(reason, sizeof reason, "%s", (char *)words_of() - NICETY_REASON);
    else if (told)
        memcpy(told, words_of(), told_bytes);
    pthread_mutex_unlock(&asking);
    /* A negative code is that of a forked process, which has no interface. */
    return code < 0 ? PTL_NO_INIT : (int)code;
}

int portals_matches(void) {
    return (options_of & PTL_NI_MATCHING) != 0;
}

int portals_index(ptl_pt_index_t pt) {
    if (!pt)
        return portals_refuse(PTL_ARG_INVALID, "portal table entry 0 belongs to the messages of MPI; take another one");
    if (pt > (ptl_pt_index_t)limits.max_pt_index)
        return portals_refuse(PTL_ARG_INVALID, "no card has this portal table entry; max_pt_index is the last one");
    return PTL_OK;
}

int portals_aborted(void) {
    return aborted;
}

const char *nicety_reason(void) {
    return reason;
}

/* ---- rank, barrier and computation of the process ---- */

uint32_t nicety_exec_rank(void) {
    return nicety_slot ? nicety_rank() : 0;
}

uint32_t nicety_exec_ranks(void) {
    return nicety_shared ? nicety_shared->ranks : 1;
}

int nicety_exec_barrier(void) {
    return ask_barrier();
}

int nicety_exec_compute(uint64_t ns) {
    return ask_compute(&(struct asked_compute){.ns = ns});
}

/* ---- processes ---- */

int portals_rank(ptl_process_t process, int any, uint64_t *rank) {
    int logical = (options_of & PTL_NI_LOGICAL) != 0;
    uint32_t number = logical ? process.rank : process.phys.nid;
    if (any && number == UINT32_MAX) {
        *rank = number;
        return PTL_OK;
    }
    if (number >= nicety_exec_ranks())
        return portals_refuse(PTL_ARG_INVALID, "there is no such rank");
    /* No process has an id other than 0. */
    if (!logical && process.phys.pid && !(any && process.phys.pid == PTL_PID_ANY))
        return portals_refuse(PTL_ARG_INVALID, "the process of a node has the id 0");
    *rank = number;
    return PTL_OK;
}

ptl_process_t portals_process(uint64_t rank) {
    ptl_process_t process;
    memset(&process, 0, sizeof process);
    if (options_of & PTL_NI_LOGICAL)
        process.rank = (ptl_rank_t)rank;
    else
        process.phys.nid = (ptl_nid_t)rank;
    return process;
}

/* ---- interfaces ---- */

int PtlInit(void) {
    if (inits++)
        return PTL_OK;
    inits = 0;
    if (!nicety_slot) {
        portals_refuse(PTL_FAIL, "no simulated host; start the program by nicety exec");
        fprintf(stderr, "nicety: PtlInit: this program has no simulated host; start it as in\n"
                        "nicety exec -n 2 --nic spin-discrete --launcher none -- ./program\n");
        return PTL_FAIL;
    }
    if (nicety_slot->ended)
        return portals_refuse(PTL_FAIL, "the process has left the network by PtlFini, and cannot use it again");
    if (nicety_attach())
        return portals_refuse(PTL_FAIL, "another process of this rank uses the network");
    inits = 1;
    return PTL_OK;
}

void PtlFini(void) {
    if (!inits || --inits)
        return;
    inits = 1;
    if (opened)
        ask_ni_fini();
    opened = 0;
    ask_fini();
    inits = 0;
    nicety_slot->ended = 1;
}

static void set_limits(const struct told_limits *told) {
    limits = (ptl_ni_limits_t){
        .max_entries = (int)told->max_entries,
        .max_unexpected_headers = (int)told->max_unexpected_headers,
        .max_mds = (int)told->max_mds,
        .max_eqs = (int)told->max_eqs,
        .max_cts = (int)told->max_cts,
        .max_pt_index = (int)told->max_pt_index,
        .max_list_size = (int)told->max_list_size,
        .max_triggered_ops = (int)told->max_triggered_ops,
        .max_msg_size = told->max_msg_size,
        .max_atomic_size = told->max_atomic_size,
        .max_fetch_atomic_size = told->max_fetch_atomic_size,
        .features = PTL_TARGET_BIND_INACCESSIBLE,
    };
}

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid, const ptl_ni_limits_t *desired,
              ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle) {
    (void)desired;
    unsigned matching = options & (PTL_NI_MATCHING | PTL_NI_NO_MATCHING);
    unsigned logical = options & (PTL_NI_LOGICAL | PTL_NI_PHYSICAL);
    if (!inits)
        return portals_refuse(PTL_NO_INIT, "call PtlInit first");
    if (iface != 0 && iface != PTL_IFACE_DEFAULT)
        return portals_refuse(PTL_ARG_INVALID, "a host has one interface, 0 or PTL_IFACE_DEFAULT");
    if ((matching != PTL_NI_MATCHING && matching != PTL_NI_NO_MATCHING) ||
        (logical != PTL_NI_LOGICAL && logical != PTL_NI_PHYSICAL) || options != (matching | logical))
        return portals_refuse(PTL_ARG_INVALID, "options are PTL_NI_MATCHING or PTL_NI_NO_MATCHING, with PTL_NI_LOGICAL or PTL_NI_PHYSICAL");
    if (!ni_handle)
        return portals_refuse(PTL_ARG_INVALID, "ni_handle is NULL");
    if (pid != 0 && pid != PTL_PID_ANY)
        return portals_refuse(PTL_ARG_INVALID, "the process of a node has the id 0; give PTL_PID_ANY");
    if (opened && options != options_of)
        return portals_refuse(PTL_NO_SPACE, "an interface with other options is open, and a card has only one");
    if (!opened) {
        struct told_limits told;
        int code = ask_ni_init(&(struct asked_ni_init){.options = options}, &told);
        if (code) {
            fprintf(stderr, "nicety: PtlNIInit: %s\n", reason);
            return code;
        }
        options_of = options;
        set_limits(&told);
    }
    opened++;
    if (actual)
        *actual = limits;
    *ni_handle = NI_HANDLE;
    return PTL_OK;
}

int PtlNIFini(ptl_handle_ni_t ni_handle) {
    int code = portals_check(ni_handle);
    if (code || --opened)
        return code;
    return ask_ni_fini();
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle) {
    int code = portals_check(NI_HANDLE);
    if (code)
        return code;
    /* crates/exec/src/portals/handles.rs has the kinds of handles. */
    if (!ni_handle || handle >> 60 == 0 || handle >> 60 > 7)
        return portals_refuse(PTL_ARG_INVALID, "no handle of this interface, or ni_handle is NULL");
    *ni_handle = NI_HANDLE;
    return PTL_OK;
}

static int is_logical(void) {
    return (options_of & PTL_NI_LOGICAL) != 0;
}

int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping) {
    int code = portals_check(ni_handle);
    if (code)
        return code;
    if (!is_logical() || !mapping || !map_size)
        return portals_refuse(PTL_ARG_INVALID, "only a logical interface has a map, and mapping needs an entry for each rank");
    for (ptl_size_t rank = 0; rank < map_size; rank++)
        if (map_size != nicety_exec_ranks() || mapping[rank].phys.nid != rank || mapping[rank].phys.pid)
            return portals_refuse(PTL_IGNORED, "the map is ignored: ranks are always the numbers of the hosts");
    return PTL_OK;
}

int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping, ptl_size_t *actual_map_size) {
    int code = portals_check(ni_handle);
    if (code)
        return code;
    if (!is_logical() || (!mapping && map_size))
        return portals_refuse(PTL_ARG_INVALID, "only a logical interface has a map, and mapping cannot be NULL");
    for (ptl_size_t rank = 0; rank < map_size && rank < nicety_exec_ranks(); rank++) {
        mapping[rank].phys.nid = (ptl_nid_t)rank;
        mapping[rank].phys.pid = 0;
    }
    if (actual_map_size)
        *actual_map_size = nicety_exec_ranks();
    return PTL_OK;
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id) {
    int code = portals_check(ni_handle);
    if (!code && !id)
        return portals_refuse(PTL_ARG_INVALID, "id is NULL");
    if (!code)
        *id = portals_process(nicety_rank());
    return code;
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id) {
    int code = portals_check(ni_handle);
    if (!code && !id)
        return portals_refuse(PTL_ARG_INVALID, "id is NULL");
    if (!code) {
        id->phys.nid = nicety_rank();
        id->phys.pid = 0;
    }
    return code;
}

int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2) {
    return handle1 == handle2;
}

int PtlAbort(void) {
    if (!inits)
        return portals_refuse(PTL_NO_INIT, "call PtlInit first");
    aborted = 1;
    return PTL_OK;
}

int PtlStartBundle(ptl_handle_ni_t ni_handle) {
    return portals_check(ni_handle);
}

int PtlEndBundle(ptl_handle_ni_t ni_handle) {
    return portals_check(ni_handle);
}

/* ---- memory descriptors ---- */

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle) {
    int code = portals_check(ni_handle);
    if (code)
        return code;
    if (!md || !md_handle)
        return portals_refuse(PTL_ARG_INVALID, "md or md_handle is NULL");
    struct asked_md_bind asked = {
        .start = (uintptr_t)md->start,
        .length = md->length,
        .options = md->options & ~(PTL_MD_UNORDERED | PTL_MD_VOLATILE),
        .eq = md->eq_handle,
        .ct = md->ct_handle,
    };
    struct told_number told;
    code = ask_md_bind(&asked, &told);
    if (!code)
        *md_handle = told.value;
    return code;
}

/* ---- entries ---- */

#define ME_UNUSED (PTL_ME_MAY_ALIGN | PTL_ME_IS_ACCESSIBLE)
/* The arguments that an append and a search share. */
#define ENTRY                                                                                                          \
    .pt = pt_index, .start = (uintptr_t)me->start, .length = me->length, .ct = me->ct_handle, .uid = me->uid,          \
    .options = me->options & ~ME_UNUSED, .match_id = rank, .match_bits = me->match_bits,                               \
    .ignore_bits = me->ignore_bits, .min_free = me->min_free, .user_ptr = (uintptr_t)user_ptr

/* Checks an entry, and computes the rank that may access it. Returns PTL_OK or a code. */
static int entry(ptl_handle_ni_t ni, ptl_pt_index_t pt, const ptl_me_t *me, uint64_t *rank) {
    int code = portals_check(ni);
    if (!code && !me)
        return portals_refuse(PTL_ARG_INVALID, "the entry is NULL");
    if (!code)
        code = portals_index(pt);
    return code ? code : portals_rank(me->match_id, 1, rank);
}

/* Checks the kind of entry. An interface takes only entries of its own kind. */
static int kind(int matching) {
    if (inits && opened && portals_matches() != matching)
        return portals_refuse(PTL_ARG_INVALID, matching ? "the interface is PTL_NI_NO_MATCHING; use list entries"
                                                        : "the interface is PTL_NI_MATCHING; use match entries");
    return PTL_OK;
}

static ptl_me_t of_list(const ptl_le_t *le) {
    ptl_process_t any;
    memset(&any, 0xff, sizeof any);
    return (ptl_me_t){.start = le->start, .length = le->length, .ct_handle = le->ct_handle, .uid = le->uid,
                      .options = le->options, .match_id = any, .ignore_bits = UINT64_MAX};
}

static int append(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_handle_handlers_t handlers,
                  ptl_list_t list, void *user_ptr, ptl_handle_me_t *me_handle) {
    uint64_t rank;
    struct told_number told;
    if (!me_handle || (list != PTL_PRIORITY_LIST && list != PTL_OVERFLOW_LIST))
        return portals_refuse(PTL_ARG_INVALID, "me_handle is NULL, or there is no such list");
    int code = entry(ni_handle, pt_index, me, &rank);
    if (!code)
        code = ask_me_append(&(struct asked_me_append){ENTRY, .list = list, .handlers = handlers}, &told);
    if (!code)
        *me_handle = told.value;
    return code;
}

static int search(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_search_op_t op,
                  void *user_ptr) {
    uint64_t rank;
    if (op != PTL_SEARCH_ONLY && op != PTL_SEARCH_DELETE)
        return portals_refuse(PTL_ARG_INVALID, "there is no such search");
    int code = entry(ni_handle, pt_index, me, &rank);
    return code ? code : ask_me_search(&(struct asked_me_search){ENTRY, .op = op});
}

int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_list_t ptl_list, void *user_ptr,
                ptl_handle_me_t *me_handle) {
    int code = kind(1);
    return code ? code : append(ni_handle, pt_index, me, 0, ptl_list, user_ptr, me_handle);
}

int PtlMEAppendHandlers(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                        ptl_handle_handlers_t handlers, ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle) {
    int code = kind(1);
    if (!code && !handlers)
        return portals_refuse(PTL_ARG_INVALID, "no handlers; PtlHandlersAttach returns a handle for them");
    return code ? code : append(ni_handle, pt_index, me, handlers, ptl_list, user_ptr, me_handle);
}

int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_search_op_t ptl_search_op,
                void *user_ptr) {
    int code = kind(1);
    return code ? code : search(ni_handle, pt_index, me, ptl_search_op, user_ptr);
}

int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le, ptl_list_t ptl_list, void *user_ptr,
                ptl_handle_le_t *le_handle) {
    int code = kind(0);
    if (!code && !le)
        return portals_refuse(PTL_ARG_INVALID, "the entry is NULL");
    if (code)
        return code;
    ptl_me_t me = of_list(le);
    return append(ni_handle, pt_index, &me, 0, ptl_list, user_ptr, le_handle);
}

int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le, ptl_search_op_t ptl_search_op,
                void *user_ptr) {
    int code = kind(0);
    if (!code && !le)
        return portals_refuse(PTL_ARG_INVALID, "the entry is NULL");
    if (code)
        return code;
    ptl_me_t me = of_list(le);
    return search(ni_handle, pt_index, &me, ptl_search_op, user_ptr);
}

/* ---- handlers ---- */

static uint64_t length(const char *text) {
    return text ? strlen(text) : 0;
}

int PtlHandlersAttach(ptl_handle_ni_t ni_handle, const ptl_handlers_t *handlers, ptl_handle_handlers_t *attached) {
    int code = portals_check(ni_handle);
    if (code)
        return code;
    if (!handlers || !attached || !handlers->program)
        return portals_refuse(PTL_ARG_INVALID, "handlers, their program or attached is NULL");
    char *path = realpath(handlers->program, NULL);
    if (!path) {
        snprintf(reason, sizeof reason, "%s: there is no such program; build it with nicety cc", handlers->program);
        return PTL_ARG_INVALID;
    }
    struct asked_attach asked = {
        .program = (uintptr_t)path,
        .program_bytes = length(path),
        .header = (uintptr_t)handlers->header_handler,
        .header_bytes = length(handlers->header_handler),
        .payload = (uintptr_t)handlers->payload_handler,
        .payload_bytes = length(handlers->payload_handler),
        .completion = (uintptr_t)handlers->completion_handler,
        .completion_bytes = length(handlers->completion_handler),
        .memory = handlers->hpu_memory,
        .state = (uintptr_t)handlers->initial_state,
        .state_bytes = handlers->initial_state_length,
        .start = (uintptr_t)handlers->handler_memory,
        .length = handlers->handler_memory_length,
    };
    struct told_number told;
    code = ask_attach(&asked, &told);
    free(path);
    if (!code)
        *attached = told.value;
    return code;
}
