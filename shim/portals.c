/* Portals 4: the interface, and its set-up by a process. */

#include "portals.h"

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
        return portals_refuse(PTL_NO_INIT, "PtlInit comes first");
    if (!opened)
        return portals_refuse(PTL_NO_INIT, "no interface is open; PtlNIInit opens one");
    if (ni != NI_HANDLE)
        return portals_refuse(PTL_ARG_INVALID, "this handle is not the interface's");
    return PTL_OK;
}

int portals_ask(uint32_t op, uint64_t *words, unsigned count) {
    if (!inits)
        return portals_refuse(PTL_NO_INIT, "PtlInit comes first");
    pthread_mutex_lock(&asking);
    if (count)
        memcpy(words_of(), words, count * sizeof *words);
    int64_t code = nicety_call(CALL_PORTALS, op, NULL, 0);
    if (count)
        memcpy(words, words_of(), count * sizeof *words);
    if (code)
        snprintf(reason, sizeof reason, "%s", (char *)words_of() - NICETY_REASON);
    pthread_mutex_unlock(&asking);
    /* Negative: a forked process, which has no interface. */
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

/* ---- the process, as its launcher sees it ---- */

uint32_t nicety_exec_rank(void) {
    return nicety_slot ? nicety_rank() : 0;
}

uint32_t nicety_exec_ranks(void) {
    return nicety_shared ? nicety_shared->ranks : 1;
}

int nicety_exec_barrier(void) {
    return portals_ask(OP_BARRIER, NULL, 0);
}

int nicety_exec_compute(uint64_t ns) {
    return portals_ask(OP_COMPUTE, &ns, 1);
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
    /* A process with another id does not exist. */
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
        return portals_refuse(PTL_FAIL, "the process has left the network by PtlFini, for good");
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
        portals_ask(OP_NI_FINI, NULL, 0);
    opened = 0;
    portals_ask(OP_FINI, NULL, 0);
    inits = 0;
    nicety_slot->ended = 1;
}

static void set_limits(const uint64_t *words) {
    int *const counts[] = {
        &limits.max_entries,  &limits.max_unexpected_headers, &limits.max_mds,           &limits.max_eqs,
        &limits.max_cts,      &limits.max_pt_index,           &limits.max_list_size,     &limits.max_triggered_ops,
    };
    unsigned at = 0;
    for (; at < sizeof counts / sizeof *counts; at++)
        *counts[at] = (int)words[at];
    limits.max_msg_size = words[at++];
    limits.max_atomic_size = words[at++];
    limits.max_fetch_atomic_size = words[at++];
    limits.features = PTL_TARGET_BIND_INACCESSIBLE;
}

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid, const ptl_ni_limits_t *desired,
              ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle) {
    (void)desired;
    unsigned matching = options & (PTL_NI_MATCHING | PTL_NI_NO_MATCHING);
    unsigned logical = options & (PTL_NI_LOGICAL | PTL_NI_PHYSICAL);
    if (!inits)
        return portals_refuse(PTL_NO_INIT, "PtlInit comes first");
    if (iface != 0 && iface != PTL_IFACE_DEFAULT)
        return portals_refuse(PTL_ARG_INVALID, "a host has one interface, 0 or PTL_IFACE_DEFAULT");
    if ((matching != PTL_NI_MATCHING && matching != PTL_NI_NO_MATCHING) ||
        (logical != PTL_NI_LOGICAL && logical != PTL_NI_PHYSICAL) || options != (matching | logical))
        return portals_refuse(PTL_ARG_INVALID, "options are one of MATCHING and NO_MATCHING and one of LOGICAL and PHYSICAL");
    if (!ni_handle)
        return portals_refuse(PTL_ARG_INVALID, "ni_handle is NULL");
    if (pid != 0 && pid != PTL_PID_ANY)
        return portals_refuse(PTL_ARG_INVALID, "the process of a node has the id 0; give PTL_PID_ANY");
    if (opened && options != options_of)
        return portals_refuse(PTL_NO_SPACE, "an interface with other options is open, and a card has one");
    if (!opened) {
        uint64_t words[16] = {options};
        int code = portals_ask(OP_NI_INIT, words, 16);
        if (code) {
            fprintf(stderr, "nicety: PtlNIInit: %s\n", reason);
            return code;
        }
        options_of = options;
        set_limits(words);
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
    return portals_ask(OP_NI_FINI, NULL, 0);
}

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status) {
    uint64_t word = status_register;
    int code = portals_check(ni_handle);
    if (!code && !status)
        return portals_refuse(PTL_ARG_INVALID, "status is NULL");
    if (!code && !(code = portals_ask(OP_NI_STATUS, &word, 1)))
        *status = word;
    return code;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle) {
    int code = portals_check(NI_HANDLE);
    if (code)
        return code;
    /* The kinds of handles: crates/exec/src/portals/handles.rs. */
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
        return portals_refuse(PTL_ARG_INVALID, "a map is of a logical interface, and has an entry for each rank");
    for (ptl_size_t rank = 0; rank < map_size; rank++)
        if (map_size != nicety_exec_ranks() || mapping[rank].phys.nid != rank || mapping[rank].phys.pid)
            return portals_refuse(PTL_IGNORED, "ranks are those of the hosts, from the start");
    return PTL_OK;
}

