/* Functions of Portals that check their arguments and make a call.
 *
 * Made of crates/nicety/src/commands/table.rs by crates/exec/tests/portals_calls, and not to be changed by hand. */

#include "portals_calls.h"

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status) {
    struct asked_ni_status asked = {
        .status_register = status_register,
    };
    struct told_number told;
    int code = portals_check(ni_handle);
    if (!code)
        code = status ? PTL_OK : portals_refuse(PTL_ARG_INVALID, "status is NULL");
    if (!code)
        code = ask_ni_status(&asked, &told);
    if (!code)
        *status = (ptl_sr_value_t)told.value;
    return code;
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid) {
    struct told_number told;
    int code = portals_check(ni_handle);
    if (!code)
        code = uid ? PTL_OK : portals_refuse(PTL_ARG_INVALID, "uid is NULL");
    if (!code)
        code = ask_uid(&told);
    if (!code)
        *uid = (ptl_uid_t)told.value;
    return code;
}

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq, ptl_pt_index_t pt,
               ptl_pt_index_t *pt_index) {
    struct asked_pt_alloc asked = {
        .options = options & ~PT_UNUSED,
        .eq = eq,
        .pt = pt,
    };
    struct told_number told;
    int code = portals_check(ni_handle);
    if (!code)
        code = pt_index ? PTL_OK : portals_refuse(PTL_ARG_INVALID, "pt_index is NULL");
    if (!code)
        code = ask_pt_alloc(&asked, &told);
    if (!code)
        *pt_index = (ptl_pt_index_t)told.value;
    return code;
}

int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt) {
    struct asked_pt_free asked = {
        .pt = pt,
    };
    int code = portals_check(ni_handle);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = ask_pt_free(&asked);
    return code;
}

int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt) {
    struct asked_pt_enable asked = {
        .pt = pt,
        .enabled = 1,
    };
    int code = portals_check(ni_handle);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = ask_pt_enable(&asked);
    return code;
}

int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt) {
    struct asked_pt_enable asked = {
        .pt = pt,
        .enabled = 0,
    };
    int code = portals_check(ni_handle);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = ask_pt_enable(&asked);
    return code;
}

int PtlMDRelease(ptl_handle_md_t md) {
    struct asked_md_release asked = {
        .md = md,
    };
    return ask_md_release(&asked);
}

int PtlMEUnlink(ptl_handle_me_t me) {
    struct asked_me_unlink asked = {
        .me = me,
    };
    return ask_me_unlink(&asked);
}

int PtlLEUnlink(ptl_handle_me_t me) {
    struct asked_me_unlink asked = {
        .me = me,
    };
    return ask_me_unlink(&asked);
}

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle) {
    struct asked_eq_alloc asked = {
        .count = count,
    };
    struct told_number told;
    int code = portals_check(ni_handle);
    if (!code)
        code = eq_handle ? PTL_OK : portals_refuse(PTL_ARG_INVALID, "eq_handle is NULL");
    if (!code)
        code = ask_eq_alloc(&asked, &told);
    if (!code)
        *eq_handle = (ptl_handle_eq_t)told.value;
    return code;
}

int PtlEQFree(ptl_handle_eq_t eq) {
    struct asked_eq_free asked = {
        .eq = eq,
    };
    return ask_eq_free(&asked);
}

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle) {
    struct told_number told;
    int code = portals_check(ni_handle);
    if (!code)
        code = ct_handle ? PTL_OK : portals_refuse(PTL_ARG_INVALID, "ct_handle is NULL");
    if (!code)
        code = ask_ct_alloc(&told);
    if (!code)
        *ct_handle = (ptl_handle_ct_t)told.value;
    return code;
}

int PtlCTFree(ptl_handle_ct_t ct) {
    struct asked_ct_free asked = {
        .ct = ct,
    };
    return ask_ct_free(&asked);
}

int PtlCTCancelTriggered(ptl_handle_ct_t ct) {
    struct asked_ct_cancel asked = {
        .ct = ct,
    };
    return ask_ct_cancel(&asked);
}

int PtlCTSet(ptl_handle_ct_t ct, ptl_ct_event_t count) {
    struct asked_ct_set asked = {
        .ct = ct,
        .success = count.success,
        .failure = count.failure,
        .trigger = PTL_CT_NONE,
        .threshold = 0,
    };
    return ask_ct_set(&asked);
}

