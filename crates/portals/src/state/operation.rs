//! An initiator's operations, from the call or its trigger to the last answer.
//!
//! An operation ends when its message has been sent and the requested answer has arrived: an acknowledgement, or a reply with its bytes
//! deposited. Until then it counts among [`crate::Limits::operations`], and keeps its memory descriptors in use.

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

/// Memory that an operation reads or fills.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub of: Owner,
    /// Host address.
    pub start: u64,
}

#[derive(Clone, Copy)]
pub(crate) enum Owner {
    /// A descriptor of the host.
    Host(MdHandle),
    /// The card itself, with the counter for the end of the operation.
    Card(Option<CtHandle>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Triggered, and not yet due.
    Waiting,
    /// Handed to the card, or sent.
    Started { sent: bool, answer: Answer },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Not requested, or arrived.
    Done,
    Awaited,
    /// The bytes of the reply are in flight.
    Arriving,
}

impl Operation {
    /// Returns an event about it with the address `start`, as a success.
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
    /// Starts an operation: returns its message.
    pub fn begin(&mut self, operation: OperationHandle) -> Outgoing {
        let op = self.get_mut(operation).expect("an operation is known until it ends");
        let answered = op.to.is_some() || op.header.ack != AckRequest::None;
        let answer = if answered { Answer::Awaited } else { Answer::Done };
        op.state = State::Started { sent: false, answer };
        let start = op.from.or(op.to).map_or(0, |place| place.start);
        Outgoing { operation, header: op.header, start, operand: op.operand }
    }
}