int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping, ptl_size_t *actual_map_size) {
    int code = portals_check(ni_handle);
    if (code)
        return code;
    if (!is_logical() || (!mapping && map_size))
        return portals_refuse(PTL_ARG_INVALID, "a map is of a logical interface, and mapping is where it goes");
    for (ptl_size_t rank = 0; rank < map_size && rank < nicety_exec_ranks(); rank++) {
        mapping[rank].phys.nid = (ptl_nid_t)rank;
        mapping[rank].phys.pid = 0;
    }
    if (actual_map_size)
        *actual_map_size = nicety_exec_ranks();
    return PTL_OK;
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid) {
    uint64_t word = 0;
    int code = portals_check(ni_handle);
    if (!code && !uid)
        return portals_refuse(PTL_ARG_INVALID, "uid is NULL");
    if (!code && !(code = portals_ask(OP_UID, &word, 1)))
        *uid = (ptl_uid_t)word;
    return code;
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
        return portals_refuse(PTL_NO_INIT, "PtlInit comes first");
    aborted = 1;
    return PTL_OK;
}

int PtlStartBundle(ptl_handle_ni_t ni_handle) {
    return portals_check(ni_handle);
}

int PtlEndBundle(ptl_handle_ni_t ni_handle) {
    return portals_check(ni_handle);
}

/* ---- portal table entries ---- */

#define PT_UNUSED (PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_MATCH_UNORDERED)

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle, ptl_pt_index_t pt_index_req,
               ptl_pt_index_t *pt_index) {
    uint64_t words[] = {options & ~PT_UNUSED, eq_handle, pt_index_req};
    int code = portals_check(ni_handle);
    if (!code && !pt_index)
        return portals_refuse(PTL_ARG_INVALID, "pt_index is NULL");
    if (!code && !(code = portals_ask(OP_PT_ALLOC, words, 3)))
        *pt_index = (ptl_pt_index_t)words[0];
    return code;
}

int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
    uint64_t word = pt_index;
    int code = portals_check(ni_handle);
    if (!code)
        code = portals_index(pt_index);
    return code ? code : portals_ask(OP_PT_FREE, &word, 1);
}

static int enable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, int enabled) {
    uint64_t words[] = {pt_index, (uint64_t)enabled};
    int code = portals_check(ni_handle);
    if (!code)
        code = portals_index(pt_index);
    return code ? code : portals_ask(OP_PT_ENABLE, words, 2);
}

int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
    return enable(ni_handle, pt_index, 1);
}

int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
    return enable(ni_handle, pt_index, 0);
}

/* ---- memory descriptors ---- */

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle) {
    int code = portals_check(ni_handle);
    if (code)
        return code;
    if (!md || !md_handle)
        return portals_refuse(PTL_ARG_INVALID, "md or md_handle is NULL");
    uint64_t words[] = {(uintptr_t)md->start, md->length, md->options & ~(PTL_MD_UNORDERED | PTL_MD_VOLATILE),
                        md->eq_handle, md->ct_handle};
    code = portals_ask(OP_MD_BIND, words, 5);
    if (!code)
        *md_handle = words[0];
    return code;
}

int PtlMDRelease(ptl_handle_md_t md_handle) {
    return portals_ask(OP_MD_RELEASE, &md_handle, 1);
}

/* ---- entries ---- */

#define ME_UNUSED (PTL_ME_MAY_ALIGN | PTL_ME_IS_ACCESSIBLE)
#define ME_WORDS 13

static int entry(ptl_handle_ni_t ni, ptl_pt_index_t pt, const ptl_me_t *me, uint64_t last, void *user_ptr,
                 ptl_handle_handlers_t handlers, uint64_t *words) {
    uint64_t rank;
    int code = portals_check(ni);
    if (!code && !me)
        return portals_refuse(PTL_ARG_INVALID, "the entry is NULL");
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = portals_rank(me->match_id, 1, &rank);
    if (code)
        return code;
    const uint64_t all[ME_WORDS] = {
        pt,   (uintptr_t)me->start, me->length,      me->ct_handle, me->uid, me->options & ~ME_UNUSED,
        rank, me->match_bits,       me->ignore_bits, me->min_free,  last,    (uintptr_t)user_ptr,
        handlers,
    };
    memcpy(words, all, sizeof all);
    return PTL_OK;
}

