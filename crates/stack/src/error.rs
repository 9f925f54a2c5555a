//! What a socket's caller may be told, in the terms of socket programmers.

use std::fmt;

/// Why a call on a socket failed; nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// Another socket has the port (`EADDRINUSE`).
    AddressInUse,
    /// All ephemeral ports towards this peer are taken, or the host has no address of that family (`EADDRNOTAVAIL`).
    AddressNotAvailable,
    /// The peer answered with a reset: no socket listens there (`ECONNREFUSED`).
    ConnectionRefused,
    /// The peer reset the connection (`ECONNRESET`).
    ConnectionReset,
    /// This side has aborted the connection (`ECONNABORTED`).
    ConnectionAborted,
    /// The peer has not answered for the spec's time (`ETIMEDOUT`).
    TimedOut,
    /// No station answers for the peer's address on the link (`EHOSTUNREACH`).
    HostUnreachable,
    /// The peer is not on the link and there is no gateway (`ENETUNREACH`).
    NetworkUnreachable,
    /// The connection is not established yet, or not any more (`ENOTCONN`).
    NotConnected,
    /// The handle was closed, or was never given out (`EBADF`).
    BadHandle,
    /// This direction was shut down before (`EPIPE`).
    BrokenPipe,
    /// A datagram that does not fit into one frame; it is not fragmented (`EMSGSIZE`).
    MessageTooLong,
    /// The limit of connections, of ports or of the memory for buffers (`ENOBUFS`).
    NoBufferSpace,
    /// Nothing to take, or no room to put it, at present (`EWOULDBLOCK`).
    WouldBlock,
    /// An address, port or size that cannot be (`EINVAL`).
    Invalid,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::AddressInUse => "address already in use",
            Error::AddressNotAvailable => "address not available",
            Error::ConnectionRefused => "connection refused",
            Error::ConnectionReset => "connection reset by peer",
            Error::ConnectionAborted => "connection aborted",
            Error::TimedOut => "connection timed out",
            Error::HostUnreachable => "host is unreachable",
            Error::NetworkUnreachable => "network is unreachable",
            Error::NotConnected => "socket is not connected",
            Error::BadHandle => "socket is closed",
            Error::BrokenPipe => "this direction of the connection was shut down",
            Error::MessageTooLong => "message too long for one frame",
            Error::NoBufferSpace => "no buffer space available",
            Error::WouldBlock => "operation would block",
            Error::Invalid => "invalid argument",
        })
    }
}

impl std::error::Error for Error {}

/// Why there can be no stack with a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub(crate) String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}
