//! The records of a run: rows of messages, packets, handler runs and resource use.
//!
//! Each node has one [`Recorder`], which keeps plain rows of that node's own activity. The two ends of a message or packet are
//! joined after the run. So a recording never makes a node read another node, and costs no virtual time. The rows are the same
//! for any number of shards.

mod messages;
mod recorder;

pub use messages::MessageRows;
pub(crate) use recorder::Probe;
pub use recorder::Recorder;

use crate::{Duration, MessageId, NodeId, Path, Resource, Time};
use std::fmt;
use std::str::FromStr;

/// The detail of a recording. Each level includes the levels before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// No row per message: counts and results only.
    #[default]
    Summary,
    /// A row for each message.
    Messages,
    /// A row for each packet and for each handler run.
    Packets,
    /// A row for each use of a resource: the data of a timeline.
    Everything,
}

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Level; 4] = [Level::Summary, Level::Messages, Level::Packets, Level::Everything];

    /// The name in options and results.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Summary => "summary",
            Level::Messages => "messages",
            Level::Packets => "packets",
            Level::Everything => "everything",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        Level::ALL.into_iter().find(|level| level.name() == text).ok_or_else(|| {
            let names = Level::ALL.map(Level::name).join(", ");
            format!("no recording level '{text}'; the levels are {names}")
        })
    }
}

/// The initiator of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// A program on the host.
    Host,
    /// The card, when a counter reached the threshold of a triggered operation.
    Trigger,
    /// A handler that ran for this message.
    Handler(MessageId),
    /// The card itself, for an acknowledgement.
    Card,
    /// A process on the card.
    Process,
}

impl Starter {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Starter::Host => "host",
            Starter::Trigger => "trigger",
            Starter::Handler(_) => "handler",
            Starter::Card => "card",
            Starter::Process => "process",
        }
    }
}

/// The sender's record of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The message.
    pub message: MessageId,
    /// The target node.
    pub target: NodeId,
    /// Payload in bytes.
    pub bytes: u64,
    /// Its kind in the card's protocol, such as `put` or `ack`.
    pub kind: &'static str,
    /// Its initiator.
    pub by: Starter,
    /// The initiator's path when it began to post the message. The message's own time begins at the end of this path.
    pub base: Path,
    /// The time at which its first byte went on the link.
    pub first_byte: Option<Time>,
}

/// The receiver's record of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The message.
    pub message: MessageId,
    /// The time at which the matching unit finished its first packet, with or without a matching entry. `None` if the
    /// message failed before this time.
    pub matched: Option<Time>,
    /// The message's own path up to its completion: then its last event or count is visible to the host. `None` for a message that
    /// failed or that the target dropped.
    pub completed: Option<Path>,
    /// The time at which a program of the host noticed the completion.
    pub noticed: Option<Time>,
    /// The outcome.
    pub outcome: &'static str,
}

/// The sender's record of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSent {
    /// Its message.
    pub message: MessageId,
    /// The offset of its payload in the message's payload, in bytes.
    pub offset: u64,
    /// Payload in bytes.
    pub bytes: u64,
    /// The time at which its first byte went on the link.
    pub sent: Time,
}

/// The receiver's record of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketArrived {
    /// Its message.
    pub message: MessageId,
    /// The offset of its payload in the message's payload, in bytes.
    pub offset: u64,
    /// The time at which its last byte was in the packet buffer.
    pub arrived: Time,
    /// The time at which the matching unit had finished it.
    pub matched: Option<Time>,
    /// The time at which it left the packet buffer: deposited, handled or dropped.
    pub settled: Option<Time>,
}

/// A run of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerRun {
    /// The number of the handler core.
    pub hpu: u32,
    /// The handler: `header`, `payload` or `completion`.
    pub kind: &'static str,
    /// Its message.
    pub message: MessageId,
    /// The offset of its packet's payload in the message's payload, in bytes. `None` for a completion handler.
    pub offset: Option<u64>,
    /// The time at which it was ready to begin.
    pub ready: Time,
    /// The time at which it began.
    pub start: Time,
    /// The time at which it ended and its processor was free.
    pub end: Time,
    /// Time within the run for which it had yielded its processor.
    pub parked: Duration,
    /// Cycles from the first instruction to the last. Includes waits for commands, excludes `parked`.
    pub cycles: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// Its return code, or another end.
    pub outcome: &'static str,
}

/// A use of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The resource.
    pub resource: Resource,
    /// The start.
    pub start: Time,
    /// The end; not before `start`.
    pub end: Time,
    /// The message of the use, if any.
    pub message: Option<MessageId>,
    /// The purpose.
    pub what: &'static str,
}

/// The rows that were not kept because a table was full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Messages.
    pub messages: u64,
    /// Rows of packets: the sender's row and the receiver's row of a packet count separately.
    pub packets: u64,
    /// Handler runs.
    pub handler_runs: u64,
    /// Uses of resources.
    pub slices: u64,
}

impl LeftOut {
    /// Whether every row was kept.
    pub fn is_empty(&self) -> bool {
        *self == LeftOut::default()
    }

    /// Adds the counts of another node.
    pub fn add(&mut self, other: &LeftOut) {
        self.messages += other.messages;
        self.packets += other.packets;
        self.handler_runs += other.handler_runs;
        self.slices += other.slices;
    }
}

/// The rows of one node, in the order of their begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRecords {
    /// Messages that it sent, and messages that reached it.
    pub messages: MessageRows,
    /// Packets that it sent.
    pub packets_sent: Vec<PacketSent>,
    /// Packets that reached it.
    pub packets_arrived: Vec<PacketArrived>,
    /// Handlers that it ran.
    pub handler_runs: Vec<HandlerRun>,
    /// Uses of its resources.
    pub slices: Vec<Slice>,
    /// The rows that were not kept.
    pub left_out: LeftOut,
}
