//! Kinds of events.

use crate::error::Refusal;
use crate::{Endpoint, Operation};
use nicety_types::NodeId;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The card has read the bytes of a put or send. Their buffer may be reused.
    Sent(Operation),
    /// The bytes of a get are in its buffer.
    Fetched(Operation),
    /// A put, send or get of this process was refused. No more of it is written.
    Refused(Operation, Refusal),
    /// The bytes of a peer's put or send are in memory.
    Received,
    /// A peer's put, send or get was refused. No more of it is written.
    Rejected(Refusal),
}

impl EventKind {
    /// Its name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Sent(_) => "sent",
            EventKind::Fetched(_) => "fetched",
            EventKind::Refused(..) => "refused",
            EventKind::Received => "received",
            EventKind::Rejected(_) => "rejected",
        }
    }

    /// The reason for a refusal.
    pub const fn refusal(self) -> Option<Refusal> {
        match self {
            EventKind::Refused(_, why) | EventKind::Rejected(why) => Some(why),
            _ => None,
        }
    }
}

/// An event of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind.
    pub kind: EventKind,
    /// The other end.
    pub peer: Endpoint,
    /// The address of the bytes on this host. For a send at its receiver, the address of its streaming buffer, or 0
    /// without one. For a refused put or send at its sender, the address of its buffer. It is 0 if its descriptors in
    /// the transmit ring have been overwritten since.
    pub address: u64,
    /// Bytes of the message.
    pub bytes: u64,
    /// The sender's data for a put or send.
    pub data: u64,
    /// Whether the bytes are in a streaming buffer.
    pub streaming: bool,
    /// Of `Refused` and `Rejected`: the refusing node. It is this node if a get fails for its own destination, or for a
    /// packet of its reply.
    pub refused_by: Option<NodeId>,
}

impl Event {
    /// The operation of this process that the event completes, if any.
    pub const fn operation(&self) -> Option<Operation> {
        match self.kind {
            EventKind::Sent(operation) | EventKind::Fetched(operation) | EventKind::Refused(operation, _) => {
                Some(operation)
            }
            _ => None,
        }
    }
}
