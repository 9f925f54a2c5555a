//! Outcomes of an arriving message: the addresses of its bytes, or the reason for a drop.

use crate::{DropReason, FailType, Header, List, MeHandle, OperationHandle};

/// The outcome of an arriving message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It has matched: the card carries out the [`Delivery`] and then calls [`Interface::complete`](crate::Interface::complete).
    Matched(Delivery),
    /// It is dropped, with its payload. If an answer was requested, it is among the effects.
    Dropped(DropReason),
    /// It was an acknowledgement; its effects have been added.
    Acknowledged,
    /// It is the reply to an operation of this initiator: the card deposits its bytes and then calls
    /// [`Interface::complete_reply`](crate::Interface::complete_reply).
    Reply(Reply),
}

/// The address of a message's bytes. The action depends on the kind of its header:
///
/// - `Put`: write the first `mlength` bytes of the payload to `start`.
/// - `Get`: read `mlength` bytes at `start`, and send them behind the header from [`Delivery::reply`].
/// - `Atomic`: apply [`crate::Atomic::apply`] to the `mlength` bytes at `start`.
/// - `FetchAtomic`, `Swap`: the same, and send the previous bytes as for a get. The payload of a swap begins with the operand, if its
///   operator has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The match entry.
    pub me: MeHandle,
    /// The list of the entry when it matched.
    pub list: List,
    /// Host address of the message's first byte.
    pub start: u64,
    /// Bytes to keep, from the start of the message. If handlers drop some of them, the card lowers it before
    /// [`Interface::complete`](crate::Interface::complete); events, counts and the acknowledgement follow it.
    pub mlength: u64,
    /// Length of the message in bytes.
    pub rlength: u64,
    /// Offset of the message in the entry's memory, in bytes.
    pub remote_offset: u64,
    /// The entry's handlers.
    pub handlers: Option<u32>,
    /// The entry's user word.
    pub user_ptr: u64,
    /// Match entries searched.
    pub searched: u32,
    /// The message's header.
    pub header: Header,
    /// The card has sent the requested reply. The initiator learns of no later failure of the message.
    pub replied: bool,
    pub(crate) unexpected: Option<u64>,
    /// The overflow entry of a redelivered message.
    pub(crate) late: Option<MeHandle>,
}

impl Delivery {
    /// Returns the header of the reply to a successful get, fetch-and-atomic or swap; `mlength` bytes follow. For a failed one,
    /// [`Interface::complete`](crate::Interface::complete) returns the reply.
    pub const fn reply(&self) -> Option<Header> {
        if !self.header.kind.wants_reply() {
            return None;
        }
        Some(self.header.reply(FailType::Ok, self.mlength, self.remote_offset))
    }
}

/// The destination of a reply's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The operation that it answers.
    pub operation: OperationHandle,
    /// Host address of its first byte.
    pub start: u64,
    /// Length in bytes; all are kept.
    pub mlength: u64,
    /// Requested length in bytes.
    pub rlength: u64,
    /// The offset of the bytes in the target's memory.
    pub remote_offset: u64,
    /// The outcome of the operation at the target; a failed one has no bytes.
    pub fail: FailType,
    /// The operation is a get of the card's own: [`Interface::card_get`](crate::Interface::card_get).
    pub of_card: bool,
}

/// The match of a message, computed in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prospect {
    /// The handlers of the match entry.
    pub handlers: Option<u32>,
    /// Whether its portal table entry has flow control.
    pub flow_control: bool,
}