int PtlTriggeredCTSet(ptl_handle_ct_t ct, ptl_ct_event_t count, ptl_handle_ct_t trigger, ptl_size_t threshold) {
    struct asked_ct_set asked = {
        .ct = ct,
        .success = count.success,
        .failure = count.failure,
        .trigger = trigger,
        .threshold = threshold,
    };
    int code = portals_triggered(trigger);
    if (!code)
        code = ask_ct_set(&asked);
    return code;
}

int PtlCTInc(ptl_handle_ct_t ct, ptl_ct_event_t count) {
    struct asked_ct_inc asked = {
        .ct = ct,
        .success = count.success,
        .failure = count.failure,
        .trigger = PTL_CT_NONE,
        .threshold = 0,
    };
    return ask_ct_inc(&asked);
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct, ptl_ct_event_t count, ptl_handle_ct_t trigger, ptl_size_t threshold) {
    struct asked_ct_inc asked = {
        .ct = ct,
        .success = count.success,
        .failure = count.failure,
        .trigger = trigger,
        .threshold = threshold,
    };
    int code = portals_triggered(trigger);
    if (!code)
        code = ask_ct_inc(&asked);
    return code;
}

int PtlPut(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack, ptl_process_t target,
           ptl_pt_index_t pt, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
           ptl_hdr_data_t hdr_data) {
    struct asked_put asked = {
        .md = md,
        .local_offset = local_offset,
        .length = length,
        .ack = ack,
        .target = 0,
        .pt = pt,
        .match_bits = portals_matches() ? match_bits : 0,
        .remote_offset = remote_offset,
        .user_ptr = (uintptr_t)user_ptr,
        .hdr_data = hdr_data,
        .trigger = PTL_CT_NONE,
        .threshold = 0,
    };
    int code = portals_check(NI_HANDLE);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = portals_rank(target, 0, &asked.target);
    if (!code)
        code = ask_put(&asked);
    return code;
}

int PtlTriggeredPut(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack,
                    ptl_process_t target, ptl_pt_index_t pt, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                    void *user_ptr, ptl_hdr_data_t hdr_data, ptl_handle_ct_t trigger, ptl_size_t threshold) {
    struct asked_put asked = {
        .md = md,
        .local_offset = local_offset,
        .length = length,
        .ack = ack,
        .target = 0,
        .pt = pt,
        .match_bits = portals_matches() ? match_bits : 0,
        .remote_offset = remote_offset,
        .user_ptr = (uintptr_t)user_ptr,
        .hdr_data = hdr_data,
        .trigger = trigger,
        .threshold = threshold,
    };
    int code = portals_triggered(trigger);
    if (!code)
        code = portals_check(NI_HANDLE);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = portals_rank(target, 0, &asked.target);
    if (!code)
        code = ask_put(&asked);
    return code;
}

int PtlGet(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target, ptl_pt_index_t pt,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr) {
    struct asked_get asked = {
        .md = md,
        .local_offset = local_offset,
        .length = length,
        .target = 0,
        .pt = pt,
        .match_bits = portals_matches() ? match_bits : 0,
        .remote_offset = remote_offset,
        .user_ptr = (uintptr_t)user_ptr,
        .trigger = PTL_CT_NONE,
        .threshold = 0,
    };
    int code = portals_check(NI_HANDLE);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = portals_rank(target, 0, &asked.target);
    if (!code)
        code = ask_get(&asked);
    return code;
}

int PtlTriggeredGet(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target,
                    ptl_pt_index_t pt, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                    ptl_handle_ct_t trigger, ptl_size_t threshold) {
    struct asked_get asked = {
        .md = md,
        .local_offset = local_offset,
        .length = length,
        .target = 0,
        .pt = pt,
        .match_bits = portals_matches() ? match_bits : 0,
        .remote_offset = remote_offset,
        .user_ptr = (uintptr_t)user_ptr,
        .trigger = trigger,
        .threshold = threshold,
    };
    int code = portals_triggered(trigger);
    if (!code)
        code = portals_check(NI_HANDLE);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = portals_rank(target, 0, &asked.target);
    if (!code)
        code = ask_get(&asked);
    return code;
}

