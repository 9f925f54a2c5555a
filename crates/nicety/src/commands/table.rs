//! The table of Portals calls that processes in C make, with the calls' arguments and outcomes.

/// Passes the table of Portals calls to a macro, which generates one layer from it.
///
/// A line of the table has the call's name in C and in Rust, and its arguments with their C types. The call's outcome
/// and its functions in `portals4.h` follow. Calls are numbered from 1, in the order of this table. A process and the
/// simulation exchange arguments and outcomes as words, in this order.
///
/// Each function of a line only makes the call. Its parameters are the call's arguments, except for arguments with a
/// constant in `{ }`. The function first checks its interface: `(ni)` is a parameter, and `(open)` means the only open
/// interface. The parameter after `->` receives the outcome's `value`.
///
/// Types are those of `portals4.h`, or one of these:
///
/// - `word`: 64 bits; `pointer` and `bytes`: addresses;
/// - `pt_options` and `any_pt`: the options and the index of a new portal table entry;
/// - `match_bits`: match bits, which are 0 if the interface is not matching; `trigger`: the counter that triggers the call;
/// - `operand`: one of the three words of an operand.
#[macro_export]
macro_rules! portals_calls {
    ($with:ident) => {
        $with! {
            outcomes: {
                Nothing {}
                Number { value }
                Count { success, failure, which }
                Event {
                    kind, fail, initiator, pt, list, match_bits, uid, operation, datatype, hdr_data, rlength, mlength,
                    remote_offset, start, user_ptr, which
                }
                Limits {
                    max_entries, max_unexpected_headers, max_mds, max_eqs, max_cts, max_pt_index, max_list_size,
                    max_triggered_ops, max_msg_size, max_atomic_size, max_fetch_atomic_size
                }
            }
            calls: {
                NI_INIT NiInit { options: word } -> Limits [];
                NI_FINI NiFini {} -> Nothing [];
                NI_STATUS NiStatus { status_register: ptl_sr_index_t } -> Number [PtlNIStatus(ni) -> status: ptl_sr_value_t];
                UID Uid {} -> Number [PtlGetUid(ni) -> uid: ptl_uid_t];

                PT_ALLOC PtAlloc { options: pt_options, eq: ptl_handle_eq_t, pt: any_pt } -> Number
                    [PtlPTAlloc(ni) -> pt_index: ptl_pt_index_t];
                PT_FREE PtFree { pt: ptl_pt_index_t } -> Nothing [PtlPTFree(ni)];
                PT_ENABLE PtEnable { pt: ptl_pt_index_t, enabled: word } -> Nothing
                    [PtlPTEnable(ni) { enabled: 1 }, PtlPTDisable(ni) { enabled: 0 }];

                MD_BIND MdBind {
                    start: pointer, length: ptl_size_t, options: word, eq: ptl_handle_eq_t, ct: ptl_handle_ct_t
                } -> Number [];
                MD_RELEASE MdRelease { md: ptl_handle_md_t } -> Nothing [PtlMDRelease()];

                ME_APPEND MeAppend {
                    pt: ptl_pt_index_t, start: pointer, length: ptl_size_t, ct: ptl_handle_ct_t, uid: ptl_uid_t,
                    options: word, match_id: ptl_process_t, match_bits: match_bits, ignore_bits: match_bits,
                    min_free: ptl_size_t, list: ptl_list_t, user_ptr: pointer, handlers: ptl_handle_handlers_t
                } -> Number [];
                ME_UNLINK MeUnlink { me: ptl_handle_me_t } -> Nothing [PtlMEUnlink(), PtlLEUnlink()];
                ME_SEARCH MeSearch {
                    pt: ptl_pt_index_t, start: pointer, length: ptl_size_t, ct: ptl_handle_ct_t, uid: ptl_uid_t,
                    options: word, match_id: ptl_process_t, match_bits: match_bits, ignore_bits: match_bits,
                    min_free: ptl_size_t, op: ptl_search_op_t, user_ptr: pointer, handlers: ptl_handle_handlers_t
                } -> Nothing [];

                EQ_ALLOC EqAlloc { count: ptl_size_t } -> Number [PtlEQAlloc(ni) -> eq_handle: ptl_handle_eq_t];
                EQ_FREE EqFree { eq: ptl_handle_eq_t } -> Nothing [PtlEQFree()];
                EQ_GET EqGet { eq: ptl_handle_eq_t } -> Event [];
                EQ_POLL EqPoll { eqs: pointer, size: word, timeout: ptl_time_t } -> Event [];

                CT_ALLOC CtAlloc {} -> Number [PtlCTAlloc(ni) -> ct_handle: ptl_handle_ct_t];
                CT_FREE CtFree { ct: ptl_handle_ct_t } -> Nothing [PtlCTFree()];
                CT_CANCEL CtCancel { ct: ptl_handle_ct_t } -> Nothing [PtlCTCancelTriggered()];
                CT_GET CtGet { ct: ptl_handle_ct_t } -> Count [];
                CT_WAIT CtWait { ct: ptl_handle_ct_t, test: ptl_size_t } -> Count [];
                CT_POLL CtPoll { cts: pointer, tests: pointer, size: word, timeout: ptl_time_t } -> Count [];
                CT_SET CtSet {
                    ct: ptl_handle_ct_t, success: ptl_ct_event_t, failure: ptl_ct_event_t, trigger: trigger,
                    threshold: ptl_size_t
                } -> Nothing [PtlCTSet() { trigger: PTL_CT_NONE, threshold: 0 }, PtlTriggeredCTSet()];
                CT_INC CtInc {
                    ct: ptl_handle_ct_t, success: ptl_ct_event_t, failure: ptl_ct_event_t, trigger: trigger,
                    threshold: ptl_size_t
                } -> Nothing [PtlCTInc() { trigger: PTL_CT_NONE, threshold: 0 }, PtlTriggeredCTInc()];

                PUT Put {
                    md: ptl_handle_md_t, local_offset: ptl_size_t, length: ptl_size_t, ack: ptl_ack_req_t,
                    target: ptl_process_t, pt: ptl_pt_index_t, match_bits: match_bits, remote_offset: ptl_size_t,
                    user_ptr: pointer, hdr_data: ptl_hdr_data_t, trigger: trigger, threshold: ptl_size_t
                } -> Nothing [PtlPut(open) { trigger: PTL_CT_NONE, threshold: 0 }, PtlTriggeredPut(open)];
                GET Get {
                    md: ptl_handle_md_t, local_offset: ptl_size_t, length: ptl_size_t, target: ptl_process_t,
                    pt: ptl_pt_index_t, match_bits: match_bits, remote_offset: ptl_size_t, user_ptr: pointer,
                    trigger: trigger, threshold: ptl_size_t
                } -> Nothing [PtlGet(open) { trigger: PTL_CT_NONE, threshold: 0 }, PtlTriggeredGet(open)];
                ATOMIC Atomic {
                    md: ptl_handle_md_t, local_offset: ptl_size_t, length: ptl_size_t, ack: ptl_ack_req_t,
                    target: ptl_process_t, pt: ptl_pt_index_t, match_bits: match_bits, remote_offset: ptl_size_t,
                    user_ptr: pointer, hdr_data: ptl_hdr_data_t, operation: ptl_op_t, datatype: ptl_datatype_t,
                    trigger: trigger, threshold: ptl_size_t
                } -> Nothing [PtlAtomic(open) { trigger: PTL_CT_NONE, threshold: 0 }, PtlTriggeredAtomic(open)];
                FETCH_ATOMIC FetchAtomic {
                    get_md: ptl_handle_md_t, local_get_offset: ptl_size_t, md: ptl_handle_md_t,
                    local_offset: ptl_size_t, length: ptl_size_t, target: ptl_process_t, pt: ptl_pt_index_t,
                    match_bits: match_bits, remote_offset: ptl_size_t, user_ptr: pointer, hdr_data: ptl_hdr_data_t,
                    operation: ptl_op_t, datatype: ptl_datatype_t, trigger: trigger, threshold: ptl_size_t
                } -> Nothing
                    [PtlFetchAtomic(open) { trigger: PTL_CT_NONE, threshold: 0 }, PtlTriggeredFetchAtomic(open)];
                SWAP Swap {
                    get_md: ptl_handle_md_t, local_get_offset: ptl_size_t, md: ptl_handle_md_t,
                    local_offset: ptl_size_t, length: ptl_size_t, target: ptl_process_t, pt: ptl_pt_index_t,
                    match_bits: match_bits, remote_offset: ptl_size_t, user_ptr: pointer, hdr_data: ptl_hdr_data_t,
                    operand_low: operand, operand_high: operand, operand_bytes: operand,
                    operation: ptl_op_t, datatype: ptl_datatype_t, trigger: trigger, threshold: ptl_size_t
                } -> Nothing [PtlSwap(open) { trigger: PTL_CT_NONE, threshold: 0 }, PtlTriggeredSwap(open)];
                ATOMIC_SYNC AtomicSync {} -> Nothing [PtlAtomicSync(open)];

                HPU_ALLOC HpuAlloc { length: ptl_size_t } -> Number
                    [PtlHPUAllocMem(ni) -> hpu_memory: ptl_handle_hpu_mem_t];
                HPU_FREE HpuFree { memory: ptl_handle_hpu_mem_t } -> Nothing [PtlHPUFreeMem()];
                HPU_WRITE HpuWrite {
                    memory: ptl_handle_hpu_mem_t, offset: ptl_size_t, from: bytes, length: ptl_size_t
                } -> Nothing [PtlHPUWrite()];
                HPU_READ HpuRead {
                    memory: ptl_handle_hpu_mem_t, offset: ptl_size_t, to: pointer, length: ptl_size_t
                } -> Nothing [PtlHPURead()];
                ATTACH Attach {
                    program: pointer, program_bytes: word, header: pointer, header_bytes: word, payload: pointer,
                    payload_bytes: word, completion: pointer, completion_bytes: word,
                    memory: ptl_handle_hpu_mem_t, state: pointer, state_bytes: word, start: pointer, length: word
                } -> Number [];
                DETACH Detach { handlers: ptl_handle_handlers_t } -> Nothing [PtlHandlersDetach()];

                BARRIER Barrier {} -> Nothing [];
                COMPUTE Compute { ns: word } -> Nothing [];
                FINI Fini {} -> Nothing [];
                CT_AWAIT CtAwait { ct: ptl_handle_ct_t, test: ptl_size_t } -> Count [];
                COPY Copied { bytes: word } -> Nothing [];
            }
        }
    };
}
