//! The transport header, which follows a packet's header: 20 bytes, little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | kind: 1 data, 2 acknowledgement, 3 refusal, 4 probe, 5 farewell |
//! | 1..4 | zero |
//! | 4..8 | rank of the sender |
//! | 8..16 | data and probe: the packet's number; other kinds: the number that the sender of this packet expects next |
//! | 16..20 | CRC-32 (ISO-HDLC, as in Ethernet) over all header bytes before it and the payload |
//!
//! The number has enough bits that it never wraps. For a phantom payload, the CRC covers the payload's length instead
//! of its bytes.

use crc32fast::Hasher;
use nicety_fabric::{HeaderBytes, Packet};
use nicety_types::{NodeId, Payload, Segment, View};

/// Size in bytes of the transport header that is added to a packet's header.
pub const FRAME_BYTES: usize = 20;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A packet of a message.
    Data = 1,
    /// An acknowledgement: all packets before its number have been accepted.
    Acknowledgement = 2,
    /// A refusal: all packets before its number have been accepted, and later packets were discarded.
    Refusal = 3,
    /// A probe: a packet with only a number. It asks whether the remote card still answers.
    Probe = 4,
    /// A farewell: an acknowledgement from a card that has given up its own flow to the receiver of the farewell.
    Farewell = 5,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Data, Kind::Acknowledgement, Kind::Refusal, Kind::Probe, Kind::Farewell];
}

/// The fields of the transport header, except the CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The kind of the packet.
    pub kind: Kind,
    /// The card that sent the packet.
    pub source: NodeId,
    /// The packet's number, or the number that the sender expects next.
    pub number: u64,
}

impl Frame {
    /// Returns a packet's header, followed by the transport header with its CRC.
    pub fn seal(&self, header: HeaderBytes, payload: &Payload) -> HeaderBytes {
        let mut bytes = [0; FRAME_BYTES - 4];
        bytes[0] = self.kind as u8;
        View(&mut bytes).put_u32(4, self.source.0);
        View(&mut bytes).put_u64(8, self.number);
        let framed = header.followed_by(&bytes);
        framed.followed_by(&checksum(framed.as_slice(), payload).to_le_bytes())
    }

    /// Parses the transport header of a packet. Returns `None` if the CRC or the kind is wrong.
    pub fn open(packet: &Packet) -> Option<Frame> {
        let (rest, crc) = packet.header.as_slice().split_last_chunk::<4>()?;
        if packet.payload.is_damaged() || u32::from_le_bytes(*crc) != checksum(rest, &packet.payload) {
            return None;
        }
        let frame = rest.last_chunk::<{ FRAME_BYTES - 4 }>()?;
        let kind = Kind::ALL.into_iter().find(|k| *k as u8 == frame[0])?;
        Some(Frame { kind, source: NodeId(View(frame).u32(4)), number: View(frame).u64(8) })
    }
}

/// Returns the CRC-32 of a header and a payload. For phantom bytes, the CRC covers their number.
pub fn checksum(header: &[u8], payload: &Payload) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(header);
    for segment in payload.segments() {
        match segment {
            Segment::Real(bytes) => hasher.update(bytes),
            Segment::Phantom(length) => hasher.update(&length.to_le_bytes()),
        }
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_fabric::{Channel, Label};
    use nicety_types::{MessageId, Path, Time};
    use proptest::prelude::*;

    fn packet(frame: Frame, header: &[u8], payload: Payload) -> Packet {
        let header = frame.seal(HeaderBytes::new(header), &payload);
        let label = Label { destination: frame.source, message: MessageId::default(), offset: 0 };
        let path = Path::from(Time::ZERO);
        Packet { label, channel: Channel::Data(0), header, payload, path }
    }

    const FRAME: Frame =
        Frame { kind: Kind::Data, source: NodeId(0x0403_0201), number: 0x0706_0504_0302_0100 };

    #[test]
    fn the_bytes_are_those_of_the_table() {
        let sealed = FRAME.seal(HeaderBytes::new(b"1234"), &Payload::copy_of(b"56789"));
        let frame = [1, 0, 0, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(sealed.as_slice()[..20], [b"1234".as_slice(), &frame].concat());
        let crc = crc32fast::hash(&[b"1234".as_slice(), &frame, b"56789"].concat());
        assert_eq!(sealed.as_slice()[20..], crc.to_le_bytes());
        // The expected value is the check value of CRC-32/ISO-HDLC.
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        assert_eq!(Frame::open(&packet(FRAME, b"", Payload::phantom(4096))), Some(FRAME));
    }

    #[test]
    fn a_damaged_phantom_is_seen() {
        let mut packet = packet(FRAME, b"header", Payload::phantom(4096));
        packet.payload.damage(17, 4);
        assert_eq!(Frame::open(&packet), None);
    }

    proptest! {
        #[test]
        fn damage_to_a_byte_is_seen(
            header in prop::collection::vec(any::<u8>(), 0..=64),
            payload in prop::collection::vec(any::<u8>(), 1..5000),
            number: u64,
            at: prop::sample::Index,
            mask in 1u8..,
        ) {
            let frame = Frame { number, ..FRAME };
            let mut packet = packet(frame, &header, Payload::copy_of(&payload));
            prop_assert_eq!(Frame::open(&packet), Some(frame));
            packet.payload.damage(at.index(payload.len()) as u64, mask);
            prop_assert_eq!(Frame::open(&packet), None);
        }

        #[test]
        fn no_bytes_panic(header in prop::collection::vec(any::<u8>(), 0..=96)) {
            let mut packet = packet(FRAME, b"", Payload::empty());
            packet.header = HeaderBytes::new(&header);
            prop_assert_eq!(Frame::open(&packet), None);
        }
    }
}
