//! The header of an Ethernet frame (IEEE 802.3), and its checksum.
//!
//! | bytes | field |
//! |---|---|
//! | 0..6, 6..12 | addresses of the receiver and the sender |
//! | 12..14 | big-endian: bytes of payload without padding, or an EtherType, which is 0x600 or more |
//! | 14..18 | CRC-32 over bytes 0 to 14 and the payload; on the wire it follows the payload |
//!
//! An address names a queue of a node's port: 02, the queue, and the node's number, big-endian.

use nicety_fabric::HeaderBytes;
use nicety_types::{NodeId, Payload, Segment};

/// Bytes of a header without the checksum.
const HEADER: usize = 14;
/// Bytes of the checksum, which is at the end of the simulated header.
pub(super) const CHECKSUM: usize = 4;
/// The lowest value of the last field that is an EtherType. A lower value is a length.
const LEAST_TYPE: u16 = 0x600;

/// A locally administered Ethernet address. In this network, it is the address of a queue of a node's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub [u8; 6]);

impl Address {
    /// Returns the address of a queue.
    pub const fn of(node: NodeId, queue: u8) -> Address {
        let [a, b, c, d] = node.0.to_be_bytes();
        Address([2, queue, a, b, c, d])
    }

    /// Returns the node and the queue of the address. `None` if the address has another form.
    pub const fn queue(self) -> Option<(NodeId, u8)> {
        match self.0 {
            [2, queue, a, b, c, d] => Some((NodeId(u32::from_be_bytes([a, b, c, d])), queue)),
            _ => None,
        }
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The receiver.
    pub destination: Address,
    /// The sender.
    pub source: Address,
    /// The EtherType, or the length of the payload without padding in bytes.
    pub last: u16,
}

impl Frame {
    /// Returns the EtherType, or `None` for a frame with a length field.
    pub const fn ether_type(&self) -> Option<u16> {
        if self.last < LEAST_TYPE { None } else { Some(self.last) }
    }

    /// Returns the length of the payload without padding. `bytes` is the length with padding. The two differ only in a
    /// frame with a length field. Returns `None` if the payload is empty, or shorter than the length field says. A port
    /// drops such a frame.
    pub fn unpadded(&self, bytes: u64) -> Option<u64> {
        let length = if self.ether_type().is_some() { bytes } else { self.last.into() };
        (1..=bytes).contains(&length).then_some(length)
    }

    /// Returns the header's bytes for a frame with this payload.
    pub fn emit(&self, payload: &Payload) -> HeaderBytes {
        HeaderBytes::emitted(HEADER + CHECKSUM, |bytes| {
            let (header, sum) = bytes.split_at_mut(HEADER);
            header[..6].copy_from_slice(&self.destination.0);
            header[6..12].copy_from_slice(&self.source.0);
            header[12..].copy_from_slice(&self.last.to_be_bytes());
            sum.copy_from_slice(&checksum(header, payload).to_le_bytes());
        })
    }

    /// Parses the header of a frame with this payload. Returns `None` if the bytes are not a header, or if the header
    /// or the payload is damaged.
    pub fn parse(bytes: &[u8], payload: &Payload) -> Option<Frame> {
        let (header, sum) = bytes.split_first_chunk::<HEADER>()?;
        let intact = !payload.is_damaged() && payload.is_real();
        if !intact || sum != checksum(header, payload).to_le_bytes() {
            return None;
        }
        let [a, b, c, d, e, f, g, h, i, j, k, l, high, low] = *header;
        let (destination, source) = (Address([a, b, c, d, e, f]), Address([g, h, i, j, k, l]));
        Some(Frame { destination, source, last: u16::from_be_bytes([high, low]) })
    }
}

fn checksum(header: &[u8], payload: &Payload) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(header);
    for segment in payload.segments() {
        if let Segment::Real(bytes) = segment {
            crc.update(bytes);
        }
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAME: Frame = Frame {
        destination: Address::of(NodeId(0x0102_0304), 5),
        source: Address::of(NodeId(6), 0),
        last: 0x88b5,
    };

    #[test]
    fn the_bytes_are_those_of_the_table() {
        let bytes = FRAME.emit(&Payload::copy_of(b"56789"));
        let header = [2, 5, 1, 2, 3, 4, 2, 0, 0, 0, 0, 6, 0x88, 0xb5];
        let sum = crc32fast::hash(&[&header[..], b"56789"].concat());
        assert_eq!(bytes.as_slice(), [&header[..], &sum.to_le_bytes()].concat());
        assert_eq!(FRAME.ether_type(), Some(0x88b5));
        assert_eq!(Frame { last: 0x5ff, ..FRAME }.ether_type(), None);
        assert_eq!(Frame { last: 0x600, ..FRAME }.ether_type(), Some(0x600));
        let lengths =
            [(0x88b5, Some(46)), (0, None), (1, Some(1)), (46, Some(46)), (47, None), (0x5ff, None)];
        for (last, unpadded) in lengths {
            assert_eq!(Frame { last, ..FRAME }.unpadded(46), unpadded, "{last}");
        }
        assert_eq!(FRAME.unpadded(0), None);
        assert_eq!(FRAME.destination.queue(), Some((NodeId(0x0102_0304), 5)));
        assert_eq!(Address([4; 6]).queue(), None);
    }

    #[test]
    fn a_payload_without_bytes_is_refused() {
        let phantom = Payload::phantom(46);
        assert_eq!(Frame::parse(FRAME.emit(&phantom).as_slice(), &phantom), None);
    }

    proptest! {
        #[test]
        fn a_frame_comes_out_as_it_went_in_or_is_damaged(
            destination: [u8; 6],
            source: [u8; 6],
            last: u16,
            payload in prop::collection::vec(any::<u8>(), 1..1500),
            at: prop::sample::Index,
            mask in 1u8..,
        ) {
            let frame = Frame { destination: Address(destination), source: Address(source), last };
            let mut bytes = frame.emit(&Payload::copy_of(&payload)).as_slice().to_vec();
            prop_assert_eq!(Frame::parse(&bytes, &Payload::copy_of(&payload)), Some(frame));
            let (mut payload, at) = (payload, at.index(bytes.len()));
            match bytes.get_mut(at) {
                Some(byte) if mask % 2 == 0 => *byte ^= mask,
                _ => payload[0] ^= mask,
            }
            prop_assert_eq!(Frame::parse(&bytes, &Payload::copy_of(&payload)), None);
        }

        #[test]
        fn no_bytes_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..=96),
            payload in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            prop_assert_eq!(Frame::parse(&bytes, &Payload::copy_of(&payload)), None);
        }
    }
}
