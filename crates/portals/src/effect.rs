//! Effects of a call: events, counts, due operations, acknowledgements.

use crate::{CtEvent, CtHandle, EqHandle, Event, Header, Operand, OperationHandle};

/// A message for the card to send: a header and [`Header::payload_bytes`] bytes. The payload is the operand, if any,
/// and then `header.length` bytes of host memory from `start` on. A get has no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The operation's handle, which the card passes to [`Interface::sent`](crate::Interface::sent).
    pub operation: OperationHandle,
    /// The header.
    pub header: Header,
    /// Host address of the first byte of the message's data.
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
    /// The queue was full, and an event is lost. The host's next read of the queue must return `PTL_EQ_DROPPED`.
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
    /// A triggered operation is due. The card fetches its payload, if any, from host memory, and sends the message.
    Start(Outgoing),
    /// Send this answer, which has no payload: an acknowledgement, or the reply to a failed operation. For a successful
    /// get, fetch-and-atomic or swap, the card sends the header from [`crate::Delivery::reply`] and the payload.
    Ack(Header),
    /// An entry with [`MeOptions::REDELIVER`](crate::MeOptions::REDELIVER) has found a message among the unexpected
    /// headers. Send this header and the `header.length` bytes from `start` on to this node itself.
    Redeliver {
        /// The header, which this node passes to [`Interface::arrive`](crate::Interface::arrive).
        header: Header,
        /// Host address of the message's first byte in its overflow entry.
        start: u64,
    },
}

/// A list of effects, in order. The card reuses one list for all calls, so that a message allocates no memory.
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

    /// Removes and returns all effects in order. The list keeps its memory.
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
