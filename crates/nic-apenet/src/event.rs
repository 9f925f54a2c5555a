//! Kinds of events.

use crate::error::Refusal;
use crate::{Endpoint, Operation};
use nicety_types::NodeId;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The card has read the bytes of a put or send. The buffer may be reused.
    Sent(Operation),
    /// The bytes of a get are in its buffer.
    Fetched(Operation),
    /// A put, send or get of this process was refused. No further bytes of it are written.
    Refused(Operation, Refusal),
    /// The bytes of a peer's put or send are in memory.
    Received,
    /// This card refused a put, send or get of a peer. No further bytes of it are written.
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
    /// The address of the bytes on this host. For a received send, it is the address of the streaming buffer, or 0 if
    /// the send took no buffer. For a refused put or send of this process, it is the address of the sent bytes. It is 0
    /// if their descriptors in the transmit ring have been overwritten.
    pub address: u64,
    /// Length of the message in bytes.
    pub bytes: u64,
    /// The data that the sender of a put or send gave for this event.
    pub data: u64,
    /// Whether the bytes are in a streaming buffer.
    pub streaming: bool,
    /// The node that refused, for `Refused` and `Rejected`. It is this node if a get failed because of its destination,
    /// or because of a lost packet of its reply.
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
