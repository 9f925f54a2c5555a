//! Option sets, named as in the specification without their `PTL_ME_` and `PTL_MD_`.

use bitflags::bitflags;

bitflags! {
    /// Options of a match entry ('Match List Entries and Matching Lists', `ptl_me_t`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct MeOptions: u32 {
        /// Puts and atomics may operate on the entry. Without it one that matches is refused.
        const OP_PUT = 1 << 0;
        /// Gets may operate on the entry; fetch-and-atomics and swaps where puts may, too.
        const OP_GET = 1 << 1;
        /// The offset is kept at the target and grows with every message; without it the initiator gives it.
        const MANAGE_LOCAL = 1 << 2;
        /// A message longer than the memory left does not match; without it, it is truncated.
        const NO_TRUNCATE = 1 << 3;
        /// The entry is unlinked by the first message that matches it.
        const USE_ONCE = 1 << 4;
        /// No acknowledgement is given, even where one is asked for.
        const ACK_DISABLE = 1 << 5;
        /// A message that matches on the overflow list leaves no unexpected header.
        const UNEXPECTED_HDR_DISABLE = 1 << 6;
        /// No full events for communication.
        const EVENT_COMM_DISABLE = 1 << 7;
        /// No full events for communication that succeeds.
        const EVENT_SUCCESS_DISABLE = 1 << 8;
        /// No full events for messages found among the unexpected headers.
        const EVENT_OVER_DISABLE = 1 << 9;
        /// No `LINK` event.
        const EVENT_LINK_DISABLE = 1 << 10;
        /// No `AUTO_UNLINK` and no `AUTO_FREE` event.
        const EVENT_UNLINK_DISABLE = 1 << 11;
        /// The counter counts communication.
        const EVENT_CT_COMM = 1 << 12;
        /// The counter counts messages found among the unexpected headers.
        const EVENT_CT_OVERFLOW = 1 << 13;
        /// The counter counts bytes kept, not messages.
        const EVENT_CT_BYTES = 1 << 14;
        /// No `PT_DISABLED` event where a message that matches the entry finds a resource exhausted.
        const EVENT_FLOWCTRL_DISABLE = 1 << 15;
        /// A put that the entry finds among the unexpected headers is delivered to it as if it came now, with
        /// the entry's handlers and its `PUT` event, and leaves no `PUT_OVERFLOW` event. For use-once entries
        /// without a local offset. Not of Portals 4, where the host is told and copies it.
        const REDELIVER = 1 << 16;
    }
}

bitflags! {
    /// Options of a memory descriptor ('Memory Descriptors', `ptl_md_t`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct MdOptions: u32 {
        /// No full events for operations that succeed.
        const EVENT_SUCCESS_DISABLE = 1 << 0;
        /// No `SEND` events.
        const EVENT_SEND_DISABLE = 1 << 1;
        /// The counter counts sends.
        const EVENT_CT_SEND = 1 << 2;
        /// The counter counts replies.
        const EVENT_CT_REPLY = 1 << 3;
        /// The counter counts acknowledgements.
        const EVENT_CT_ACK = 1 << 4;
        /// The counter counts bytes, not operations.
        const EVENT_CT_BYTES = 1 << 5;
    }
}

bitflags! {
    /// Options of a portal table entry ('Portal Table Entries', `PtlPTAlloc`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct PtOptions: u32 {
        /// A message that finds a resource exhausted disables the entry: no match entry takes it, its events
        /// have no room in the queue, there is no room for its unexpected header, or the card refuses it.
        const FLOWCTRL = 1 << 0;
    }
}

bitflags! {
    /// A card's operations beside puts. The host may start only those, and a target drops the rest with
    /// [`crate::FailType::Unsupported`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Features: u32 {
        /// Gets.
        const GET = 1 << 0;
        /// Atomics, fetch-and-atomics and swaps.
        const ATOMIC = 1 << 1;
    }
}

/// The acknowledgement that the initiator of a put asks for ('Data Movement Operations', `ptl_ack_req_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AckRequest {
    /// `PTL_NO_ACK_REQ`: nothing.
    #[default]
    None = 0,
    /// `PTL_ACK_REQ`: a full event with the length kept and the offset used, and a count.
    Full = 1,
    /// `PTL_CT_ACK_REQ`: a count only, of the bytes kept where the descriptor counts bytes.
    Counting = 2,
    /// `PTL_OC_ACK_REQ`: a count only, of the bytes asked for where the descriptor counts bytes.
    OperationCompleted = 3,
}

impl AckRequest {
    pub(crate) const ALL: [AckRequest; 4] =
        [AckRequest::None, AckRequest::Full, AckRequest::Counting, AckRequest::OperationCompleted];
}
