//! Outcomes of an arriving message: the address of its bytes, or the reason for a drop.

use crate::{DropReason, FailType, Header, List, MeHandle, OperationHandle};

/// The outcome of an arriving message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The message has matched. The card carries out the [`Delivery`] and then calls
    /// [`Interface::complete`](crate::Interface::complete).
    Matched(Delivery),
    /// The message and its payload are dropped. If the initiator requested an answer, the answer is among the effects.
    Dropped(DropReason),
    /// The message was an acknowledgement, and its effects have been added.
    Acknowledged,
    /// The message is the reply to an operation of this initiator. The card deposits its bytes and then calls
    /// [`Interface::complete_reply`](crate::Interface::complete_reply).
    Reply(Reply),
}

/// The address of a message's bytes, and their number. The card's action depends on the kind of the header:
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
    /// Number of bytes to keep, from the start of the message. If handlers drop some of these bytes, the card lowers
    /// the number before [`Interface::complete`](crate::Interface::complete); events, counts and the acknowledgement
    /// follow it.
    pub mlength: u64,
    /// Length of the message in bytes.
    pub rlength: u64,
    /// Offset of the message in the entry's memory, in bytes.
    pub remote_offset: u64,
    /// The entry's handlers.
    pub handlers: Option<u32>,
    /// The entry's user word.
    pub user_ptr: u64,
    /// Number of match entries that the search compared.
    pub searched: u32,
    /// The message's header.
    pub header: Header,
    /// Whether the card has already sent the requested reply. Then the initiator does not learn of a later failure of
    /// the message.
    pub replied: bool,
    pub(crate) unexpected: Option<u64>,
    /// The overflow entry of a redelivered message.
    pub(crate) late: Option<MeHandle>,
}

impl Delivery {
    /// Returns the header of the reply to a successful get, fetch-and-atomic or swap. The card sends `mlength` bytes
    /// after it. If such an operation fails, [`Interface::complete`](crate::Interface::complete) adds the reply to the
    /// effects.
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
    /// The operation that the reply answers.
    pub operation: OperationHandle,
    /// Host address for the reply's first byte.
    pub start: u64,
    /// Number of bytes in the reply. All of them are kept.
    pub mlength: u64,
    /// Requested length in bytes.
    pub rlength: u64,
    /// The offset of the bytes in the memory of the target's match entry.
    pub remote_offset: u64,
    /// The outcome of the operation at the target. The reply to a failed operation has no bytes.
    pub fail: FailType,
    /// Whether the operation is a get for the card itself: [`Interface::card_get`](crate::Interface::card_get).
    pub of_card: bool,
}

/// The match of a message, computed in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prospect {
    /// The handlers of the match entry.
    pub handlers: Option<u32>,
    /// Whether the portal table entry has flow control.
    pub flow_control: bool,
}
