/* portals4.h: the Portals 4 network programming interface, for programs on simulated hosts (`nicety exec`).
 *
 * Names, types and meanings are those of the Portals 4 specification (Sandia National Laboratories, version 4.1). The
 * specification leaves the numbers to the implementation, and the numbers here are nicety's. A process is the program
 * of one host, and the interface is that of the host's card. The card's spec has the cost of each call, and the times
 * of its effects.
 *
 * Every function returns PTL_OK, or a code for the reason of a refusal. nicety_reason() of nicety_exec.h has the reason
 * as a text. A refused call has no effect. The card reads and writes the process's own memory, at the time of the
 * simulated transfer.
 *
 * These cards refuse scattered memory (PTL_IOVEC), atomics on long double, PTL_ME_LOCAL_INC_UH_RLENGTH, and a second open interface.
 * Handlers are attached with portals4_spin.h. */

#ifndef PORTALS4_H
#define PORTALS4_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- return codes ---- */

enum {
    PTL_OK = 0,
    PTL_FAIL = 1,
    PTL_ARG_INVALID = 2,
    PTL_SEGV = 3,
    PTL_NO_SPACE = 4,
    PTL_NO_INIT = 5,
    PTL_IN_USE = 6,
    PTL_PT_IN_USE = 7,
    PTL_PT_FULL = 8,
    PTL_PT_EQ_NEEDED = 9,
    PTL_LIST_TOO_LONG = 10,
    PTL_PID_IN_USE = 11,
    PTL_CT_NONE_REACHED = 12,
    PTL_EQ_EMPTY = 13,
    PTL_EQ_DROPPED = 14,
    PTL_ABORTED = 15,
    PTL_IGNORED = 16
};
/* This is the name of PTL_ABORTED in version 4.0. */
#define PTL_INTERRUPTED PTL_ABORTED

/* ---- types ---- */

typedef uint64_t ptl_size_t;
typedef uint32_t ptl_pt_index_t;
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef uint32_t ptl_time_t; /* milliseconds */
typedef uint32_t ptl_interface_t;
typedef uint32_t ptl_nid_t;
typedef uint32_t ptl_pid_t;
typedef uint32_t ptl_rank_t;
typedef uint32_t ptl_uid_t;
typedef uint64_t ptl_sr_value_t;

/* A process. A logical interface identifies it by its rank, and a physical interface by its node and process id. A node
 * is a host, and has the number of the host's rank. The process of a node has the id 0. */
typedef union {
    struct {
        ptl_nid_t nid;
        ptl_pid_t pid;
    } phys;
    ptl_rank_t rank;
} ptl_process_t;

typedef uint64_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef ptl_handle_any_t ptl_handle_ct_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_le_t;
typedef ptl_handle_any_t ptl_handle_me_t;

#define PTL_INVALID_HANDLE UINT64_MAX
#define PTL_EQ_NONE (UINT64_MAX - 1)
#define PTL_CT_NONE (UINT64_MAX - 2)
#define PTL_IFACE_DEFAULT UINT32_MAX
#define PTL_PT_ANY UINT32_MAX
#define PTL_NID_ANY UINT32_MAX
#define PTL_PID_ANY UINT32_MAX
#define PTL_RANK_ANY UINT32_MAX
#define PTL_UID_ANY UINT32_MAX
#define PTL_SIZE_MAX UINT64_MAX
#define PTL_TIME_FOREVER UINT32_MAX

/* ---- interfaces ---- */

/* Options of PtlNIInit. A program chooses one option of each pair. */
#define PTL_NI_MATCHING (1u << 0)
#define PTL_NI_NO_MATCHING (1u << 1)
#define PTL_NI_LOGICAL (1u << 2)
#define PTL_NI_PHYSICAL (1u << 3)

/* Features of an interface. */
#define PTL_TARGET_BIND_INACCESSIBLE (1u << 0)
#define PTL_TOTAL_DATA_ORDERING (1u << 1)
#define PTL_COHERENT_ATOMICS (1u << 2)

typedef struct {
    int max_entries, max_unexpected_headers, max_mds, max_eqs, max_cts, max_pt_index, max_iovecs, max_list_size,
        max_triggered_ops;
    ptl_size_t max_msg_size, max_atomic_size, max_fetch_atomic_size, max_waw_ordered_size, max_war_ordered_size,
        max_volatile_size;
    unsigned int features;
} ptl_ni_limits_t;

