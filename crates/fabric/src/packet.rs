//! Packets and the other symbols of a link.

use nicety_types::{MessageId, NodeId, Path, Payload, Stage, Time};
use std::fmt;

/// The most bytes of header a packet carries.
const HEADER_CAPACITY: usize = 96;

/// The real bytes of a packet's header, as the card's protocol wrote them.
#[derive(Clone, Copy)]
pub struct HeaderBytes {
    len: u8,
    bytes: [u8; HEADER_CAPACITY],
}

impl HeaderBytes {
    /// A copy of `header`.
    ///
    /// # Panics
    /// When it is longer than 96 bytes.
    pub fn new(header: &[u8]) -> HeaderBytes {
        let mut bytes = [0; HEADER_CAPACITY];
        bytes[..header.len()].copy_from_slice(header);
        HeaderBytes { len: header.len() as u8, bytes }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for HeaderBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeaderBytes({:02x?})", self.as_slice())
    }
}

/// A packet.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The node that sent it.
    pub source: NodeId,
    /// The node it is for.
    pub destination: NodeId,
    /// The message it is part of.
    pub message: MessageId,
    /// Where its payload begins in the message's, in bytes. The packet at offset 0 is the header packet.
    pub offset: u64,
    /// The header.
    pub header: HeaderBytes,
    /// The payload.
    pub payload: Payload,
    /// Where the time went until it is here.
    pub path: Path,
}

/// What passes over a wire.
#[derive(Debug)]
pub enum Symbol {
    /// A packet, whole.
    Packet(Packet),
    /// The first byte of a packet, on its way into a switch.
    Head {
        /// The packet. Its path accounts for the time until its first byte is here.
        packet: Packet,
        /// When its last byte is here.
        tail: Time,
        /// The stage that the time from first to last byte belongs to.
        slowest: Stage,
    },
    /// That many packet buffer slots are free again at the end that sent this.
    Credits(u32),
    /// The launcher's: a program has reached a barrier, or may leave it.
    Barrier,
}
