//! The types of the interface between a stack and its caller.

use crate::error::Error;
use crate::table::Key;
use std::net::SocketAddr;

/// A TCP connection. Its identifier is not reused after it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) Key);

/// A listening port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(crate) Key);

/// A UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatagramId(pub(crate) Key);

impl ConnectionId {
    /// Returns a small number for tables, unique among open connections.
    pub fn index(self) -> usize {
        self.0.index as usize
    }
}

/// A source of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The stack itself: ARP, NDP, resets, replies to echo requests.
    Host,
    /// A connection.
    Connection(ConnectionId),
    /// A UDP socket.
    Datagram(DatagramId),
}

/// A change of a socket for which its program may wait. [`Arrival`] reports new readable bytes and new room to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection to [accept](crate::Stack::accept).
    Incoming(ListenerId),
    /// A connection that this host [began](crate::Stack::connect) is established.
    Connected(ConnectionId),
    /// The peer sends no more: after the buffered bytes, [`recv`](crate::Stack::recv) returns 0.
    Finished(ConnectionId),
    /// The connection has ended by refusal, reset, or silence.
    Failed(ConnectionId, Error),
    /// The connection has ended, and both directions were delivered.
    Closed(ConnectionId),
    /// A datagram was not sent, since its neighbour is unreachable.
    Undeliverable(DatagramId, Error),
}

/// The card's knowledge of a received frame's checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumStatus {
    /// The card has not verified the checksums: the stack verifies them.
    Unknown,
    /// The card has verified that the checksums are right.
    Good,
}

/// The reason why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Drop {
    /// No frame, or headers that contradict each other.
    Malformed,
    /// For another station, another host, or a group that this host is not in.
    NotForUs,
    /// Of another 802.1Q network.
    Vlan,
    /// A checksum of IP, TCP, UDP or ICMP is wrong.
    Checksum,
    /// A part of a longer packet. There is no reassembly.
    Fragment,
    /// An unsupported protocol.
    Protocol,
    /// No socket has the port. The reply is a reset or an ICMP error.
    NoPort,
    /// The listener's backlog is full, or there is no memory for another connection.
    Backlog,
    /// The receive buffer is full.
    BufferFull,
}

/// The disposition of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The socket of the frame. A connection that ended by this frame may not exist any more.
    pub source: Source,
    /// Bytes of TCP's or UDP's payload in the frame.
    pub payload: usize,
    /// Additional bytes that a program can read.
    pub readable: usize,
    /// Additional bytes that a program can write.
    pub acknowledged: usize,
    /// The reason, if it was dropped.
    pub dropped: Option<Drop>,
}

/// A frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Bytes of TCP's or UDP's payload in it.
    pub payload: usize,
    /// Whether it contains bytes that were sent before.
    pub retransmission: bool,
    /// The payload of each segment but the last, if the card must segment the frame (see [`crate::segment`]).
    pub segment: Option<usize>,
    /// Whether the card must [write](crate::fill) the checksums.
    pub needs_checksum: bool,
}

/// The counters of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received and sent. A packet that the card segments counts as one.
    pub received: u64,
    /// See `received`.
    pub sent: u64,
    /// Frames dropped, by reason in the order of [`Drop`].
    pub dropped: [u64; 9],
    /// Segments sent again.
    pub retransmissions: u64,
    /// Losses detected by acknowledgements, and probes for a lost tail.
    pub recoveries: u64,
    /// Retransmission timeouts of established connections.
    pub timeouts: u64,
    /// Repeated segments: all of their bytes had already arrived.
    pub duplicates: u64,
    /// Segments that arrived before an earlier segment.
    pub out_of_order: u64,
    /// Frames of the stack itself that were dropped, because their queue was full.
    pub control_dropped: u64,
}

impl Counters {
    /// Frames dropped for one reason.
    pub fn drops(&self, why: Drop) -> u64 {
        self.dropped[why as usize]
    }
}

/// Whether two ends have the same address family.
pub(crate) fn same_family(a: SocketAddr, b: SocketAddr) -> bool {
    a.is_ipv4() == b.is_ipv4()
}