typedef enum { PTL_SR_DROP_COUNT, PTL_SR_PERMISSION_VIOLATIONS, PTL_SR_OPERATION_VIOLATIONS } ptl_sr_index_t;

int PtlInit(void);
/* Waits until all programs have ended, because messages of others may still arrive. The wait takes no virtual time. */
void PtlFini(void);
/* Ignores `desired`, and stores the values of the card's spec in `actual`. One interface is open at a time. A second
 * call with the same options returns the same interface. On a card without Portals, the reason for the refusal is also
 * printed. */
int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid, const ptl_ni_limits_t *desired,
              ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle);
/* Frees all objects of the interface, except those that operations in flight use. */
int PtlNIFini(ptl_handle_ni_t ni_handle);
int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status);
int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle);
/* Ranks are those of the hosts. The function accepts only the map with these ranks, and returns PTL_IGNORED for any
 * other map. */
int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping);
int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping, ptl_size_t *actual_map_size);
int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);
int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id);
int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id);
int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2);
/* Makes all later waits return PTL_ABORTED. */
int PtlAbort(void);

/* ---- portal table entries ---- */

/* The first option and the last two promise or allow optimisations that these cards do not use. */
#define PTL_PT_ONLY_USE_ONCE (1u << 8)
#define PTL_PT_ONLY_TRUNCATE (1u << 9)
#define PTL_PT_FLOWCTRL (1u << 0)
#define PTL_PT_MATCH_UNORDERED (1u << 10)

/* Index 0 is reserved for the messages of MPI, at all processes. */
int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle, ptl_pt_index_t pt_index_req,
               ptl_pt_index_t *pt_index);
int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);
int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);
int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* ---- memory descriptors ---- */

#define PTL_MD_EVENT_SUCCESS_DISABLE (1u << 0)
#define PTL_MD_EVENT_SEND_DISABLE (1u << 1)
#define PTL_MD_EVENT_CT_SEND (1u << 2)
#define PTL_MD_EVENT_CT_REPLY (1u << 3)
#define PTL_MD_EVENT_CT_ACK (1u << 4)
#define PTL_MD_EVENT_CT_BYTES (1u << 5)
/* These options allow optimisations that these cards do not use. */
#define PTL_MD_UNORDERED (1u << 24)
#define PTL_MD_VOLATILE (1u << 25)
/* Cards refuse this option. */
#define PTL_IOVEC (1u << 31)

typedef struct {
    void *iov_base;
    ptl_size_t iov_len;
} ptl_iovec_t;

typedef struct {
    void *start;
    ptl_size_t length;
    unsigned int options;
    ptl_handle_eq_t eq_handle;
    ptl_handle_ct_t ct_handle;
} ptl_md_t;

/* Unmapped memory is detected when the card reads or writes it, and ends the run. */
int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle);
int PtlMDRelease(ptl_handle_md_t md_handle);

/* ---- list entries and match entries ---- */

#define PTL_ME_OP_PUT (1u << 0)
#define PTL_ME_OP_GET (1u << 1)
#define PTL_ME_MANAGE_LOCAL (1u << 2)
#define PTL_ME_NO_TRUNCATE (1u << 3)
#define PTL_ME_USE_ONCE (1u << 4)
#define PTL_ME_ACK_DISABLE (1u << 5)
#define PTL_ME_UNEXPECTED_HDR_DISABLE (1u << 6)
#define PTL_ME_EVENT_COMM_DISABLE (1u << 7)
#define PTL_ME_EVENT_SUCCESS_DISABLE (1u << 8)
#define PTL_ME_EVENT_OVER_DISABLE (1u << 9)
#define PTL_ME_EVENT_LINK_DISABLE (1u << 10)
#define PTL_ME_EVENT_UNLINK_DISABLE (1u << 11)
#define PTL_ME_EVENT_CT_COMM (1u << 12)
#define PTL_ME_EVENT_CT_OVERFLOW (1u << 13)
#define PTL_ME_EVENT_CT_BYTES (1u << 14)
#define PTL_ME_EVENT_FLOWCTRL_DISABLE (1u << 15)
/* These options allow optimisations that these cards do not use. */
#define PTL_ME_MAY_ALIGN (1u << 24)
#define PTL_ME_IS_ACCESSIBLE (1u << 25)
/* Cards refuse this option. */
#define PTL_ME_LOCAL_INC_UH_RLENGTH (1u << 26)

