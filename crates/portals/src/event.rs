//! What an operation leaves behind: full events, counts, operations that are due, acknowledgements.

use crate::{CtEvent, CtHandle, EqHandle, Header, List, Outgoing};
use nicety_types::NodeId;

/// The kind of a full event ('Events and Event Queues', `ptl_event_kind_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A get read a match entry of this target.
    Get,
    /// The same, for an entry on the overflow list that a later append found.
    GetOverflow,
    /// A put has been deposited at this target.
    Put,
    /// A put that had been deposited in an overflow entry was found by a match entry just appended.
    PutOverflow,
    /// An atomic operation was done at this target.
    Atomic,
    /// The same, found among the unexpected headers.
    AtomicOverflow,
    /// An atomic operation that returns data was done at this target.
    FetchAtomic,
    /// The same, found among the unexpected headers.
    FetchAtomicOverflow,
    /// The answer to a get of this initiator is there.
    Reply,
    /// The source memory of an operation may be used again.
    Send,
    /// The target has acknowledged an operation of this initiator.
    Ack,
    /// A portal table entry was disabled by flow control.
    PtDisabled,
    /// A match entry is on its list.
    Link,
    /// A match entry left its list by itself, and every message it matched has been deposited.
    AutoUnlink,
    /// No unexpected header refers any more to an overflow entry that had left its list by itself.
    AutoFree,
    /// A search of the unexpected headers has ended.
    Search,
}

/// How an operation ended ('Events', `ptl_ni_fail_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FailType {
    /// `PTL_NI_OK`: it succeeded.
    #[default]
    Ok = 0,
    /// `PTL_NI_UNDELIVERABLE`: the message could not be brought to its target.
    Undeliverable = 1,
    /// `PTL_NI_PT_DISABLED`: the portal table entry is disabled.
    PtDisabled = 2,
    /// `PTL_NI_DROPPED`: the target dropped the message.
    Dropped = 3,
    /// `PTL_NI_PERM_VIOLATION`: the entry is for another user.
    PermViolation = 4,
    /// `PTL_NI_OP_VIOLATION`: the entry does not allow this operation.
    OpViolation = 5,
    /// `PTL_NI_SEGV`: the entry's or descriptor's memory is not there.
    Segv = 6,
    /// `PTL_NI_UNSUPPORTED`: the target cannot do this operation.
    Unsupported = 7,
    /// A handler of the message failed. sPIN's addition to the specification's list.
    HandlerError = 8,
}

impl FailType {
    pub(crate) const ALL: [FailType; 9] = [
        FailType::Ok,
        FailType::Undeliverable,
        FailType::PtDisabled,
        FailType::Dropped,
        FailType::PermViolation,
        FailType::OpViolation,
        FailType::Segv,
        FailType::Unsupported,
        FailType::HandlerError,
    ];

    /// Whether the operation succeeded.
    pub const fn is_ok(self) -> bool {
        matches!(self, FailType::Ok)
    }
}

/// A full event (`ptl_event_t`). Fields that a kind of event does not use are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// How it ended.
    pub fail: FailType,
    /// Who started the operation; this node itself for `Link`, `AutoUnlink` and `AutoFree`.
    pub initiator: NodeId,
    /// The portal table index.
    pub pt: u32,
    /// The list the match entry is on.
    pub list: List,
    /// The match bits of the message.
    pub match_bits: u64,
    /// The data of the message's header.
    pub hdr_data: u64,
    /// Bytes asked for.
    pub rlength: u64,
    /// Bytes kept.
    pub mlength: u64,
    /// The offset in the target's memory at which the first byte is.
    pub remote_offset: u64,
    /// The host address of the first byte.
    pub start: u64,
    /// The user's word: of the match entry at the target, of the operation at the initiator.
    pub user_ptr: u64,
}

impl Event {
    /// An event of `kind` with every other field zero.
    pub(crate) const fn new(kind: EventKind, initiator: NodeId, user_ptr: u64) -> Event {
        Event {
            kind,
            fail: FailType::Ok,
            initiator,
            pt: 0,
            list: List::Priority,
            match_bits: 0,
            hdr_data: 0,
            rlength: 0,
            mlength: 0,
            remote_offset: 0,
            start: 0,
            user_ptr,
        }
    }
}

/// Something the card has to make visible, or to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write a full event to an event queue.
    Event {
        /// The queue.
        eq: EqHandle,
        /// The event.
        event: Event,
    },
    /// The queue was full and an event is lost; the host's next read of the queue must say `PTL_EQ_DROPPED`.
    EventDropped {
        /// The queue.
        eq: EqHandle,
    },
    /// A counter has changed; these are its new values.
    Count {
        /// The counter.
        ct: CtHandle,
        /// The values.
        value: CtEvent,
    },
    /// A triggered operation is due: fetch its bytes from host memory and send it.
    Start(Outgoing),
    /// Send this acknowledgement, which has no payload.
    Ack(Header),
}

/// Effects in the order in which they take place. Kept by the card and used again, so that a message allocates
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    list: Vec<Effect>,
}

impl Effects {
    /// No effects.
    pub const fn new() -> Effects {
        Effects { list: Vec::new() }
    }

    /// Adds one at the end.
    pub fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    /// Takes all of them out, in order, and keeps the memory.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Effect> {
        self.list.drain(..)
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// All of them, in order.
    pub fn as_slice(&self) -> &[Effect] {
        &self.list
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