int PtlAtomic(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack, ptl_process_t target,
              ptl_pt_index_t pt, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
              ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype) {
    struct asked_atomic asked = {
        .md = md,
        .local_offset = local_offset,
        .length = length,
        .ack = ack,
        .target = 0,
        .pt = pt,
        .match_bits = portals_matches() ? match_bits : 0,
        .remote_offset = remote_offset,
        .user_ptr = (uintptr_t)user_ptr,
        .hdr_data = hdr_data,
        .operation = operation,
        .datatype = datatype,
        .trigger = PTL_CT_NONE,
        .threshold = 0,
    };
    int code = portals_check(NI_HANDLE);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = portals_rank(target, 0, &asked.target);
    if (!code)
        code = portals_type(datatype);
    if (!code)
        code = ask_atomic(&asked);
    return code;
}

int PtlTriggeredAtomic(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack,
                       ptl_process_t target, ptl_pt_index_t pt, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                       void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                       ptl_handle_ct_t trigger, ptl_size_t threshold) {
    struct asked_atomic asked = {
        .md = md,
        .local_offset = local_offset,
        .length = length,
        .ack = ack,
        .target = 0,
        .pt = pt,
        .match_bits = portals_matches() ? match_bits : 0,
        .remote_offset = remote_offset,
        .user_ptr = (uintptr_t)user_ptr,
        .hdr_data = hdr_data,
        .operation = operation,
        .datatype = datatype,
        .trigger = trigger,
        .threshold = threshold,
    };
    int code = portals_triggered(trigger);
    if (!code)
        code = portals_check(NI_HANDLE);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = portals_rank(target, 0, &asked.target);
    if (!code)
        code = portals_type(datatype);
    if (!code)
        code = ask_atomic(&asked);
    return code;
}

int PtlFetchAtomic(ptl_handle_md_t get_md, ptl_size_t local_get_offset, ptl_handle_md_t md, ptl_size_t local_offset,
                   ptl_size_t length, ptl_process_t target, ptl_pt_index_t pt, ptl_match_bits_t match_bits,
                   ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                   ptl_datatype_t datatype) {
    struct asked_fetch_atomic asked = {
        .get_md = get_md,
        .local_get_offset = local_get_offset,
        .md = md,
        .local_offset = local_offset,
        .length = length,
        .target = 0,
        .pt = pt,
        .match_bits = portals_matches() ? match_bits : 0,
        .remote_offset = remote_offset,
        .user_ptr = (uintptr_t)user_ptr,
        .hdr_data = hdr_data,
        .operation = operation,
        .datatype = datatype,
        .trigger = PTL_CT_NONE,
        .threshold = 0,
    };
    int code = portals_check(NI_HANDLE);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = portals_rank(target, 0, &asked.target);
    if (!code)
        code = portals_type(datatype);
    if (!code)
        code = ask_fetch_atomic(&asked);
    return code;
}

int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md, ptl_size_t local_get_offset, ptl_handle_md_t md,
                            ptl_size_t local_offset, ptl_size_t length, ptl_process_t target, ptl_pt_index_t pt,
                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                            ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                            ptl_handle_ct_t trigger, ptl_size_t threshold) {
    struct asked_fetch_atomic asked = {
        .get_md = get_md,
        .local_get_offset = local_get_offset,
        .md = md,
        .local_offset = local_offset,
        .length = length,
        .target = 0,
        .pt = pt,
        .match_bits = portals_matches() ? match_bits : 0,
        .remote_offset = remote_offset,
        .user_ptr = (uintptr_t)user_ptr,
        .hdr_data = hdr_data,
        .operation = operation,
        .datatype = datatype,
        .trigger = trigger,
        .threshold = threshold,
    };
    int code = portals_triggered(trigger);
    if (!code)
        code = portals_check(NI_HANDLE);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = portals_rank(target, 0, &asked.target);
    if (!code)
        code = portals_type(datatype);
    if (!code)
        code = ask_fetch_atomic(&asked);
    return code;
}