#define PTL_LE_OP_PUT PTL_ME_OP_PUT
#define PTL_LE_OP_GET PTL_ME_OP_GET
#define PTL_LE_USE_ONCE PTL_ME_USE_ONCE
#define PTL_LE_ACK_DISABLE PTL_ME_ACK_DISABLE
#define PTL_LE_UNEXPECTED_HDR_DISABLE PTL_ME_UNEXPECTED_HDR_DISABLE
#define PTL_LE_IS_ACCESSIBLE PTL_ME_IS_ACCESSIBLE
#define PTL_LE_EVENT_COMM_DISABLE PTL_ME_EVENT_COMM_DISABLE
#define PTL_LE_EVENT_SUCCESS_DISABLE PTL_ME_EVENT_SUCCESS_DISABLE
#define PTL_LE_EVENT_OVER_DISABLE PTL_ME_EVENT_OVER_DISABLE
#define PTL_LE_EVENT_LINK_DISABLE PTL_ME_EVENT_LINK_DISABLE
#define PTL_LE_EVENT_UNLINK_DISABLE PTL_ME_EVENT_UNLINK_DISABLE
#define PTL_LE_EVENT_FLOWCTRL_DISABLE PTL_ME_EVENT_FLOWCTRL_DISABLE
#define PTL_LE_EVENT_CT_COMM PTL_ME_EVENT_CT_COMM
#define PTL_LE_EVENT_CT_OVERFLOW PTL_ME_EVENT_CT_OVERFLOW
#define PTL_LE_EVENT_CT_BYTES PTL_ME_EVENT_CT_BYTES

typedef enum { PTL_PRIORITY_LIST, PTL_OVERFLOW_LIST } ptl_list_t;
typedef enum { PTL_SEARCH_ONLY, PTL_SEARCH_DELETE } ptl_search_op_t;

typedef struct {
    void *start;
    ptl_size_t length;
    ptl_handle_ct_t ct_handle;
    ptl_uid_t uid;
    unsigned int options;
} ptl_le_t;

typedef struct {
    void *start;
    ptl_size_t length;
    ptl_handle_ct_t ct_handle;
    ptl_uid_t uid;
    unsigned int options;
    ptl_process_t match_id; /* for any process PTL_RANK_ANY, or PTL_NID_ANY and PTL_PID_ANY */
    ptl_match_bits_t match_bits, ignore_bits;
    ptl_size_t min_free;
} ptl_me_t;

/* An append is a command to the card, which crosses the bus. These functions return after the card's answer. */
int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_list_t ptl_list, void *user_ptr,
                ptl_handle_me_t *me_handle);
int PtlMEUnlink(ptl_handle_me_t me_handle);
int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_search_op_t ptl_search_op,
                void *user_ptr);
int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le, ptl_list_t ptl_list, void *user_ptr,
                ptl_handle_le_t *le_handle);
int PtlLEUnlink(ptl_handle_le_t le_handle);
int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le, ptl_search_op_t ptl_search_op,
                void *user_ptr);

/* ---- events ---- */

typedef enum {
    PTL_EVENT_GET,
    PTL_EVENT_GET_OVERFLOW,
    PTL_EVENT_PUT,
    PTL_EVENT_PUT_OVERFLOW,
    PTL_EVENT_ATOMIC,
    PTL_EVENT_ATOMIC_OVERFLOW,
    PTL_EVENT_FETCH_ATOMIC,
    PTL_EVENT_FETCH_ATOMIC_OVERFLOW,
    PTL_EVENT_REPLY,
    PTL_EVENT_SEND,
    PTL_EVENT_ACK,
    PTL_EVENT_PT_DISABLED,
    PTL_EVENT_LINK,
    PTL_EVENT_AUTO_UNLINK,
    PTL_EVENT_AUTO_FREE,
    PTL_EVENT_SEARCH
} ptl_event_kind_t;

