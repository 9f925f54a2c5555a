//! The header of a packet: 48 bytes, little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0..4, 4..8 | the sender: node and interface |
//! | 8..12, 12..16 | the receiver: node and interface |
//! | 16..24 | number of the message at its sender's node |
//! | 24..32 | offset of the payload in the message, in bytes |
//! | 32..40 | size of the message in bytes |
//! | 40..48 | tag of the message |

use crate::Endpoint;
use nicety_fabric::HeaderBytes;
use nicety_types::{MessageId, NodeId, View};

/// Size of a header in bytes.
const BYTES: usize = 48;

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repr {
    /// The sender's interface.
    pub(super) from: Endpoint,
    /// The receiver's interface.
    pub(super) to: Endpoint,
    /// Number of the message at the sender's node.
    pub(super) number: u64,
    /// Offset of the payload in the message, in bytes.
    pub(super) offset: u64,
    /// Size of the message in bytes.
    pub(super) bytes: u64,
    /// Tag of the message.
    pub(super) tag: u64,
}

impl Repr {
    /// Returns the identity of the packet's message.
    pub(super) const fn message(&self) -> MessageId {
        MessageId { source: self.from.node, sequence: self.number }
    }

    /// Whether all fields except the offset equal the fields of another packet's header.
    pub(super) fn is_of_message(&self, other: &Repr) -> bool {
        Repr { offset: 0, ..*self } == Repr { offset: 0, ..*other }
    }

    /// Returns the header as bytes.
    pub(super) fn emit(&self) -> HeaderBytes {
        HeaderBytes::emitted(BYTES, |bytes| {
            let mut view = View(bytes);
            for (at, end) in [(0, self.from), (8, self.to)] {
                view.put_u32(at, end.node.0);
                view.put_u32(at + 4, end.vni);
            }
            for (at, number) in [(16, self.number), (24, self.offset), (32, self.bytes), (40, self.tag)] {
                view.put_u64(at, number);
            }
        })
    }

    /// Parses a header. Returns `None` if the bytes are not a header.
    pub(super) fn parse(bytes: &[u8]) -> Option<Repr> {
        let view = View(<&[u8; BYTES]>::try_from(bytes).ok()?);
        let end = |at| Endpoint { node: NodeId(view.u32(at)), vni: view.u32(at + 4) };
        let [number, offset, bytes, tag] = [16, 24, 32, 40].map(|at| view.u64(at));
        Some(Repr { from: end(0), to: end(8), number, offset, bytes, tag })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_those_of_the_table() {
        let end = |node, vni| Endpoint { node: NodeId(node), vni };
        let (from, to) = (end(1, 2), end(3, 0x0807_0605));
        let header = Repr { from, to, number: 9, offset: 4096, bytes: 1 << 56, tag: 10 };
        let words = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 5, 6, 7, 8];
        let longs = [9, 4096, 1 << 56, 10].map(u64::to_le_bytes).concat();
        assert_eq!(header.emit().as_slice(), [&words[..], &longs].concat());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_none(bytes in prop::collection::vec(any::<u8>(), 0..=96)) {
            prop_assert_eq!(Repr::parse(&bytes).is_some(), bytes.len() == BYTES);
            let mut whole = bytes;
            whole.resize(BYTES, 7);
            let emitted = Repr::parse(&whole).unwrap().emit();
            prop_assert_eq!(emitted.as_slice(), &whole);
        }

        #[test]
        fn packets_of_a_message_differ_in_their_offsets_alone(
            bytes in prop::collection::vec(any::<u8>(), BYTES), at in 0..BYTES, mask in 1u8..,
        ) {
            let other = {
                let mut bytes = bytes.clone();
                bytes[at] ^= mask;
                Repr::parse(&bytes).unwrap()
            };
            let header = Repr::parse(&bytes).unwrap();
            prop_assert_eq!(header.is_of_message(&other), (24..32).contains(&at));
        }
    }
}
