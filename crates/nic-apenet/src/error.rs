//! Errors of calls, and a card's reasons to refuse a message.

use nicety_host::MemoryError;
use std::fmt;

/// A card's reason to refuse a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// No region contains these bytes. They were never registered, or have been deregistered.
    Unregistered,
    /// Another process has registered these bytes.
    Foreign,
    /// All streaming buffers are in use.
    NoBuffer,
    /// The message is longer than the next streaming buffer.
    TooLong,
    /// The receiving card's table of gets to answer is full.
    Busy,
    /// The message is empty, and the receiving process has no event queue.
    NoProcess,
    /// A packet of the message never arrived.
    Lost,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Refusal; 7] = [
        Refusal::Unregistered,
        Refusal::Foreign,
        Refusal::NoBuffer,
        Refusal::TooLong,
        Refusal::Busy,
        Refusal::NoProcess,
        Refusal::Lost,
    ];

    /// Returns the number of the reason in a packet.
    pub(super) const fn code(self) -> u64 {
        self as u64 + 1
    }

    pub(super) fn of_code(code: u64) -> Option<Refusal> {
        Refusal::ALL.into_iter().find(|why| why.code() == code)
    }

    /// Returns the name of the reason in programs and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::Unregistered => "unregistered",
            Refusal::Foreign => "foreign",
            Refusal::NoBuffer => "no streaming buffer",
            Refusal::TooLong => "too long",
            Refusal::Busy => "busy",
            Refusal::NoProcess => "no process",
            Refusal::Lost => "lost",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Unregistered => "the bytes are not registered there",
            Refusal::Foreign => "the bytes are registered there by another process",
            Refusal::NoBuffer => "no streaming buffer is free there",
            Refusal::TooLong => "it is longer than the next streaming buffer there",
            Refusal::Busy => "the card there has too many unanswered gets (limits.gets)",
            Refusal::NoProcess => "no process of that number uses RDMA there",
            Refusal::Lost => "one of its packets was lost on the way there",
        })
    }
}

/// The reason why a call failed. A failed call has no effect, except where a variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApenetError {
    /// There is no such node.
    NoNode {
        /// Number of the requested node.
        node: u32,
        /// Number of nodes.
        nodes: u32,
    },
    /// The message is longer than the limit.
    Message {
        /// Size of the message in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The remote range goes past the last address.
    Address {
        /// First address of the range.
        address: u64,
        /// Size of the range in bytes.
        bytes: u64,
    },
    /// The process has not registered these bytes.
    Unregistered {
        /// First address of the bytes.
        address: u64,
        /// Number of bytes.
        bytes: u64,
        /// Number of the process.
        process: u32,
    },
    /// The region or streaming buffer is empty.
    Empty,
    /// The card has too many regions.
    Regions {
        /// Maximum number of regions.
        limit: u64,
    },
    /// The card would have too many registered pages.
    Pages {
        /// Number of pages of the call.
        pages: u64,
        /// Number of pages that are left.
        left: u64,
    },
    /// The process has no such region.
    NoRegion {
        /// Number of the requested region.
        region: u64,
    },
    /// The streaming buffer overlaps an unused streaming buffer of the process.
    StreamingOverlap {
        /// First address of the new buffer.
        address: u64,
        /// Size of the new buffer in bytes.
        bytes: u64,
        /// First address of the unused buffer.
        buffer: u64,
        /// Size of the unused buffer in bytes.
        len: u64,
    },
    /// The process has too many unused streaming buffers.
    Streaming {
        /// Maximum number of unused streaming buffers.
        limit: u64,
    },
    /// The card has too many gets without a reply.
    Gets {
        /// Maximum number of gets without a reply.
        limit: u64,
    },
    /// The process has no pending operation with this number.
    NoOperation {
        /// Number of the requested operation.
        operation: u64,
        /// Number of the process.
        process: u32,
    },
    /// Events were lost because a queue was full.
    EventsLost {
        /// Number of lost events.
        events: u64,
        /// Number of the process.
        process: u32,
    },
    /// A message of this node was refused.
    Refused {
        /// The reason of the refusal.
        why: Refusal,
        /// The node that refused the message: the receiver's node, or this node if the destination of a get was
        /// refused.
        node: u32,
    },
    /// This card has refused a message of another process.
    Rejected {
        /// The reason of the refusal.
        why: Refusal,
        /// The sender's node.
        node: u32,
    },
    /// The host's memory refused an access or an allocation.
    Memory(MemoryError),
}

impl fmt::Display for ApenetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ApenetError as E;
        match self {
            E::NoNode { node, nodes } => {
                write!(f, "no node {node}: the cluster has nodes 0 to {}", nodes - 1)
            }
            E::Message { bytes, limit } => write!(
                f,
                "a message of {bytes} bytes; the maximum is {limit}: send several messages, or raise limits.message"
            ),
            E::Address { address, bytes } => {
                write!(f, "the {bytes} bytes at {address:#x} of the other host reach past the last address")
            }
            E::Unregistered { address, bytes, process } => write!(
                f,
                "the {bytes} bytes at {address:#x} are not in a region that process {process} has registered; register \
                 them first"
            ),
            E::Empty => f.write_str("a region or streaming buffer of 0 bytes; register at least 1 byte"),
            E::Regions { limit } => {
                write!(f, "the card has {limit} regions already; deregister one, or raise limits.regions")
            }
            E::Pages { pages, left } => write!(
                f,
                "the region lies in {pages} pages, but the card's table has room for {left} pages; \
                 deregister another region, or raise limits.pages"
            ),
            E::NoRegion { region } => {
                write!(f, "the process has no region {region}; it was deregistered, or never registered")
            }
            E::StreamingOverlap { address, bytes, buffer, len } => write!(
                f,
                "the {bytes} bytes at {address:#x} overlap the streaming buffer of {len} bytes at {buffer:#x}, which is \
                 unused; post it again when an event says that it was used"
            ),
            E::Streaming { limit } => write!(
                f,
                "the process has {limit} unused streaming buffers already; wait for one to be used, or raise \
                 limits.streaming"
            ),
            E::Gets { limit } => {
                write!(f, "{limit} gets wait for their replies; wait for one, or raise limits.gets")
            }
            E::NoOperation { operation, process } => write!(
                f,
                "process {process} has no operation {operation}; its completion was reported already, or it was never posted"
            ),
            E::EventsLost { events, process } => write!(
                f,
                "{events} events of process {process} were lost because a queue was full; take events more often, or \
                 raise events.entries or events.user"
            ),
            E::Refused { why, node } => write!(f, "node {node} has refused the message: {why}"),
            E::Rejected { why, node } => write!(f, "a message of node {node} was refused: {why}"),
            E::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ApenetError {}

impl From<MemoryError> for ApenetError {
    fn from(error: MemoryError) -> ApenetError {
        ApenetError::Memory(error)
    }
}
