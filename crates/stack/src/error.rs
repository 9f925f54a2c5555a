//! Errors for the caller of a socket, in the terms of socket programmers.

use std::fmt;

/// The reason why a call on a socket failed. A failed call has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// Another socket uses the port (`EADDRINUSE`).
    AddressInUse,
    /// All ephemeral ports towards this peer are in use, or the host has no address of that family (`EADDRNOTAVAIL`).
    AddressNotAvailable,
    /// The peer replied with a reset: no socket listens there (`ECONNREFUSED`).
    ConnectionRefused,
    /// The peer reset the connection (`ECONNRESET`).
    ConnectionReset,
    /// This host has aborted the connection (`ECONNABORTED`).
    ConnectionAborted,
    /// The peer has not replied within the spec's timeout (`ETIMEDOUT`).
    TimedOut,
    /// No station on the link replies for the peer's address (`EHOSTUNREACH`).
    HostUnreachable,
    /// The peer is not on the link and there is no gateway (`ENETUNREACH`).
    NetworkUnreachable,
    /// The connection is not yet established, or already closed (`ENOTCONN`).
    NotConnected,
    /// The handle was closed or never issued (`EBADF`).
    BadHandle,
    /// The program has already closed the sending direction (`EPIPE`).
    BrokenPipe,
    /// The datagram does not fit into one frame. Datagrams are not fragmented (`EMSGSIZE`).
    MessageTooLong,
    /// The limit of connections, ports or buffer memory is reached (`ENOBUFS`).
    NoBufferSpace,
    /// At present there is nothing to read or accept, or no room to write (`EWOULDBLOCK`).
    WouldBlock,
    /// The address, port or size is invalid (`EINVAL`).
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

/// The reason why a spec is invalid for a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub(crate) String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}
