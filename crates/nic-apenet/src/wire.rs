//! The header and the footer of a packet: 32 bytes each, little-endian, around a payload of whole 32-byte words.
//!
//! | header | field |
//! |---|---|
//! | 0 | kind: 1 put, 2 get, 3 reply, 4 refusal |
//! | 1 | 1 if the address is physical, else 0 |
//! | 2..4 | zero |
//! | 4..8, 8..12 | the sender: node and process |
//! | 12..16, 16..20 | the receiver: node and process |
//! | 20..24 | size of the payload in bytes, without the padding of its last word |
//! | 24..32 | put: destination of the payload, 0 for a streaming buffer; get: source of the bytes; else 0 |
//!
//! | footer | field |
//! |---|---|
//! | 0..8 | number of the message at its sender's node; refusal: number of the refused message |
//! | 8..12 | offset of the payload in the message, in bytes |
//! | 12..16 | size of the message in bytes; get: size of its reply; refusal: size of the refused message |
//! | 16..24 | put: data for the receiver's event; reply: number of the get; refusal: the reason; else 0 |
//! | 24..28 | put, get: number of earlier messages of this kind from this node to that node, modulo 2^32; else 0 |
//! | 28..32 | CRC-32 over all earlier bytes of header and footer, and the payload |

use crate::Endpoint;
use crate::error::Refusal;
use nicety_fabric::HeaderBytes;
use nicety_nic_core::parts::transport::checksum;
use nicety_types::{MessageId, NodeId, Payload, Segment, View};

/// Size of header and footer together in bytes.
const BYTES: usize = 64;
/// Size in bytes of a word of payload on the link.
pub(super) const WORD: u64 = 32;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Kind {
    /// A part of a put, or of a send into a streaming buffer.
    Put = 1,
    /// The request of a get.
    Get = 2,
    /// A part of the reply to a get.
    Reply = 3,
    /// The receiver of a message has refused it.
    Refusal = 4,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Put, Kind::Get, Kind::Reply, Kind::Refusal];
}

/// Header and footer of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repr {
    pub(super) kind: Kind,
    /// Whether `address` is physical.
    pub(super) physical: bool,
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    /// Size of the payload in bytes.
    pub(super) payload: u32,
    pub(super) address: u64,
    /// Number of the message at the sender's node.
    pub(super) number: u64,
    /// Offset of the payload in the message, in bytes.
    pub(super) offset: u32,
    /// Size of the message in bytes.
    pub(super) bytes: u32,
    pub(super) data: u64,
    /// For a put or get, the number of earlier messages of its kind from this node to that node.
    pub(super) sequence: u32,
}

impl Repr {
    /// Returns the identity of the packet's message.
    pub(super) const fn message(&self) -> MessageId {
        MessageId { source: self.from.node, sequence: self.number }
    }

    /// Returns the header for the part of the message that begins `offset` bytes after this part, without the part's
    /// length.
    pub(super) fn page(&self, offset: u64) -> Repr {
        let moves = self.address != 0 && self.kind != Kind::Get;
        let address = if moves { self.address + offset } else { self.address };
        Repr { payload: 0, offset: self.offset + offset as u32, address, ..*self }
    }

    /// Returns the refusal of this packet's message.
    pub(super) fn refusal(&self, why: Refusal) -> Repr {
        let Repr { from, to, number, bytes, .. } = *self;
        let (kind, data) = (Kind::Refusal, why.code());
        Repr {
            kind,
            physical: false,
            from: to,
            to: from,
            payload: 0,
            address: 0,
            number,
            offset: 0,
            bytes,
            data,
            sequence: 0,
        }
    }

    /// Returns header and footer as bytes. Pads the last word of the payload.
    pub(super) fn emit(&self, payload: &mut Payload) -> HeaderBytes {
        let filling = payload.len().next_multiple_of(WORD) - payload.len();
        if filling > 0 {
            payload.push(Segment::Real(nicety_types::Buffer::zeroed(filling as usize)));
        }
        let unsealed = HeaderBytes::emitted(BYTES - 4, |bytes| {
            bytes[0] = self.kind as u8;
            bytes[1] = u8::from(self.physical);
            let mut view = View(bytes);
            for (at, end) in [(4, self.from), (12, self.to)] {
                view.put_u32(at, end.node.0);
                view.put_u32(at + 4, end.process);
            }
            view.put_u32(20, self.payload);
            view.put_u64(24, self.address);
            view.put_u64(32, self.number);
            view.put_u32(40, self.offset);
            view.put_u32(44, self.bytes);
            view.put_u64(48, self.data);
            view.put_u32(56, self.sequence);
        });
        unsealed.followed_by(&checksum(unsealed.as_slice(), payload).to_le_bytes())
    }

