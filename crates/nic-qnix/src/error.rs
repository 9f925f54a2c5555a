//! Errors of the library and the card.

use nicety_host::MemoryError;
use std::fmt;

/// The reason why a call was refused. A refused call has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QnixError {
    /// All interfaces are in use.
    NoInterface {
        /// Number of interfaces.
        limit: u32,
    },
    /// The process has an interface already.
    Open {
        /// Number of that interface.
        vni: u32,
    },
    /// The process does not own this interface.
    NotYours {
        /// Number of the interface.
        vni: u32,
        /// The process that owns the interface, if any.
        owner: Option<u32>,
        /// The calling process.
        process: u32,
    },
    /// The call names bytes outside the process's memory.
    NotYourMemory {
        /// Address of the first byte.
        address: u64,
        /// Number of bytes.
        len: u64,
        /// The calling process.
        process: u32,
    },
    /// The process has too many pending sends.
    Sends {
        /// Maximum number of pending sends.
        limit: u32,
    },
    /// The process has too many pending receives.
    Receives {
        /// Maximum number of pending receives.
        limit: u32,
    },
    /// The message is longer than the limit.
    Message {
        /// Size of the message in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The buffer has more pages than a Context Region has descriptors.
    Pages {
        /// Number of pages of the buffer.
        pages: u64,
        /// Number of descriptors of a Context Region.
        limit: u64,
    },
    /// The Buffer Pool is larger than the limit, or empty.
    Pool {
        /// Requested size in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The process has a Buffer Pool already.
    PoolThere,
    /// The buffer is outside the Buffer Pool.
    NotInPool {
        /// Address of the buffer.
        address: u64,
        /// Size of the buffer in bytes.
        bytes: u64,
    },
    /// The Buffer Pool has no room for the message.
    PoolFull {
        /// Size of the message in bytes.
        bytes: u64,
        /// Size of the longest free piece in bytes; 0 without a pool.
        free: u64,
    },
    /// The card's memory is exhausted.
    CardMemory {
        /// Number of requested bytes.
        wanted: u64,
        /// Number of free bytes.
        left: u64,
    },
    /// There is no such node.
    NoNode {
        /// Number of the requested node.
        node: u32,
        /// Number of nodes.
        nodes: u32,
    },
    /// There is no such interface on a card.
    NoSuchInterface {
        /// Number of the requested interface.
        vni: u32,
        /// Number of interfaces of a card.
        limit: u32,
    },
    /// The message is too long for the programmed I/O that the caller requested.
    TooLongForPio {
        /// Size of the message in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The process has pending operations.
    Pending {
        /// Number of operations.
        operations: usize,
    },
    /// The process has no such operation.
    NoOperation {
        /// Number of the requested operation.
        operation: u64,
    },
    /// The host's memory refused an access or an allocation.
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
                write!(f, "interface {vni} belongs to process {owner}; process {process} cannot use it")
            }
            E::NotYours { vni, owner: None, process } => {
                write!(f, "interface {vni} is not open; process {process} has to open one first")
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
                "a message of {bytes} bytes; the maximum is {limit}: send several messages, or raise \
                 limits.message and memory.size"
            ),
            E::Pages { pages, limit } => write!(
                f,
                "the buffer lies in {pages} pages, but a Context Region has {limit} descriptors; align the \
                 buffer to a page, or send several messages"
            ),
            E::Pool { bytes: 0, .. } => f.write_str("a Buffer Pool of 0 bytes; register at least 1 byte"),
            E::Pool { bytes, limit } => write!(
                f,
                "a Buffer Pool of {bytes} bytes; the maximum is {limit}: make it smaller, or raise limits.pool"
            ),
            E::PoolThere => f.write_str("the process has a Buffer Pool already, and can have only one"),
            E::NotInPool { address, bytes } => write!(
                f,
                "the {bytes} bytes at {address:#x} do not lie in the Buffer Pool; use copy or translate, or \
                 take the buffer from the pool"
            ),
            E::PoolFull { bytes, free: 0 } => write!(
                f,
                "no room for {bytes} bytes in the Buffer Pool; register one, wait for an operation, or translate"
            ),
            E::PoolFull { bytes, free } => write!(
                f,
                "no room for {bytes} bytes in the Buffer Pool; the largest free piece has {free}; wait for an \
                 operation, or translate"
            ),
            E::CardMemory { wanted, left } => write!(
                f,
                "the card has {left} bytes of memory left, but {wanted} were requested; raise memory.size in the spec"
            ),
            E::NoNode { node, nodes } => {
                write!(f, "no node {node}: the cluster has nodes 0 to {}", nodes - 1)
            }
            E::NoSuchInterface { vni, limit } => {
                write!(f, "no interface {vni}: a card has interfaces 0 to {}", limit - 1)
            }
            E::TooLongForPio { bytes, limit } => write!(
                f,
                "{bytes} bytes by programmed I/O; the maximum is {limit}: leave the choice to the library, or raise \
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
