//! Reasons to refuse a call, and failures of a call that has begun.

use crate::{CARD_ADDRESS_BITS, Kind, PAYLOAD_BYTES, Reply, Status, TargetId, Want};
use std::fmt;

/// The reason for a refused call. A refused call changes no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The message has no bytes.
    ZeroSize,
    /// The message is longer than a direct message can be; its length in bytes.
    DirectTooLong(u64),
    /// The message is longer than the limit.
    TooLong {
        /// The message's length in bytes.
        bytes: u64,
        /// The limit `message_bytes`.
        limit: u32,
    },
    /// A resource is used up.
    NoSpace {
        /// The exhausted resource.
        what: &'static str,
        /// The field of [`crate::HostLimits`] or [`crate::CardLimits`] that bounds the resource.
        name: &'static str,
        /// The size of the resource.
        limit: u32,
    },
    /// No card or host can have this limit.
    Limit {
        /// The field of [`crate::CardLimits`].
        name: &'static str,
        /// The allowed values.
        must: &'static str,
    },
    /// No thread or context has this number.
    NoSuch {
        /// Thread, context, mailbox or manager.
        what: &'static str,
        /// The number.
        number: u32,
        /// The number of existing threads, contexts, mailboxes or managers; they are numbered from zero.
        count: u32,
    },
    /// The thread or context is still blocked in another call.
    Blocked {
        /// Thread or context.
        what: &'static str,
        /// Its number.
        number: u16,
    },
    /// The channel was closed, is not open yet, or never existed.
    Stale,
    /// Another thread or context already uses this end of the channel.
    Busy {
        /// The activity of the other thread or context there.
        doing: &'static str,
    },
    /// No process of the card is registered under this ID.
    UnknownTarget(TargetId),
    /// The ID is registered already.
    TargetExists(TargetId),
    /// The memory is beyond the card's 40 address bits.
    CardAddress {
        /// The first byte.
        address: u64,
        /// The number of bytes.
        bytes: u32,
    },
    /// The selection has no guard.
    NoGuards,
    /// The selection names one channel twice; the index of the repeated guard.
    RepeatedGuard(u16),
    /// The pages do not have the size of the buffer to be pinned.
    Pages {
        /// Bytes of the pages.
        bytes: u64,
        /// Bytes of the buffer.
        buffer: u32,
    },
    /// A completion of an action that was not begun.
    NotBegun(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::ZeroSize => f.write_str("a message has at least 1 byte, here are 0"),
            Error::DirectTooLong(n) => write!(
                f,
                "a direct message has at most {PAYLOAD_BYTES} bytes, here are {n}; use the indirect calls (send_ind, \
                 channel_read_ind), at both ends"
            ),
            Error::TooLong { bytes, limit } => {
                write!(
                    f,
                    "a message has at most {limit} bytes, here are {bytes}; split it, or raise `message_bytes`"
                )
            }
            Error::NoSpace { what, name, limit } => {
                write!(f, "no {what} is left of {limit}; use fewer, or raise the limit `{name}`")
            }
            Error::Limit { name, must } => write!(f, "`{name}` must be {must}"),
            Error::NoSuch { what, number, count } => {
                write!(f, "there is no {what} {number}: there are {count}, numbered from 0")
            }
            Error::Blocked { what, number } => {
                write!(f, "{what} {number} is still blocked in a call; it can make one at a time")
            }
            Error::Stale => {
                f.write_str("this channel is not open: it was closed, or its subscription has not ended")
            }
            Error::Busy { doing } => write!(
                f,
                "another thread or context is already {doing} this channel; a channel has one user at each end, so use another"
            ),
            Error::UnknownTarget(target) => {
                write!(f, "no process of the card has the ID {}; register it first", target.0)
            }
            Error::TargetExists(target) => {
                write!(f, "the ID {} is registered already; take another", target.0)
            }
            Error::CardAddress { address, bytes } => write!(
                f,
                "{bytes} bytes at {address:#x} are not within the card's {CARD_ADDRESS_BITS} bits of address"
            ),
            Error::NoGuards => f.write_str("a selection needs at least one channel"),
            Error::RepeatedGuard(index) => {
                write!(f, "guard {index} of the selection names a channel that an earlier guard names")
            }
            Error::Pages { bytes, buffer } => {
                write!(f, "the pages have {bytes} bytes in total, but the buffer to be pinned has {buffer}")
            }
            Error::NotBegun(what) => write!(f, "the completion of {what} that was not begun, or has ended"),
        }
    }
}

impl std::error::Error for Error {}

/// The failure of a call that had begun. Both ends of an exchange get the same failure, except for a timeout, which only the waiting end
/// gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The two ends named different sizes; nothing was moved.
    SizeMismatch {
        /// The sender's size, in bytes.
        sent: u32,
        /// The receiver's size, in bytes.
        expected: u32,
    },
    /// One end made a direct and the other an indirect call; nothing was moved.
    KindMismatch {
        /// The sender's kind.
        sent: Kind,
    },
    /// The other end did not come before the deadline; nothing was moved.
    Timeout,
    /// A page list failed more often than [`crate::HostLimits::retries`] allows.
    Dma {
        /// Bytes of the lists that succeeded.
        done: u32,
        /// Bytes that are outstanding.
        outstanding: u32,
    },
    /// The host could not pin the pages of its buffer.
    Pin,
    /// The host closed the channel.
    Closed,
    /// No process of the card is registered under the ID; nothing was moved.
    UnknownTarget(TargetId),
    /// Another channel is subscribed to the target.
    TargetTaken(TargetId),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::SizeMismatch { sent, expected } => write!(
                f,
                "the sender has {sent} bytes and the receiver expects {expected}; both ends must name the same size"
            ),
            Failure::KindMismatch { sent: Kind::Direct } => f.write_str(
                "the sender's message is direct, but the receiver expects an indirect message; use the same call at both ends",
            ),
            Failure::KindMismatch { sent: Kind::Indirect } => f.write_str(
                "the sender's message is indirect, but the receiver expects a direct message; use the same call at both ends",
            ),
            Failure::Timeout => f.write_str("the other end did not come before the deadline"),
            Failure::Dma { done, outstanding } => write!(
                f,
                "DMA failed too often: {done} bytes are done and {outstanding} are not; `retries` is the limit"
            ),
            Failure::Pin => f.write_str("the pages of the host's buffer could not be pinned"),
            Failure::Closed => f.write_str("the host closed the channel"),
            Failure::UnknownTarget(target) => write!(f, "no process of the card has the ID {}", target.0),
            Failure::TargetTaken(target) => {
                write!(f, "another channel is subscribed to target {}; close that channel first", target.0)
            }
        }
    }
}

impl std::error::Error for Failure {}

/// Returns the mismatch between a sender and a receiver, and the receiver's answer.
pub(crate) fn mismatch(sent: Want, expected: Want) -> (Failure, Reply) {
    let (failure, status) = if sent.kind() == expected.kind() {
        let (sent, expected) = (sent.bytes(), expected.bytes());
        (Failure::SizeMismatch { sent, expected }, Status::SizeMismatch)
    } else {
        (Failure::KindMismatch { sent: sent.kind() }, Status::KindMismatch)
    };
    (failure, Reply { expected: expected.bytes(), ..Reply::new(status) })
}
