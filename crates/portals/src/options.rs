//! Options of calls, named as in the specification but without `PTL_ME_` and `PTL_MD_`.

use bitflags::bitflags;

bitflags! {
    /// Options of a match entry ('Match List Entries and Matching Lists', `ptl_me_t`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct MeOptions: u32 {
        /// Puts and atomics may operate on the entry. Without this option, a matching put or atomic is refused.
        const OP_PUT = 1 << 0;
        /// Gets may operate on the entry. Fetch-and-atomics and swaps need both this option and `OP_PUT`.
        const OP_GET = 1 << 1;
        /// The target manages the offset, which grows with every message. Without this option, the initiator sets the
        /// offset.
        const MANAGE_LOCAL = 1 << 2;
        /// A message longer than the remaining memory does not match. Without this option, the message is truncated.
        const NO_TRUNCATE = 1 << 3;
        /// The first message that matches unlinks the entry.
        const USE_ONCE = 1 << 4;
        /// No acknowledgement is sent, even if requested.
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
        /// No `PT_DISABLED` event if a message that matches the entry finds an exhausted resource.
        const EVENT_FLOWCTRL_DISABLE = 1 << 15;
        /// Redelivers a put that the entry finds among the unexpected headers, as if it arrived now. The entry's
        /// handlers process the message, and the host gets a `PUT` event instead of `PUT_OVERFLOW`. Only use-once
        /// entries without a local offset may have this option. Portals 4 lacks it: there the host gets an event, and
        /// copies the bytes itself.
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
        /// A message that finds an exhausted resource disables the entry. A resource is exhausted if no match entry
        /// accepts the message, or the queue lacks room for its events. The same holds if no unexpected header is free,
        /// or the card refuses the message.
        const FLOWCTRL = 1 << 0;
    }
}

bitflags! {
    /// The operations that a card supports beside puts. The host may not start any other operation. As a target, the
    /// card drops messages of other operations with [`crate::FailType::Unsupported`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Features: u32 {
        /// Gets.
        const GET = 1 << 0;
        /// Atomics, fetch-and-atomics and swaps.
        const ATOMIC = 1 << 1;
    }
}

/// The acknowledgement that the initiator of a put requests ('Data Movement Operations', `ptl_ack_req_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AckRequest {
    /// `PTL_NO_ACK_REQ`: no acknowledgement.
    #[default]
    None = 0,
    /// `PTL_ACK_REQ`: a full event with the number of bytes kept and the offset used, and a count.
    Full = 1,
    /// `PTL_CT_ACK_REQ`: only a count, in kept bytes if the descriptor counts bytes.
    Counting = 2,
    /// `PTL_OC_ACK_REQ`: only a count, in requested bytes if the descriptor counts bytes.
    OperationCompleted = 3,
}

impl AckRequest {
    pub(crate) const ALL: [AckRequest; 4] =
        [AckRequest::None, AckRequest::Full, AckRequest::Counting, AckRequest::OperationCompleted];
}

/// The list of a match entry (`ptl_list_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum List {
    /// The priority list, which is searched first.
    #[default]
    Priority,
    /// The overflow list, which is searched if no entry of the priority list matches. A match on it leaves an
    /// unexpected header.
    Overflow,
}

/// The effect of a search on the unexpected headers that it finds (`ptl_search_op_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchOp {
    /// `PTL_SEARCH_ONLY`: the headers stay on the list.
    Only,
    /// `PTL_SEARCH_DELETE`: the search removes the headers from the list, as an append does.
    Delete,
}