    /// Parses header and footer around this payload. Returns `None` if they are invalid or damaged.
    pub(super) fn parse(bytes: &[u8], payload: &Payload) -> Option<Repr> {
        let (rest, crc) = <&[u8; BYTES]>::try_from(bytes).ok()?.split_last_chunk::<4>()?;
        let zeros = rest[2] | rest[3] | (rest[1] & !1);
        if zeros != 0 || payload.is_damaged() || u32::from_le_bytes(*crc) != checksum(rest, payload) {
            return None;
        }
        let view = View(rest);
        let end = |at| Endpoint { node: NodeId(view.u32(at)), process: view.u32(at + 4) };
        let repr = Repr {
            kind: Kind::ALL.into_iter().find(|kind| *kind as u8 == rest[0])?,
            physical: rest[1] == 1,
            from: end(4),
            to: end(12),
            payload: view.u32(20),
            address: view.u64(24),
            number: view.u64(32),
            offset: view.u32(40),
            bytes: view.u32(44),
            data: view.u64(48),
            sequence: view.u32(56),
        };
        (u64::from(repr.payload).next_multiple_of(WORD) == payload.len()).then_some(repr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Repr {
        let end = |node, process| Endpoint { node: NodeId(node), process };
        Repr {
            kind: Kind::Reply,
            physical: true,
            from: end(1, 2),
            to: end(3, 0x0807_0605),
            payload: 9,
            address: 1 << 56,
            number: 10,
            offset: 4096,
            bytes: 4105,
            data: 11,
            sequence: 0x0403_0201,
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_tables() {
        let mut payload = Payload::copy_of(b"nine byte");
        let emitted = header().emit(&mut payload);
        let words = [1, 2, 3, 0x0807_0605, 9].map(u32::to_le_bytes).concat();
        let first = [&[3, 1, 0, 0][..], &words, &(1u64 << 56).to_le_bytes()].concat();
        let (number, data) = (10u64.to_le_bytes(), 11u64.to_le_bytes());
        let last = [&number[..], &[0, 16, 0, 0, 9, 16, 0, 0], &data, &[1, 2, 3, 4]].concat();
        let bytes = [first, last].concat();
        let filled = [b"nine byte".as_slice(), &[0; 23]].concat();
        assert_eq!(payload.clone().into_buffer().unwrap()[..], filled);
        assert_eq!(emitted.as_slice()[60..], crc32fast::hash(&[bytes, filled].concat()).to_le_bytes());
        assert_eq!(Repr::parse(emitted.as_slice(), &payload), Some(header()));
    }

    #[test]
    fn a_payload_of_another_length_and_a_damaged_phantom_are_refused() {
        let mut payload = Payload::phantom(9);
        let emitted = header().emit(&mut payload);
        assert_eq!(payload.len(), 32);
        assert_eq!(Repr::parse(emitted.as_slice(), &payload), Some(header()));
        let mut longer = payload.clone();
        longer.push(Segment::Phantom(32));
        assert_eq!(Repr::parse(emitted.as_slice(), &longer), None);
        payload.damage(3, 1);
        assert_eq!(Repr::parse(emitted.as_slice(), &payload), None);
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_no_header(at in 0..64 + 32usize, mask in 1u8..) {
            let mut payload = Payload::copy_of(b"nine byte");
            let mut bytes = header().emit(&mut payload).as_slice().to_vec();
            match at.checked_sub(64) {
                None => bytes[at] ^= mask,
                Some(at) => payload.damage(at as u64, mask),
            }
            prop_assert_eq!(Repr::parse(&bytes, &payload), None);
        }

        #[test]
        fn any_sealed_bytes_are_a_header_or_none(bytes in prop::collection::vec(any::<u8>(), 0..=96), few in any::<bool>()) {
            prop_assert_eq!(Repr::parse(&bytes, &Payload::empty()), None);
            let mut whole = bytes;
            whole.resize(60, 0);
            if few {
                (whole[0], whole[1]) = (whole[0] % 6, whole[1] % 2);
                [2, 3, 20, 21, 22, 23].iter().for_each(|&at: &usize| whole[at] = 0);
            }
            whole.extend(crc32fast::hash(&whole).to_le_bytes());
            if let Some(repr) = Repr::parse(&whole, &Payload::empty()) {
                let emitted = repr.emit(&mut Payload::empty());
                prop_assert_eq!(emitted.as_slice(), &whole);
            } else {
                prop_assert!(!few || whole[0] == 0 || whole[0] == 5);
            }
        }
    }
}
