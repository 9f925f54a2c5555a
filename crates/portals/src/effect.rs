//! Effects of a call, in order: events, counts, due operations, acknowledgements.

use crate::{CtEvent, CtHandle, EqHandle, Event, Header, Operand, OperationHandle};

/// A message for the card to send: a header and [`Header::payload_bytes`] bytes. The payload is the operand, if any, and then
/// `header.length` bytes of host memory from `start` on. A get has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The operation, for [`Interface::sent`](crate::Interface::sent).
    pub operation: OperationHandle,
    /// The header.
    pub header: Header,
    /// Host address of the payload's first byte in host memory.
    pub start: u64,
    /// The operand of a conditional or masked swap; the payload begins with it.
    pub operand: Operand,
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