/* HANDLER_ERROR and HANDLER_BUDGET are of sPIN. They mean that a handler of the message failed, or had no cycles
 * left. */
typedef enum {
    PTL_NI_OK,
    PTL_NI_UNDELIVERABLE,
    PTL_NI_PT_DISABLED,
    PTL_NI_DROPPED,
    PTL_NI_PERM_VIOLATION,
    PTL_NI_OP_VIOLATION,
    PTL_NI_SEGV,
    PTL_NI_UNSUPPORTED,
    PTL_NI_HANDLER_ERROR,
    PTL_NI_NO_MATCH,
    PTL_NI_HANDLER_BUDGET
} ptl_ni_fail_t;

typedef enum {
    PTL_MIN,
    PTL_MAX,
    PTL_SUM,
    PTL_PROD,
    PTL_LOR,
    PTL_LAND,
    PTL_BOR,
    PTL_BAND,
    PTL_LXOR,
    PTL_BXOR,
    PTL_SWAP,
    PTL_CSWAP,
    PTL_CSWAP_NE,
    PTL_CSWAP_LE,
    PTL_CSWAP_LT,
    PTL_CSWAP_GE,
    PTL_CSWAP_GT,
    PTL_MSWAP
} ptl_op_t;

/* Cards refuse the types of long double. */
typedef enum {
    PTL_INT8_T,
    PTL_UINT8_T,
    PTL_INT16_T,
    PTL_UINT16_T,
    PTL_INT32_T,
    PTL_UINT32_T,
    PTL_INT64_T,
    PTL_UINT64_T,
    PTL_FLOAT,
    PTL_DOUBLE,
    PTL_FLOAT_COMPLEX,
    PTL_DOUBLE_COMPLEX,
    PTL_LONG_DOUBLE,
    PTL_LONG_DOUBLE_COMPLEX
} ptl_datatype_t;

typedef struct {
    void *start;
    void *user_ptr;
    ptl_hdr_data_t hdr_data;
    ptl_match_bits_t match_bits;
    ptl_size_t rlength, mlength, remote_offset;
    ptl_uid_t uid;
    ptl_process_t initiator;
    ptl_event_kind_t type;
    ptl_list_t ptl_list;
    ptl_pt_index_t pt_index;
    ptl_ni_fail_t ni_fail_type;
    ptl_op_t atomic_operation;
    ptl_datatype_t atomic_type;
} ptl_event_t;

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle);
int PtlEQFree(ptl_handle_eq_t eq_handle);
/* These functions return PTL_EQ_DROPPED once if events are lost because the queue was full. The next call returns the
 * next event after the lost events. */
int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event);
int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event);
int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout, ptl_event_t *event,
              unsigned int *which);

/* ---- counting events ---- */

typedef struct {
    ptl_size_t success, failure;
} ptl_ct_event_t;

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle);
int PtlCTFree(ptl_handle_ct_t ct_handle);
int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle);
int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event);
int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event);
int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size, ptl_time_t timeout,
              ptl_ct_event_t *event, unsigned int *which);
int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct);
/* Increments the successes or the failures, but not both. */
int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment);

/* ---- data movement ---- */

typedef enum { PTL_NO_ACK_REQ, PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ } ptl_ack_req_t;

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
           void *user_ptr, ptl_hdr_data_t hdr_data);
int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
           ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr);
int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
              ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
              void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype);
int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                   ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                   ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                   ptl_op_t operation, ptl_datatype_t datatype);
int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
            const void *operand, ptl_op_t operation, ptl_datatype_t datatype);
int PtlAtomicSync(void);

/* ---- triggered operations, which begin when the sum of the counter's successes and failures reaches the threshold
 * ---- */

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold);
int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
                    ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                    ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                       ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                       ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                       ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id,
                            ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                            void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                            ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                     ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                     ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                     const void *operand, ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                     ptl_size_t threshold);
int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold);
int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct, ptl_handle_ct_t trig_ct_handle,
                      ptl_size_t threshold);

/* Bundles allow a card to begin several operations together. These cards begin each operation separately. */
int PtlStartBundle(ptl_handle_ni_t ni_handle);
int PtlEndBundle(ptl_handle_ni_t ni_handle);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
