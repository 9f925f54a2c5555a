//! Packets and the other symbols of a link.

use crate::{Parcel, Pause, Transit};
use nicety_types::{MessageId, NodeId, Path, Payload, Stage, Time};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
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
        HeaderBytes::emitted(header.len(), |bytes| bytes.copy_from_slice(header))
    }

    /// A header of `len` bytes, as `emit` writes it over zeros.
    ///
    /// # Panics
    /// When it is longer than 96 bytes.
    pub fn emitted(len: usize, emit: impl FnOnce(&mut [u8])) -> HeaderBytes {
        let mut bytes = [0; HEADER_CAPACITY];
        emit(&mut bytes[..len]);
        HeaderBytes { len: len as u8, bytes }
    }

    /// The header with `more` behind it.
    ///
    /// # Panics
    /// When both together are longer than 96 bytes.
    pub fn followed_by(&self, more: &[u8]) -> HeaderBytes {
        let mut whole = *self;
        let (start, end) = (usize::from(self.len), usize::from(self.len) + more.len());
        whole.bytes[start..end].copy_from_slice(more);
        whole.len = end as u8;
        whole
    }

    /// Takes the last `len` bytes off: a layer's own part, which it has read.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn strip(&mut self, len: usize) {
        self.len = u8::try_from(usize::from(self.len) - len).expect("shorter than before");
    }

    /// Flips the bits `mask` of byte `at`, as a bad wire does.
    ///
    /// # Panics
    /// When there is no such byte.
    pub(crate) fn damage(&mut self, at: usize, mask: u8) {
        self.bytes[..usize::from(self.len)][at] ^= mask;
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Serialize for HeaderBytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self.as_slice())
    }
}

impl<'de> Deserialize<'de> for HeaderBytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<HeaderBytes, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = HeaderBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{HEADER_CAPACITY} bytes at most")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<HeaderBytes, E> {
                match bytes.len() {
                    0..=HEADER_CAPACITY => Ok(HeaderBytes::new(bytes)),
                    length => Err(E::invalid_length(length, &self)),
                }
            }
        }
        from.deserialize_bytes(Bytes)
    }
}

impl fmt::Debug for HeaderBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeaderBytes({:02x?})", self.as_slice())
    }
}

/// The flow control of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channel {
    /// The virtual channel of this number: it takes a slot of that channel's buffer on every link, and a credit for it, so
    /// it waits for no slot of another channel.
    Data(u8),
    /// It needs no slot, so it never waits for data that waits for it: an acknowledgement, which is consumed
    /// where it arrives. It takes its turn on every link like any other.
    Control,
}

/// The label on a packet: its route, for the network, and its name in records. A card that receives it reads none of
/// this, but the bytes of the header, which hold all that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The node it is for.
    pub destination: NodeId,
    /// The message it is part of, and with it the node that sent it. Routes may depend on both.
    pub message: MessageId,
    /// Where its payload begins in the message's, in bytes.
    pub offset: u64,
}

/// A packet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Packet {
    /// Its route and its name.
    pub label: Label,
    /// Its flow control.
    pub channel: Channel,
    /// The header.
    pub header: HeaderBytes,
    /// The payload.
    pub payload: Payload,
    /// The stages of its time so far.
    pub path: Path,
}

impl Packet {
    /// Another packet like it; its payload is the same memory.
    pub fn share(&self) -> Packet {
        Packet { payload: self.payload.clone(), path: self.path.clone(), ..*self }
    }

    /// Whether it needs no slot in buffers.
    pub fn is_control(&self) -> bool {
        self.channel == Channel::Control
    }
}

/// The symbols that pass over a wire. Units on it are credits: a packet buffer slot is free again at the end
/// that sent one.
#[derive(Debug, Serialize, Deserialize)]
pub enum Symbol {
    /// A packet, whole.
    Packet(Parcel),
    /// The first byte of a packet, entering a switch.
    Head {
        /// The packet, whose time is accounted for until its first byte has arrived.
        packet: Transit,
        /// When its last byte arrives.
        tail: Time,
        /// The stage that the time from first to last byte belongs to.
        slowest: Stage,
    },
    /// A lost packet of this virtual channel, which takes no slot.
    Lost(u8),
    /// A pause frame, whole.
    Pause(Pause),
    /// The launcher's: a program has reached a barrier, or may leave it.
    Barrier,
}
