//! Kinds of events: what a process is told.

use crate::apenet::error::Refusal;
use crate::apenet::{Endpoint, Operation};
use nicety_types::NodeId;

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The card has read the bytes of a put or send; the buffer may be used again.
    Sent(Operation),
    /// The bytes of a get are in its buffer.
    Fetched(Operation),
    /// A put, send or get of this process was refused; nothing further of it is written.
    Refused(Operation, Refusal),
    /// The bytes of a peer's put or send are in memory.
    Received,
    /// A peer's put, send or get was refused; nothing further of it is written.
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

    /// The reason, of a refusal.
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
    /// What has happened.
    pub kind: EventKind,
    /// The other end.
    pub peer: Endpoint,
    /// Where the bytes are on this host, or would have been. For a send at its receiver, the address of its streaming buffer,
    /// 0 if there was none; for a refused put or send at its sender, that of its buffer, 0 if as many descriptors as the
    /// transmit ring has entries have been written since.
    pub address: u64,
    /// Bytes of the message.
    pub bytes: u64,
    /// What the sender has added to a put or send.
    pub data: u64,
    /// Whether the bytes are in a streaming buffer.
    pub streaming: bool,
    /// Of `Refused` and `Rejected`: the node that has refused the message. That is this one where a get fails for its own
    /// destination, or for a packet of its reply.
    pub refused_by: Option<NodeId>,
}

impl Event {
    /// The operation of this process that it ends, if it does.
    pub const fn operation(&self) -> Option<Operation> {
        match self.kind {
            EventKind::Sent(operation) | EventKind::Fetched(operation) | EventKind::Refused(operation, _) => {
                Some(operation)
            }
            _ => None,
        }
    }
}
