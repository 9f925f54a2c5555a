//! Packets and the other symbols of a link.

use nicety_types::{MessageId, NodeId, Path, Payload, View};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Maximum size of a packet's header in bytes.
const HEADER_CAPACITY: usize = 96;

/// The real bytes of a packet's header, as written by the card's protocol.
#[derive(Clone, Copy)]
pub struct HeaderBytes {
    len: u8,
    bytes: [u8; HEADER_CAPACITY],
}

impl HeaderBytes {
    /// Returns a header with a copy of the bytes `header`.
    ///
    /// # Panics
    /// When it is longer than 96 bytes.
    pub fn new(header: &[u8]) -> HeaderBytes {
        HeaderBytes::emitted(header.len(), |bytes| bytes.copy_from_slice(header))
    }

    /// Returns a header of `len` bytes. All bytes are zero until `emit` writes them.
    ///
    /// # Panics
    /// When it is longer than 96 bytes.
    pub fn emitted(len: usize, emit: impl FnOnce(&mut [u8])) -> HeaderBytes {
        let mut bytes = [0; HEADER_CAPACITY];
        emit(&mut bytes[..len]);
        HeaderBytes { len: len as u8, bytes }
    }

    /// Returns a header of these 64-bit words, each in little-endian order.
    ///
    /// # Panics
    /// When there are more than 12 words.
    pub fn of_words(words: &[u64]) -> HeaderBytes {
        HeaderBytes::emitted(8 * words.len(), |bytes| {
            words
                .iter()
                .zip(bytes.chunks_exact_mut(8))
                .for_each(|(word, to)| to.copy_from_slice(&word.to_le_bytes()));
        })
    }

    /// Returns the first `N` 64-bit words of the header, each in little-endian order.
    ///
    /// # Panics
    /// When the header is shorter.
    pub fn words<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|word| View(self.as_slice()).u64(8 * word))
    }

    /// Returns the header with `more` appended.
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

    /// Removes the last `len` bytes. A protocol layer calls this after it has read its own part of the header.
    ///
    /// # Panics
    /// When the header has fewer bytes.
    pub fn strip(&mut self, len: usize) {
        self.len = u8::try_from(usize::from(self.len) - len).expect("shorter than before");
    }

    /// Flips the bits `mask` of byte `at`.
    ///
    /// # Panics
    /// When the header has no byte `at`.
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
    /// The virtual channel with this number. On every link, the packet takes a slot of this channel's buffer, with a
    /// credit for the slot. It never waits for a slot of another channel.
    Data(u8),
    /// The control channel, for packets that the receiver consumes at once, such as acknowledgements. A control packet
    /// needs no slot, so it never waits for data packets that wait for the control packet. On every link it takes its
    /// turn like other packets.
    Control,
}

/// The label of a packet: its route, for the network, and its identity in records. A receiving card does not read the
/// label. It reads only the bytes of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The destination.
    pub destination: NodeId,
    /// The packet's message, which includes the source node. Routes may depend on both.
    pub message: MessageId,
    /// Offset of the payload in the message, in bytes.
    pub offset: u64,
}

/// A packet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Packet {
    /// Its route and identity.
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
    /// Returns a copy that shares the payload's memory.
    pub fn share(&self) -> Packet {
        Packet { payload: self.payload.clone(), path: self.path.clone(), ..*self }
    }

    /// Whether it needs no buffer slot.
    pub fn is_control(&self) -> bool {
        self.channel == Channel::Control
    }
}
