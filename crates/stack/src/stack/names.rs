//! What a stack's caller and the stack tell each other.

use crate::error::Error;
use crate::table::Key;
use std::net::SocketAddr;

/// A TCP connection; not given out again after it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) Key);

/// A port on which connections are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(crate) Key);

/// A UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatagramId(pub(crate) Key);

impl ConnectionId {
    /// A small number for tables: the same for no two connections at a time.
    pub fn index(self) -> usize {
        self.0.index as usize
    }
}

/// Who has frames to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The stack itself: ARP, NDP, resets, answers to echo requests.
    Host,
    /// A connection.
    Connection(ConnectionId),
    /// A UDP socket.
    Datagram(DatagramId),
}

/// A change of a socket that its program may wait for. Readable bytes and room to write are in [`Arrival`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection to [accept](crate::Stack::accept).
    Incoming(ListenerId),
    /// A connection that was [begun](crate::Stack::connect) is established.
    Connected(ConnectionId),
    /// The peer sends no more: after the bytes that are there, [`recv`](crate::Stack::recv) returns 0.
    Finished(ConnectionId),
    /// The connection is over, by refusal, reset, or silence.
    Failed(ConnectionId, Error),
    /// The connection is over, and both directions were delivered.
    Closed(ConnectionId),
    /// A datagram could not be sent to its neighbour.
    Undeliverable(DatagramId, Error),
}

/// What the card knows of a received frame's checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumStatus {
    /// Nothing: the stack verifies them.
    Unknown,
    /// They are right.
    Good,
}

/// Why a frame did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Drop {
    /// No frame, or headers that contradict each other.
    Malformed,
    /// For another station, another host, or a group that this one is not in.
    NotForUs,
    /// Of another 802.1Q network.
    Vlan,
    /// A checksum of IP, TCP, UDP or ICMP is wrong.
    Checksum,
    /// A part of a longer packet; they are not put together.
    Fragment,
    /// A protocol that is not here.
    Protocol,
    /// No socket has the port; answered with a reset or by ICMP.
    NoPort,
    /// The listener has as many connections as its backlog allows, or there is no memory for another.
    Backlog,
    /// The receive buffer is full.
    BufferFull,
}

/// What became of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The socket that it was for. A connection that has ended by this frame may not be there any more.
    pub source: Source,
    /// The frame's payload, for TCP and UDP.
    pub payload: usize,
    /// Bytes that a program can read more than before.
    pub readable: usize,
    /// Bytes that a program can write more than before.
    pub acknowledged: usize,
    /// Why it did nothing, if so.
    pub dropped: Option<Drop>,
}

/// A frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Bytes of TCP's or UDP's payload in it.
    pub payload: usize,
    /// Whether bytes in it were sent before.
    pub retransmission: bool,
    /// Where the card has to cut the frame: the payload of each segment but the last (see [`crate::segment`]).
    pub segment: Option<usize>,
    /// Whether the card has to [write](crate::fill) the checksums.
    pub needs_checksum: bool,
}

/// What a stack counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received and sent; a packet for the card to cut is one.
    pub received: u64,
    /// See `received`.
    pub sent: u64,
    /// Frames that did nothing, by reason in the order of [`Drop`].
    pub dropped: [u64; 9],
    /// Segments sent again.
    pub retransmissions: u64,
    /// Losses that came to light by acknowledgements, and probes for a lost tail.
    pub recoveries: u64,
    /// Retransmission timeouts of established connections.
    pub timeouts: u64,
    /// Segments that came twice, or bytes that were there before.
    pub duplicates: u64,
    /// Segments that came before an earlier one.
    pub out_of_order: u64,
    /// Answers of the stack itself that found no room.
    pub control_dropped: u64,
}

impl Counters {
    /// Frames dropped for one reason.
    pub fn drops(&self, why: Drop) -> u64 {
        self.dropped[why as usize]
    }
}

/// A pair of ends, for messages.
pub(crate) fn same_family(a: SocketAddr, b: SocketAddr) -> bool {
    a.is_ipv4() == b.is_ipv4()
}