/* Returns the kind of entry: an interface takes entries of its own kind. */
static int kind(int matching) {
    if (inits && opened && portals_matches() != matching)
        return portals_refuse(PTL_ARG_INVALID, matching ? "the interface does not match; it takes list entries"
                                                        : "the interface matches; it takes match entries");
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
    uint64_t words[ME_WORDS];
    if (!me_handle || (list != PTL_PRIORITY_LIST && list != PTL_OVERFLOW_LIST))
        return portals_refuse(PTL_ARG_INVALID, "me_handle is NULL, or there is no such list");
    int code = entry(ni_handle, pt_index, me, list, user_ptr, handlers, words);
    if (!code && !(code = portals_ask(OP_ME_APPEND, words, ME_WORDS)))
        *me_handle = words[0];
    return code;
}

static int search(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_search_op_t op,
                  void *user_ptr) {
    uint64_t words[ME_WORDS];
    if (op != PTL_SEARCH_ONLY && op != PTL_SEARCH_DELETE)
        return portals_refuse(PTL_ARG_INVALID, "there is no such search");
    int code = entry(ni_handle, pt_index, me, op, user_ptr, 0, words);
    return code ? code : portals_ask(OP_ME_SEARCH, words, ME_WORDS);
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
        return portals_refuse(PTL_ARG_INVALID, "no handlers; PtlHandlersAttach gives them");
    return code ? code : append(ni_handle, pt_index, me, handlers, ptl_list, user_ptr, me_handle);
}

int PtlMEUnlink(ptl_handle_me_t me_handle) {
    return portals_ask(OP_ME_UNLINK, &me_handle, 1);
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

int PtlLEUnlink(ptl_handle_le_t le_handle) {
    return PtlMEUnlink(le_handle);
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

int PtlHPUAllocMem(ptl_handle_ni_t ni_handle, ptl_size_t length, ptl_handle_hpu_mem_t *hpu_memory) {
    int code = portals_check(ni_handle);
    if (!code && !hpu_memory)
        return portals_refuse(PTL_ARG_INVALID, "hpu_memory is NULL");
    if (!code && !(code = portals_ask(OP_HPU_ALLOC, &length, 1)))
        *hpu_memory = length;
    return code;
}

int PtlHPUFreeMem(ptl_handle_hpu_mem_t hpu_memory) {
    return portals_ask(OP_HPU_FREE, &hpu_memory, 1);
}

int PtlHPUWrite(ptl_handle_hpu_mem_t hpu_memory, ptl_size_t offset, const void *bytes, ptl_size_t length) {
    uint64_t words[] = {hpu_memory, offset, (uintptr_t)bytes, length};
    return portals_ask(OP_HPU_WRITE, words, 4);
}

int PtlHPURead(ptl_handle_hpu_mem_t hpu_memory, ptl_size_t offset, void *bytes, ptl_size_t length) {
    uint64_t words[] = {hpu_memory, offset, (uintptr_t)bytes, length};
    return portals_ask(OP_HPU_READ, words, 4);
}

int PtlHandlersAttach(ptl_handle_ni_t ni_handle, const ptl_handlers_t *handlers, ptl_handle_handlers_t *attached) {
    int code = portals_check(ni_handle);
    if (code)
        return code;
    if (!handlers || !attached || !handlers->program)
        return portals_refuse(PTL_ARG_INVALID, "handlers, their program or attached is NULL");
    char *path = realpath(handlers->program, NULL);
    if (!path) {
        snprintf(reason, sizeof reason, "%s: there is no such program; make it with nicety cc", handlers->program);
        return PTL_ARG_INVALID;
    }
    const char *const names[] = {path, handlers->header_handler, handlers->payload_handler, handlers->completion_handler};
    uint64_t words[] = {
        0, 0, 0, 0, 0, 0, 0, 0,
        handlers->hpu_memory,
        (uintptr_t)handlers->initial_state,
        handlers->initial_state_length,
        (uintptr_t)handlers->handler_memory,
        handlers->handler_memory_length,
    };
    for (unsigned i = 0; i < 4; i++) {
        words[2 * i] = (uintptr_t)names[i];
        words[2 * i + 1] = names[i] ? strlen(names[i]) : 0;
    }
    code = portals_ask(OP_ATTACH, words, sizeof words / sizeof *words);
    free(path);
    if (!code)
        *attached = words[0];
    return code;
}

int PtlHandlersDetach(ptl_handle_handlers_t attached) {
    return portals_ask(OP_DETACH, &attached, 1);
}
