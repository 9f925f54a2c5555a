//! The header of a packet, little-endian. The first packet of a message has 72 bytes, and a further packet has 32
//! bytes.
//!
//! | bytes | first packet |
//! |---|---|
//! | 0..64 | the Portals header of the message ([`Header`]), with sender and receiver |
//! | 64..72 | number of the message at its sender |
//!
//! | bytes | further packets |
//! |---|---|
//! | 0 | version, 1, as in a Portals header |
//! | 1 | 0, an invalid kind of Portals message |
//! | 2..4 | zero |
//! | 4..8, 8..12 | ranks of the sender and of the receiver, as in a Portals header |
//! | 12..16 | zero |
//! | 16..24 | number of the message at its sender |
//! | 24..32 | offset of the payload in the message, in bytes; not zero |

use nicety_fabric::HeaderBytes;
use nicety_portals::{HEADER_BYTES, Header};
use nicety_types::{MessageId, NodeId, View};

const VERSION: u8 = 1;
const FIRST: usize = HEADER_BYTES + 8;
const FURTHER: usize = 32;
/// Indices of the bytes of a further packet's header that are zero.
const RESERVED: [usize; 6] = [2, 3, 12, 13, 14, 15];

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repr {
    /// The header of a message's first packet.
    First {
        header: Header,
        /// Number of the message at its sender.
        number: u64,
    },
    /// The header of any other packet.
    Further {
        message: MessageId,
        target: NodeId,
        /// Offset of the payload in the message, in bytes.
        offset: u64,
    },
}

impl Repr {
    /// Returns the header of the packet at `offset` in a message.
    pub(super) const fn part(header: &Header, number: u64, offset: u64) -> Repr {
        match offset {
            0 => Repr::First { header: *header, number },
            _ => {
                let message = MessageId { source: header.source, sequence: number };
                Repr::Further { message, target: header.target, offset }
            }
        }
    }

    /// Returns the message to which the packet belongs.
    pub(super) const fn message(&self) -> MessageId {
        match *self {
            Repr::First { ref header, number } => MessageId { source: header.source, sequence: number },
            Repr::Further { message, .. } => message,
        }
    }

    /// Returns the offset of the packet's payload in the message, in bytes.
    pub(super) const fn offset(&self) -> u64 {
        match *self {
            Repr::First { .. } => 0,
            Repr::Further { offset, .. } => offset,
        }
    }

    /// Returns the receiver.
    pub(super) const fn target(&self) -> NodeId {
        match self {
            Repr::First { header, .. } => header.target,
            Repr::Further { target, .. } => *target,
        }
    }

    /// Returns the bytes of the header.
    pub(super) fn emit(&self) -> HeaderBytes {
        match *self {
            Repr::First { ref header, number } => HeaderBytes::emitted(FIRST, |bytes| {
                bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
                View(bytes).put_u64(HEADER_BYTES, number);
            }),
            Repr::Further { message, target, offset } => HeaderBytes::emitted(FURTHER, |bytes| {
                bytes[0] = VERSION;
                let mut view = View(bytes);
                view.put_u32(4, message.source.0);
                view.put_u32(8, target.0);
                view.put_u64(16, message.sequence);
                view.put_u64(24, offset);
            }),
        }
    }

    /// Parses a header. Returns `None` if the bytes are not a header.
    pub(super) fn parse(bytes: &[u8]) -> Option<Repr> {
        let view = View(bytes);
        match bytes.len() {
            FIRST => {
                let header = Header::decode(bytes).ok()?;
                Some(Repr::First { header, number: view.u64(HEADER_BYTES) })
            }
            FURTHER if bytes[..2] == [VERSION, 0] && RESERVED.iter().all(|&at| bytes[at] == 0) => {
                let message = MessageId { source: NodeId(view.u32(4)), sequence: view.u64(16) };
                let (target, offset) = (NodeId(view.u32(8)), view.u64(24));
                (offset != 0).then_some(Repr::Further { message, target, offset })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(source: u32, target: u32) -> Header {
        Header::put(NodeId(source), NodeId(target), 3, 77, 10_000)
    }

    #[test]
    fn the_bytes_are_those_of_the_table() {
        let header = header(0x0403_0201, 0x0807_0605);
        let first = Repr::part(&header, 9, 0).emit();
        assert_eq!(first.as_slice(), [&header.encode()[..], &[9, 0, 0, 0, 0, 0, 0, 0]].concat());
        let further = Repr::part(&header, 9, 4096).emit();
        let (head, tail) = further.as_slice().split_at(16);
        assert_eq!(head, [1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
        assert_eq!(tail, [9, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn headers_that_are_none_are_refused() {
        let [first, further] = [0, 8].map(|offset| Repr::part(&header(1, 0), 2, offset).emit());
        for good in [first, further] {
            let good = good.as_slice();
            assert!(Repr::parse(good).is_some());
            assert_eq!(Repr::parse(&good[..good.len() - 1]), None);
            assert_eq!(Repr::parse(&[good, &[0]].concat()), None);
            // The version and the kind are invalid.
            for (at, wrong) in [(0, 2), (1, 8)] {
                let mut bytes = good.to_vec();
                bytes[at] = wrong;
                assert_eq!(Repr::parse(&bytes), None);
            }
        }
        for (at, wrong) in RESERVED.map(|at| (at, 1)).into_iter().chain([(24, 0)]) {
            let mut bytes = further.as_slice().to_vec();
            bytes[at] = wrong;
            assert_eq!(Repr::parse(&bytes), None);
        }
    }

    proptest! {
        #[test]
        fn a_header_comes_out_as_it_went_in(source: u32, target: u32, number: u64, offset in 0..=u64::MAX) {
            for offset in [0, offset] {
                let repr = Repr::part(&header(source, target), number, offset);
                prop_assert_eq!(Repr::parse(repr.emit().as_slice()), Some(repr));
                prop_assert_eq!(repr.message(), MessageId { source: NodeId(source), sequence: number });
                prop_assert_eq!((repr.target(), repr.offset()), (NodeId(target), offset));
            }
        }

        #[test]
        fn any_bytes_are_a_header_or_none(
            bytes in prop::collection::vec(any::<u8>(), 0..=96),
            len in prop::sample::select(vec![FIRST, FURTHER, FRAMED]),
            kind in 0..9u8,
        ) {
            let _ = Repr::parse(&bytes);
            let mut bytes = bytes;
            bytes.resize(len, 0);
            (bytes[0], bytes[1]) = (VERSION, kind);
            RESERVED.iter().for_each(|&at| bytes[at] = 0);
            if let Some(emitted) = Repr::parse(&bytes).map(|repr| repr.emit()) {
                prop_assert_eq!(emitted.as_slice(), &bytes);
            }
        }
    }

    /// The length of a first packet's header followed by a transport header.
    const FRAMED: usize = FIRST + nicety_nic_core::parts::transport::FRAME_BYTES;
}