int PtlSwap(ptl_handle_md_t get_md, ptl_size_t local_get_offset, ptl_handle_md_t md, ptl_size_t local_offset,
            ptl_size_t length, ptl_process_t target, ptl_pt_index_t pt, ptl_match_bits_t match_bits,
            ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
            ptl_op_t operation, ptl_datatype_t datatype) {
    struct asked_swap asked = {
        .get_md = get_md,
        .local_get_offset = local_get_offset,
        .md = md,
        .local_offset = local_offset,
        .length = length,
        .target = 0,
        .pt = pt,
        .match_bits = portals_matches() ? match_bits : 0,
        .remote_offset = remote_offset,
        .user_ptr = (uintptr_t)user_ptr,
        .hdr_data = hdr_data,
        .operand_low = 0,
        .operand_high = 0,
        .operand_bytes = 0,
        .operation = operation,
        .datatype = datatype,
        .trigger = PTL_CT_NONE,
        .threshold = 0,
    };
    int code = portals_check(NI_HANDLE);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = portals_rank(target, 0, &asked.target);
    if (!code)
        code = portals_type(datatype);
    if (!code)
        code = portals_operand(operand, &asked);
    if (!code)
        code = ask_swap(&asked);
    return code;
}

int PtlTriggeredSwap(ptl_handle_md_t get_md, ptl_size_t local_get_offset, ptl_handle_md_t md, ptl_size_t local_offset,
                     ptl_size_t length, ptl_process_t target, ptl_pt_index_t pt, ptl_match_bits_t match_bits,
                     ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
                     ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trigger, ptl_size_t threshold) {
    struct asked_swap asked = {
        .get_md = get_md,
        .local_get_offset = local_get_offset,
        .md = md,
        .local_offset = local_offset,
        .length = length,
        .target = 0,
        .pt = pt,
        .match_bits = portals_matches() ? match_bits : 0,
        .remote_offset = remote_offset,
        .user_ptr = (uintptr_t)user_ptr,
        .hdr_data = hdr_data,
        .operand_low = 0,
        .operand_high = 0,
        .operand_bytes = 0,
        .operation = operation,
        .datatype = datatype,
        .trigger = trigger,
        .threshold = threshold,
    };
    int code = portals_triggered(trigger);
    if (!code)
        code = portals_check(NI_HANDLE);
    if (!code)
        code = portals_index(pt);
    if (!code)
        code = portals_rank(target, 0, &asked.target);
    if (!code)
        code = portals_type(datatype);
    if (!code)
        code = portals_operand(operand, &asked);
    if (!code)
        code = ask_swap(&asked);
    return code;
}

int PtlAtomicSync(void) {
    int code = portals_check(NI_HANDLE);
    if (!code)
        code = ask_atomic_sync();
    return code;
}

int PtlHPUAllocMem(ptl_handle_ni_t ni_handle, ptl_size_t length, ptl_handle_hpu_mem_t *hpu_memory) {
    struct asked_hpu_alloc asked = {
        .length = length,
    };
    struct told_number told;
    int code = portals_check(ni_handle);
    if (!code)
        code = hpu_memory ? PTL_OK : portals_refuse(PTL_ARG_INVALID, "hpu_memory is NULL");
    if (!code)
        code = ask_hpu_alloc(&asked, &told);
    if (!code)
        *hpu_memory = (ptl_handle_hpu_mem_t)told.value;
    return code;
}

int PtlHPUFreeMem(ptl_handle_hpu_mem_t memory) {
    struct asked_hpu_free asked = {
        .memory = memory,
    };
    return ask_hpu_free(&asked);
}

int PtlHPUWrite(ptl_handle_hpu_mem_t memory, ptl_size_t offset, const void *from, ptl_size_t length) {
    struct asked_hpu_write asked = {
        .memory = memory,
        .offset = offset,
        .from = (uintptr_t)from,
        .length = length,
    };
    return ask_hpu_write(&asked);
}

int PtlHPURead(ptl_handle_hpu_mem_t memory, ptl_size_t offset, void *to, ptl_size_t length) {
    struct asked_hpu_read asked = {
        .memory = memory,
        .offset = offset,
        .to = (uintptr_t)to,
        .length = length,
    };
    return ask_hpu_read(&asked);
}

int PtlHandlersDetach(ptl_handle_handlers_t handlers) {
    struct asked_detach asked = {
        .handlers = handlers,
    };
    return ask_detach(&asked);
}
