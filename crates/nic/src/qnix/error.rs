//! What a process asked for that it may not have.

use nicety_host::MemoryError;
use std::fmt;

/// Why the library or the card refuses a call. Nothing has been done then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QnixError {
    /// Every interface is somebody's.
    NoInterface {
        /// How many there are.
        limit: u32,
    },
    /// The process has an interface already.
    Open {
        /// Its number.
        vni: u32,
    },
    /// The process has no such interface: nobody has it, or somebody else.
    NotYours {
        /// The interface's number.
        vni: u32,
        /// The process whose it is, where it is anybody's.
        owner: Option<u32>,
        /// The process that asked.
        process: u32,
    },
    /// Bytes that are not the process's.
    NotYourMemory {
        /// First address.
        address: u64,
        /// Bytes.
        len: u64,
        /// The process that asked.
        process: u32,
    },
    /// Too many sends of the process have not ended.
    Sends {
        /// How many may.
        limit: u32,
    },
    /// Too many receives of the process have not ended.
    Receives {
        /// How many may.
        limit: u32,
    },
    /// A message longer than the largest.
    Message {
        /// Its bytes.
        bytes: u64,
        /// The most.
        limit: u64,
    },
    /// A buffer that lies in more pages than a Context Region has descriptors for.
    Pages {
        /// Pages.
        pages: u64,
        /// Descriptors.
        limit: u64,
    },
    /// A Buffer Pool larger than the largest, or none at all.
    Pool {
        /// Its bytes.
        bytes: u64,
        /// The most.
        limit: u64,
    },
    /// The process has a Buffer Pool already.
    PoolThere,
    /// A buffer that does not lie in the Buffer Pool.
    NotInPool {
        /// Its first address.
        address: u64,
        /// Its bytes.
        bytes: u64,
    },
    /// The Buffer Pool has no room for the message.
    PoolFull {
        /// The message's bytes.
        bytes: u64,
        /// Bytes of the longest piece that is free; none without a pool.
        free: u64,
    },
    /// The card's memory is used up.
    CardMemory {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes left.
        left: u64,
    },
    /// A node that there is not.
    NoNode {
        /// Its number.
        node: u32,
        /// How many nodes there are.
        nodes: u32,
    },
    /// An interface that no card has.
    NoSuchInterface {
        /// Its number.
        vni: u32,
        /// How many a card has.
        limit: u32,
    },
    /// A message too long for programmed I/O, asked for by name.
    TooLongForPio {
        /// Its bytes.
        bytes: u64,
        /// The most.
        limit: u64,
    },
    /// Operations of the process have not ended.
    Pending {
        /// How many.
        operations: usize,
    },
    /// An operation that the process does not have.
    NoOperation {
        /// Its number.
        operation: u64,
    },
    /// The host's memory has no such bytes.
    Memory(MemoryError),
}

impl fmt::Display for QnixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use QnixError as E;
        match self {
            E::NoInterface { limit } => write!(
                f,
                "all {limit} virtual network interfaces of the card are taken; close one, or raise limits.vnis"
            ),
            E::Open { vni } => write!(f, "the process has interface {vni} already; close it first"),
            E::NotYours { vni, owner: Some(owner), process } => {
                write!(f, "interface {vni} is process {owner}'s; process {process} may not touch it")
            }
            E::NotYours { vni, owner: None, process } => {
                write!(f, "nobody has interface {vni}; process {process} has to open one first")
            }
            E::NotYourMemory { address, len, process } => {
                write!(f, "the {len} bytes at {address:#x} are not in the memory of process {process}")
            }
            E::Sends { limit } => {
                write!(f, "{limit} sends of the process have not ended; wait for one, or raise limits.sends")
            }
            E::Receives { limit } => write!(
                f,
                "{limit} receives of the process have not ended; wait for one, or raise limits.receives"
            ),
            E::Message { bytes, limit } => write!(
                f,
                "a message of {bytes} bytes; the largest is {limit}: send it in several, or raise limits.message"
            ),
            E::Pages { pages, limit } => write!(
                f,
                "the buffer lies in {pages} pages, and a Context Region has {limit} descriptors; begin it on a page, or \
                 send it in several messages"
            ),
            E::Pool { bytes: 0, .. } => {
                f.write_str("a Buffer Pool of no bytes; write how many it is to have")
            }
            E::Pool { bytes, limit } => write!(
                f,
                "a Buffer Pool of {bytes} bytes; the largest is {limit}: make it smaller, or raise limits.pool"
            ),
            E::PoolThere => f.write_str("the process has a Buffer Pool already; a process has one"),
            E::NotInPool { address, bytes } => write!(
                f,
                "the {bytes} bytes at {address:#x} do not lie in the Buffer Pool; copy or translate, or take the buffer \
                 from the pool"
            ),
            E::PoolFull { bytes, free: 0 } => write!(
                f,
                "no room for {bytes} bytes in the Buffer Pool; register one, wait for an operation, or translate"
            ),
            E::PoolFull { bytes, free } => write!(
                f,
                "no room for {bytes} bytes in the Buffer Pool, of which {free} in one piece are free; wait for an \
                 operation, or translate"
            ),
            E::CardMemory { wanted, left } => write!(
                f,
                "the card has {left} bytes of memory left, {wanted} were asked for; raise memory.size in the spec"
            ),
            E::NoNode { node, nodes } => write!(f, "no node {node}: the cluster has 0 to {}", nodes - 1),
            E::NoSuchInterface { vni, limit } => {
                write!(f, "no interface {vni}: a card has 0 to {}", limit - 1)
            }
            E::TooLongForPio { bytes, limit } => write!(
                f,
                "{bytes} bytes by programmed I/O; the most is {limit}: leave the choice to the library, or raise \
                 pio.limit"
            ),
            E::Pending { operations } => {
                write!(f, "{operations} operations of the process have not ended; wait for them first")
            }
            E::NoOperation { operation } => {
                write!(f, "the process has no operation {operation}; it ended, or was never posted")
            }
            E::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for QnixError {}

impl From<MemoryError> for QnixError {
    fn from(error: MemoryError) -> QnixError {
        QnixError::Memory(error)
    }
}
