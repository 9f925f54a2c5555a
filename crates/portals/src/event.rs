//! Full events and counting events ('Events and Event Queues', 'Lightweight Counting Events').

use crate::named::named;
use crate::{Atomic, FailType, HeaderKind, List};
use nicety_types::NodeId;

named! {
    /// The kind of a full event ('Events and Event Queues', `ptl_event_kind_t`).
    pub enum EventKind {
        /// A get read a match entry of this target.
        Get = "PTL_EVENT_GET",
        /// An append found a get that had read an overflow entry.
        GetOverflow = "PTL_EVENT_GET_OVERFLOW",
        /// A put has been deposited at this target.
        Put = "PTL_EVENT_PUT",
        /// An append found a put that had been deposited in an overflow entry.
        PutOverflow = "PTL_EVENT_PUT_OVERFLOW",
        /// An atomic operation was applied at this target.
        Atomic = "PTL_EVENT_ATOMIC",
        /// An append found an atomic operation that had been applied to an overflow entry.
        AtomicOverflow = "PTL_EVENT_ATOMIC_OVERFLOW",
        /// An atomic operation that returns data was applied at this target.
        FetchAtomic = "PTL_EVENT_FETCH_ATOMIC",
        /// An append found a fetch-and-atomic or swap that had been applied to an overflow entry.
        FetchAtomicOverflow = "PTL_EVENT_FETCH_ATOMIC_OVERFLOW",
        /// The reply to a get, fetch-and-atomic or swap of this initiator has arrived.
        Reply = "PTL_EVENT_REPLY",
        /// The card has read an operation's source memory, so the host may reuse it.
        Send = "PTL_EVENT_SEND",
        /// The target has acknowledged an operation of this initiator.
        Ack = "PTL_EVENT_ACK",
        /// Flow control has disabled a portal table entry.
        PtDisabled = "PTL_EVENT_PT_DISABLED",
        /// A match entry was linked to its list.
        Link = "PTL_EVENT_LINK",
        /// A match entry has left its list by itself, and all messages that it matched are complete.
        AutoUnlink = "PTL_EVENT_AUTO_UNLINK",
        /// The last unexpected header that refers to an unlinked overflow entry has been removed.
        AutoFree = "PTL_EVENT_AUTO_FREE",
        /// A search has found an unexpected header, or none.
        Search = "PTL_EVENT_SEARCH",
    }
}

impl EventKind {
    /// Returns the event kind at the target for a message of this kind that matched on this list.
    pub(crate) const fn of(kind: HeaderKind, list: List) -> EventKind {
        match (kind, list) {
            (HeaderKind::Get, List::Priority) => EventKind::Get,
            (HeaderKind::Get, List::Overflow) => EventKind::GetOverflow,
            (HeaderKind::Atomic, List::Priority) => EventKind::Atomic,
            (HeaderKind::Atomic, List::Overflow) => EventKind::AtomicOverflow,
            (HeaderKind::FetchAtomic | HeaderKind::Swap, List::Priority) => EventKind::FetchAtomic,
            (HeaderKind::FetchAtomic | HeaderKind::Swap, List::Overflow) => EventKind::FetchAtomicOverflow,
            (HeaderKind::Put | HeaderKind::Reply | HeaderKind::Ack, List::Priority) => EventKind::Put,
            (HeaderKind::Put | HeaderKind::Reply | HeaderKind::Ack, List::Overflow) => EventKind::PutOverflow,
        }
    }
}

/// A full event (`ptl_event_t`). Fields that an event kind does not use are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind of event.
    pub kind: EventKind,
    /// The outcome of the operation.
    pub fail: FailType,
    /// The initiator of the operation. For `Link`, `AutoUnlink`, `AutoFree` and `PtDisabled`, this node itself.
    pub initiator: NodeId,
    /// The portal table index.
    pub pt: u32,
    /// The list of the match entry.
    pub list: List,
    /// The match bits of the message.
    pub match_bits: u64,
    /// The user of the operation.
    pub uid: u32,
    /// The operator and type of an atomic operation.
    pub atomic: Option<Atomic>,
    /// The header data (`hdr_data`) of the message.
    pub hdr_data: u64,
    /// The requested length in bytes.
    pub rlength: u64,
    /// The number of bytes kept.
    pub mlength: u64,
    /// The offset of the message's first byte in the target's memory, in bytes.
    pub remote_offset: u64,
    /// The host address of the message's first byte.
    pub start: u64,
    /// The user's word. At the target, it is that of the match entry; at the initiator, that of the operation.
    pub user_ptr: u64,
}

impl Event {
    /// Returns an event of `kind` with every other field zero.
    pub(crate) const fn new(kind: EventKind, initiator: NodeId, user_ptr: u64) -> Event {
        Event {
            kind,
            fail: FailType::Ok,
            initiator,
            pt: 0,
            list: List::Priority,
            match_bits: 0,
            uid: 0,
            atomic: None,
            hdr_data: 0,
            rlength: 0,
            mlength: 0,
            remote_offset: 0,
            start: 0,
            user_ptr,
        }
    }
}

/// The value of a counting event (`ptl_ct_event_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CtEvent {
    /// Operations or bytes that succeeded.
    pub success: u64,
    /// Operations that failed.
    pub failure: u64,
}

impl CtEvent {
    /// Returns `n` successes.
    pub const fn success(n: u64) -> CtEvent {
        CtEvent { success: n, failure: 0 }
    }

    /// Returns `n` failures.
    pub const fn failure(n: u64) -> CtEvent {
        CtEvent { success: 0, failure: n }
    }

    /// Returns the amount that one operation adds to a counter. A failure counts one, even if the counter counts bytes.
    pub(crate) const fn of(outcome: FailType, in_bytes: bool, bytes: u64) -> CtEvent {
        match (outcome.is_ok(), in_bytes) {
            (false, _) => CtEvent::failure(1),
            (true, true) => CtEvent::success(bytes),
            (true, false) => CtEvent::success(1),
        }
    }

    /// Returns successes plus failures, which triggered operations compare with their thresholds.
    pub const fn total(self) -> u64 {
        self.success.saturating_add(self.failure)
    }
}
