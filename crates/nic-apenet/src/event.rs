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
    /// A put, send or get of this process was refused. No further bytes of the message are written.
    Refused(Operation, Refusal),
    /// The bytes of a put or send to this process are in memory.
    Received,
    /// This card refused a put, send or get to this process. No further bytes of the message are written.
    Rejected(Refusal),
}

impl EventKind {
    /// Returns the name of the kind in programs.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Sent(_) => "sent",
            EventKind::Fetched(_) => "fetched",
            EventKind::Refused(..) => "refused",
            EventKind::Received => "received",
            EventKind::Rejected(_) => "rejected",
        }
    }

    /// Returns the reason of a refusal. Returns `None` for other kinds.
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
    /// The kind of the event.
    pub kind: EventKind,
    /// The process at the other end.
    pub peer: Endpoint,
    /// Address of the bytes on this host. For a received send, it is the address of the streaming buffer, or 0 if the
    /// send took no buffer. For a refused put or send of this process, it is the address of the sent bytes. It is 0 if
    /// their descriptors in the transmit ring have been overwritten.
    pub address: u64,
    /// Size of the message in bytes.
    pub bytes: u64,
    /// The data that the sender of a put or send gave for this event.
    pub data: u64,
    /// Whether the bytes are in a streaming buffer.
    pub streaming: bool,
    /// The node that refused the message, for `Refused` and `Rejected`. It is this node if a get failed because of its
    /// destination, or because a packet of its reply was lost.
    pub refused_by: Option<NodeId>,
}

impl Event {
    /// Returns the operation of this process that the event reports, if any.
    pub const fn operation(&self) -> Option<Operation> {
        match self.kind {
            EventKind::Sent(operation) | EventKind::Fetched(operation) | EventKind::Refused(operation, _) => {
                Some(operation)
            }
            _ => None,
        }
    }
}
