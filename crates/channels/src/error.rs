//! Reasons to refuse a call, and failures of calls that had begun.

use crate::{CARD_ADDRESS_BITS, Kind, PAYLOAD_BYTES, Reply, Status, TargetId, Want};
use std::fmt;

/// The reason for a refused call. A refused call changes no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The message has no bytes.
    ZeroSize,
    /// The direct message is longer than [`PAYLOAD_BYTES`]. The value is its length in bytes.
    DirectTooLong(u64),
    /// The message is longer than the limit.
    TooLong {
        /// The message's length in bytes.
        bytes: u64,
        /// The limit `message_bytes`.
        limit: u32,
    },
    /// A resource is exhausted.
    NoSpace {
        /// The exhausted resource.
        what: &'static str,
        /// The field of [`crate::HostLimits`] or [`crate::CardLimits`] that limits the resource.
        name: &'static str,
        /// The size of the resource.
        limit: u32,
    },
    /// The value of a limit is not allowed.
    Limit {
        /// The field of [`crate::CardLimits`].
        name: &'static str,
        /// The allowed values.
        must: &'static str,
    },
    /// No thread, context, mailbox or manager has this number.
    NoSuch {
        /// The kind: thread, context, mailbox or manager.
        what: &'static str,
        /// The number.
        number: u32,
        /// The number of existing threads, contexts, mailboxes or managers. Numbers begin at zero.
        count: u32,
    },
    /// The thread or context is still blocked in another call.
    Blocked {
        /// The kind: thread or context.
        what: &'static str,
        /// The number of the thread or context.
        number: u16,
    },
    /// The channel was closed, is not open yet, or never existed.
    Stale,
    /// Another thread or context already uses this end of the channel.
    Busy {
        /// The activity of the other thread or context, such as "sending on".
        doing: &'static str,
    },
    /// No process of the card is registered under this ID.
    UnknownTarget(TargetId),
    /// The ID is registered already.
    TargetExists(TargetId),
    /// The memory extends beyond the 40 bits of card addresses.
    CardAddress {
        /// The first byte.
        address: u64,
        /// The number of bytes.
        bytes: u32,
    },
    /// The selection has no guard.
    NoGuards,
    /// The selection names a channel or target twice. The value is the index of the second guard.
    RepeatedGuard(u16),
    /// The pages together do not have the size of the buffer to be pinned.
    Pages {
        /// Number of bytes in the pages.
        bytes: u64,
        /// Size of the buffer in bytes.
        buffer: u32,
    },
    /// A completion call for an action that was not begun. The value names the action.
    NotBegun(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::ZeroSize => f.write_str("a message has at least 1 byte, not 0"),
            Error::DirectTooLong(n) => write!(
                f,
                "a direct message has at most {PAYLOAD_BYTES} bytes, not {n}; use the indirect calls (send_ind, \
                 channel_read_ind), at both ends"
            ),
            Error::TooLong { bytes, limit } => {
                write!(
                    f,
                    "a message has at most {limit} bytes, not {bytes}; split it, or raise `message_bytes`"
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
                "another thread or context is already {doing} this channel; a channel has one user at each \
                 end; use another channel"
            ),
            Error::UnknownTarget(target) => {
                write!(f, "no process of the card has the ID {}; register it first", target.0)
            }
            Error::TargetExists(target) => {
                write!(f, "the ID {} is registered already; use another ID", target.0)
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
            Error::NotBegun(what) => write!(f, "the completion of {what} that was not started, or has ended"),
        }
    }
}

impl std::error::Error for Error {}

/// The failure of a call that had begun. Both ends of an exchange get the same failure. Only a timeout concerns one end
/// alone: the waiting end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The two ends named different sizes. No byte was transferred.
    SizeMismatch {
        /// The sender's size, in bytes.
        sent: u32,
        /// The receiver's size, in bytes.
        expected: u32,
    },
    /// One end made a direct call, the other an indirect call. No byte was transferred.
    KindMismatch {
        /// The sender's kind.
        sent: Kind,
    },
    /// The other end did not call before the deadline. No byte was transferred.
    Timeout,
    /// A page list failed, and all retries that [`crate::HostLimits::retries`] allows failed too.
    Dma {
        /// Number of bytes in the page lists that succeeded.
        done: u32,
        /// Number of bytes that are outstanding.
        outstanding: u32,
    },
    /// The host could not pin the pages of its buffer.
    Pin,
    /// The host closed the channel.
    Closed,
    /// No process of the card is registered under the ID.
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
            Failure::Timeout => f.write_str("the other end did not take part before the deadline"),
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

/// Returns the failure for a sender and a receiver that name different kinds or sizes, and the receiver's reply.
pub(crate) fn mismatch(sent: Want, expected: Want) -> (Failure, Reply) {
    let (failure, status) = if sent.kind() == expected.kind() {
        let (sent, expected) = (sent.bytes(), expected.bytes());
        (Failure::SizeMismatch { sent, expected }, Status::SizeMismatch)
    } else {
        (Failure::KindMismatch { sent: sent.kind() }, Status::KindMismatch)
    };
    (failure, Reply { expected: expected.bytes(), ..Reply::new(status) })
}
