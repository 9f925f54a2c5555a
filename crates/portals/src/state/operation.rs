//! The initiator's operations, from their creation to the last answer.
//!
//! An operation ends when its message has been sent and the requested answer has arrived. The answer is an
//! acknowledgement, or a reply with all bytes deposited. Until then, the operation counts against
//! [`crate::Limits::operations`], and its memory descriptors are in use.

use crate::handle::Slab;
use crate::{AckRequest, CtHandle, Event, EventKind, Header, MdHandle, Operand, OperationHandle, Outgoing};
use nicety_types::NodeId;

pub(crate) struct Operation {
    pub header: Header,
    pub from: Option<Place>,
    pub to: Option<Place>,
    pub operand: Operand,
    pub user_ptr: u64,
    pub state: State,
}

/// Memory that an operation reads from or writes to.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub of: Owner,
    /// The host address.
    pub start: u64,
}

#[derive(Clone, Copy)]
pub(crate) enum Owner {
    /// A memory descriptor of the host.
    Host(MdHandle),
    /// The card itself. The counter, if any, counts the end of the operation.
    Card(Option<CtHandle>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The operation is triggered and not yet due.
    Waiting,
    /// The card has the operation. `sent` says whether its message has been sent.
    Started { sent: bool, answer: Answer },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The answer was not requested, or has arrived.
    Done,
    Awaited,
    /// The header of the reply has arrived, and its bytes are being deposited.
    Arriving,
}

impl Operation {
    /// Returns an event that reports the operation as successful. `start` is the host address in the event.
    pub fn event(&self, kind: EventKind, start: u64, node: NodeId) -> Event {
        let Header { pt, match_bits, hdr_data, length, remote_offset, uid, atomic, .. } = self.header;
        Event {
            pt,
            match_bits,
            uid,
            atomic,
            hdr_data,
            rlength: length,
            mlength: length,
            remote_offset,
            start,
            ..Event::new(kind, node, self.user_ptr)
        }
    }
}

impl Place {
    /// Returns whether the place belongs to the card.
    pub const fn of_card(self) -> bool {
        matches!(self.of, Owner::Card(_))
    }
}

pub(crate) type Operations = Slab<OperationHandle, Operation>;

impl Operations {
    /// Starts an operation, and returns its message.
    pub fn begin(&mut self, operation: OperationHandle) -> Outgoing {
        let op = self.get_mut(operation).expect("an operation is known until it ends");
        let answered = op.to.is_some() || op.header.ack != AckRequest::None;
        let answer = if answered { Answer::Awaited } else { Answer::Done };
        op.state = State::Started { sent: false, answer };
        let start = op.from.or(op.to).map_or(0, |place| place.start);
        Outgoing { operation, header: op.header, start, operand: op.operand }
    }
}
