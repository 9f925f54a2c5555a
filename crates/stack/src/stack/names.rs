//! The types of the interface between a stack and its caller.

use crate::error::Error;
use crate::table::Key;
use std::net::SocketAddr;

/// The identifier of a TCP connection. It is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) Key);

/// The identifier of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(crate) Key);

/// The identifier of a UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatagramId(pub(crate) Key);

impl ConnectionId {
    /// Returns a small number for tables, unique among open connections.
    pub fn index(self) -> usize {
        self.0.index as usize
    }
}

/// A source of outgoing frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The stack itself: ARP, NDP, resets, replies to echo requests.
    Host,
    /// A connection.
    Connection(ConnectionId),
    /// A UDP socket.
    Datagram(DatagramId),
}

/// A change of a socket for which its program may wait. [`Arrival`] instead reports new readable bytes and new room in
/// the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection to [accept](crate::Stack::accept).
    Incoming(ListenerId),
    /// A connection that this host [began](crate::Stack::connect) is established.
    Connected(ConnectionId),
    /// The peer has closed its sending direction. After the buffered bytes, [`recv`](crate::Stack::recv) returns 0
    /// (end-of-file).
    Finished(ConnectionId),
    /// The connection has failed: it was refused or reset, or the peer was silent too long.
    Failed(ConnectionId, Error),
    /// The connection has ended after the bytes of both directions were delivered.
    Closed(ConnectionId),
    /// The stack has dropped outgoing datagrams, because their neighbour is unreachable.
    Undeliverable(DatagramId, Error),
}

/// The card's knowledge of a received frame's checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumStatus {
    /// The card has not verified the checksums, so the stack verifies them.
    Unknown,
    /// The card has verified that the checksums are right.
    Good,
}

/// The reason why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Drop {
    /// The bytes are no frame, or the headers contradict each other.
    Malformed,
    /// The destination is another MAC address, another IP address, or a group without this host.
    NotForUs,
    /// The frame belongs to another 802.1Q network.
    Vlan,
    /// A checksum of IP, TCP, UDP or ICMP is wrong.
    Checksum,
    /// The packet is a fragment. The stack does not reassemble fragments.
    Fragment,
    /// The stack does not support the protocol.
    Protocol,
    /// No socket has the port. The stack replies with a reset or an ICMP error.
    NoPort,
    /// The listener's backlog is full, or the limit of connections or memory is reached.
    Backlog,
    /// The receive buffer is full.
    BufferFull,
}

/// The disposition of a received frame: its socket, and its effect on the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The socket that received the frame. If the frame ended a connection, the connection may not exist any more.
    pub source: Source,
    /// Bytes of TCP's or UDP's payload in the frame.
    pub payload: usize,
    /// Additional bytes that a program can read.
    pub readable: usize,
    /// Additional room in the send buffer, in bytes.
    pub acknowledged: usize,
    /// The reason why the frame was dropped, if it was.
    pub dropped: Option<Drop>,
}

/// A frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Bytes of TCP's or UDP's payload in the frame.
    pub payload: usize,
    /// Whether the frame contains bytes that were sent before.
    pub retransmission: bool,
    /// Payload bytes of each segment but the last, if the card must segment the frame (see [`crate::segment`]).
    pub segment: Option<usize>,
    /// Whether the card must [write](crate::fill) the checksums.
    pub needs_checksum: bool,
}

/// The counters of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received, before any drop.
    pub received: u64,
    /// Frames sent. A packet that the card segments counts as one frame.
    pub sent: u64,
    /// Number of dropped frames for each reason, in the order of [`Drop`].
    pub dropped: [u64; 9],
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Recoveries from losses that acknowledgements showed, and probes for a lost tail.
    pub recoveries: u64,
    /// Retransmission timeouts of established connections.
    pub timeouts: u64,
    /// Received segments without new bytes: all their bytes had arrived before.
    pub duplicates: u64,
    /// Received segments that arrived before an earlier segment.
    pub out_of_order: u64,
    /// Frames that no socket sends, such as replies, dropped because their queue was full.
    pub control_dropped: u64,
}

impl Counters {
    /// Number of frames dropped for one reason.
    pub fn drops(&self, why: Drop) -> u64 {
        self.dropped[why as usize]
    }
}

/// Whether two ends have the same address family.
pub(crate) fn same_family(a: SocketAddr, b: SocketAddr) -> bool {
    a.is_ipv4() == b.is_ipv4()
}
