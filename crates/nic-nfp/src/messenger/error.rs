//! A received message's envelope, and the errors of messages.

use crate::card::ChannelError;
use nicety_host::MemoryError;
use std::fmt;

/// The envelope of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The rank that sent the message.
    pub source: u32,
    /// The message's tag.
    pub tag: u64,
    /// The message's length in bytes.
    pub bytes: u64,
}

impl Arrival {
    /// Returns the arrival of the message in a buffer of `room` bytes.
    pub(super) const fn in_room(self, room: u64) -> nicety_nic_core::Arrival {
        nicety_nic_core::Arrival { source: self.source, tag: self.tag, bytes: self.bytes, room }
    }
}

/// The failure of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The rank does not exist.
    Rank {
        /// The given rank.
        rank: u32,
        /// The number of ranks.
        ranks: u32,
    },
    /// The message is longer than the spec's `limits.message`.
    TooLong {
        /// The message's length in bytes.
        bytes: u64,
        /// The limit.
        limit: u32,
    },
    /// A received message is longer than the buffer of its receive.
    NoRoom {
        /// The message.
        message: Arrival,
        /// Size of the buffer in bytes.
        room: u64,
    },
    /// The receiver has refused a sent message, because its buffer is too small.
    Refused {
        /// The receiver.
        rank: u32,
        /// The message's length in bytes.
        bytes: u64,
    },
    /// The sender has failed after it sent a part of the message.
    Abandoned {
        /// The message.
        message: Arrival,
    },
    /// Messages between hosts need a microengine that runs another process.
    Microengine {
        /// The microengine.
        number: usize,
        /// The first microengine for messages.
        first: usize,
        /// The last microengine for messages.
        last: usize,
    },
    /// The buffer is not in host memory.
    Memory(MemoryError),
    /// A channel to the card failed.
    Channel(ChannelError),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::Rank { rank, ranks } => {
                write!(f, "there is no rank {rank}; the cluster has ranks 0 to {}", ranks - 1)
            }
            MessageError::TooLong { bytes, limit } => {
                write!(f, "a message of {bytes} bytes; the card takes at most {limit} (limits.message)")
            }
            MessageError::NoRoom { message: Arrival { source, tag, bytes }, room } => write!(
                f,
                "a message of {bytes} bytes from rank {source}, tag {tag}, does not fit a buffer of {room} bytes"
            ),
            MessageError::Refused { rank, bytes } => {
                write!(
                    f,
                    "rank {rank} has no room for a message of {bytes} bytes in the buffer of its receive"
                )
            }
            MessageError::Abandoned { message: Arrival { source, tag, bytes } } => write!(
                f,
                "rank {source} has given up its message of {bytes} bytes, tag {tag}, before all of it had arrived"
            ),
            MessageError::Microengine { number, first, last } => write!(
                f,
                "messages between hosts need microengines {first} to {last}, but a process runs on \
                 microengine {number}; start it on another microengine"
            ),
            MessageError::Memory(error) => error.fmt(f),
            MessageError::Channel(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MessageError {}

impl From<ChannelError> for MessageError {
    fn from(error: ChannelError) -> MessageError {
        MessageError::Channel(error)
    }
}

impl From<MemoryError> for MessageError {
    fn from(error: MemoryError) -> MessageError {
        MessageError::Memory(error)
    }
}
