//! Effects of an operation: full events, counts, due operations, acknowledgements.

use crate::{Atomic, CtEvent, CtHandle, EqHandle, Header, HeaderKind, List, Outgoing};
use nicety_types::NodeId;

macro_rules! named {
    (
        $(#[$outer:meta])*
        pub enum $type:ident {
            $($(#[$doc:meta])* $name:ident = $text:literal,)*
        }
    ) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $type { $($(#[$doc])* $name),* }

        impl $type {
            /// All values, in the order of their numbers.
            pub const ALL: &'static [$type] = &[$($type::$name),*];

            /// Returns the name in the specification.
            pub const fn name(self) -> &'static str {
                match self { $($type::$name => $text),* }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use named;

named! {
    /// The kind of a full event ('Events and Event Queues', `ptl_event_kind_t`).
    pub enum EventKind {
        /// A get read a match entry of this target.
        Get = "PTL_EVENT_GET",
        /// The same, for an entry on the overflow list that a later append found.
        GetOverflow = "PTL_EVENT_GET_OVERFLOW",
        /// A put has been deposited at this target.
        Put = "PTL_EVENT_PUT",
        /// An append found a put that had been deposited in an overflow entry.
        PutOverflow = "PTL_EVENT_PUT_OVERFLOW",
        /// An atomic operation was applied at this target.
        Atomic = "PTL_EVENT_ATOMIC",
        /// The same, for a message that an append found among the unexpected headers.
        AtomicOverflow = "PTL_EVENT_ATOMIC_OVERFLOW",
        /// An atomic operation that returns data was applied at this target.
        FetchAtomic = "PTL_EVENT_FETCH_ATOMIC",
        /// The same, for a message that an append found among the unexpected headers.
        FetchAtomicOverflow = "PTL_EVENT_FETCH_ATOMIC_OVERFLOW",
        /// The reply to a get, fetch-and-atomic or swap of this initiator has arrived.
        Reply = "PTL_EVENT_REPLY",
        /// The source memory of an operation may be reused.
        Send = "PTL_EVENT_SEND",
        /// The target has acknowledged an operation of this initiator.
        Ack = "PTL_EVENT_ACK",
        /// A portal table entry was disabled by flow control.
        PtDisabled = "PTL_EVENT_PT_DISABLED",
        /// A match entry was linked to its list.
        Link = "PTL_EVENT_LINK",
        /// A match entry unlinked itself, and all messages that it matched have been deposited.
        AutoUnlink = "PTL_EVENT_AUTO_UNLINK",
        /// The last unexpected header that refers to an unlinked overflow entry is gone.
        AutoFree = "PTL_EVENT_AUTO_FREE",
        /// A search of the unexpected headers has ended.
        Search = "PTL_EVENT_SEARCH",
    }
}

named! {
    /// The end of an operation ('Events', `ptl_ni_fail_t`).
    #[derive(Default)]
    pub enum FailType {
        /// The operation succeeded.
        #[default]
        Ok = "PTL_NI_OK",
        /// The message could not be delivered to its target.
        Undeliverable = "PTL_NI_UNDELIVERABLE",
        /// The portal table entry is disabled.
        PtDisabled = "PTL_NI_PT_DISABLED",
        /// The target dropped the message.
        Dropped = "PTL_NI_DROPPED",
        /// The entry is for another user.
        PermViolation = "PTL_NI_PERM_VIOLATION",
        /// The entry does not allow this operation.
        OpViolation = "PTL_NI_OP_VIOLATION",
        /// The memory of the entry or descriptor is not mapped.
        Segv = "PTL_NI_SEGV",
        /// The target does not support this operation.
        Unsupported = "PTL_NI_UNSUPPORTED",
        /// A handler of the message failed. An addition of sPIN to the specification's list.
        HandlerError = "PTL_NI_HANDLER_ERROR",
        /// No unexpected header matches the search.
        NoMatch = "PTL_NI_NO_MATCH",
        /// The application of the message's handlers has used up its budget of cycles. An addition of sPIN, too.
        HandlerBudget = "PTL_NI_HANDLER_BUDGET",
    }
}

impl EventKind {
    /// Returns the event kind for a message of this kind.
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

impl FailType {
    /// Returns whether the operation succeeded.
    pub const fn is_ok(self) -> bool {
        matches!(self, FailType::Ok)
    }

    /// Returns this failure, or `other` if there is none.
    #[must_use]
    pub const fn or(self, other: FailType) -> FailType {
        if self.is_ok() { other } else { self }
    }
}

/// A full event (`ptl_event_t`). Fields that an event kind does not use are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind of event.
    pub kind: EventKind,
    /// The outcome of the operation.
    pub fail: FailType,
    /// The initiator of the operation; this node itself for `Link`, `AutoUnlink`, `AutoFree` and
    /// `PtDisabled`.
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
    /// The data of the message's header.
    pub hdr_data: u64,
    /// Requested length in bytes.
    pub rlength: u64,
    /// Length kept in bytes.
    pub mlength: u64,
    /// The offset of the first byte in the target's memory.
    pub remote_offset: u64,
    /// The host address of the first byte.
    pub start: u64,
    /// The user's word: of the match entry at the target, of the operation at the initiator.
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

/// An effect that the card must show to the host or carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write a full event to an event queue.
    Event {
        /// The queue.
        eq: EqHandle,
        /// The event.
        event: Event,
    },
    /// The queue was full and the event is lost; the host's next read of the queue must return `PTL_EQ_DROPPED`.
    EventDropped {
        /// The queue.
        eq: EqHandle,
    },
    /// A counter has changed.
    Count {
        /// The counter.
        ct: CtHandle,
        /// The new value.
        value: CtEvent,
    },
    /// A triggered operation is due: fetch its payload, if any, from host memory and send it.
    Start(Outgoing),
    /// Send this answer without a payload: an acknowledgement, or the reply to a failed operation. The card itself sends the reply to a
    /// successful one, with a payload: [`crate::Delivery::reply`].
    Ack(Header),
    /// An entry with [`MeOptions::REDELIVER`](crate::MeOptions::REDELIVER) has found a message among the unexpected headers. Send this
    /// header and the bytes from `start` on, as many as the header says, to this node.
    Redeliver {
        /// The header, for [`Interface::arrive`](crate::Interface::arrive) of this node.
        header: Header,
        /// Host address of the message's first byte in its overflow entry.
        start: u64,
    },
}

/// Effects, in order. The card keeps and reuses the list, so that a message allocates nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    list: Vec<Effect>,
}

impl Effects {
    /// Returns an empty list.
    pub const fn new() -> Effects {
        Effects { list: Vec::new() }
    }

    /// Appends an effect.
    pub fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    /// Removes and returns all effects in order, and keeps the memory.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Effect> {
        self.list.drain(..)
    }

    /// Removes all effects.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Returns all effects in order.
    pub fn as_slice(&self) -> &[Effect] {
        &self.list
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
