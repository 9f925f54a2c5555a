//! The envelope: the protocol unit of messengers. Its 56 bytes are sent in a direct message on a channel, and in a
//! frame.

use crate::messenger::error::Arrival;
use nicety_nic_core::check_tag;
use nicety_nic_core::library::ArrivedMessage;
use nicety_types::{MessageId, NodeId, Path};

/// Maximum length of an eager message in bytes.
pub const INLINE: u64 = 32;

/// Number of lanes of a card in each direction. It is equal to that in `forward.c`.
pub(super) const LANES: usize = 8;

/// The lane in a CTS that refuses the message, because the receive's buffer is too small.
pub(super) const NO_LANE: u32 = u32::MAX;

/// The kind of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// Eager: the envelope of a message, with the message's bytes.
    Eager = 1,
    /// RTS (request to send): the envelope of a message with bytes that are still at its sender.
    Rts = 2,
    /// CTS (clear to send): the reply to an RTS, with the number of the lane for the bytes.
    Cts = 3,
    /// Credit: reports the total number of the sender's messages that receives have taken.
    Credit = 4,
}

impl Kind {
    /// Whether an envelope of this kind is that of a message, and so has a tag.
    const fn has_tag(self) -> bool {
        matches!(self, Kind::Eager | Kind::Rts)
    }
}

/// An envelope has six words, and then the eager bytes. In the envelope of a message, the sixth word is the upper half
/// of the tag, because there is no lane yet. In other envelopes, it is the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The destination rank. After the arrival, the source rank.
    pub(super) rank: u32,
    pub(super) kind: Kind,
    pub(super) tag: u64,
    /// Size of the message in bytes.
    pub(super) bytes: u32,
    /// The sender's number of the message. In [`Kind::Credit`], the total number of messages taken.
    pub(super) id: u32,
    /// The lane. In [`Kind::Credit`], the pair of processes.
    pub(super) lane: u32,
    pub(super) inside: [u8; INLINE as usize],
}

impl Envelope {
    pub(super) const fn new(rank: u32, kind: Kind) -> Envelope {
        Envelope { rank, kind, tag: 0, bytes: 0, id: 0, lane: 0, inside: [0; INLINE as usize] }
    }

    /// Returns the envelope as a message of the library. `path` ends at the envelope's arrival.
    pub(super) const fn into_message(self, path: Path) -> ArrivedMessage<(Envelope, Path)> {
        ArrivedMessage { source: self.rank, tag: self.tag, bytes: self.bytes as u64, body: (self, path) }
    }

    pub(super) const fn arrival(&self) -> Arrival {
        Arrival { source: self.rank, tag: self.tag, bytes: self.bytes as u64 }
    }

    /// Returns the identifier of the envelope's message.
    pub(super) const fn message(&self) -> MessageId {
        MessageId { source: NodeId(self.rank), sequence: self.id as u64 }
    }

    pub(super) fn encode(&self) -> [u8; 56] {
        let mut to = [0; 56];
        let last = if self.kind.has_tag() { (self.tag >> 32) as u32 } else { self.lane };
        let words = [self.rank, self.kind as u32, self.tag as u32, self.bytes, self.id, last];
        for (place, word) in to.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        to[24..].copy_from_slice(&self.inside);
        to
    }

    /// Parses bytes from the network. `None` if they are not a valid envelope.
    pub(super) fn decode(from: &[u8]) -> Option<Envelope> {
        let word =
            |index: usize| Some(u32::from_le_bytes(from.get(4 * index..4 * index + 4)?.try_into().ok()?));
        let (low, bytes, last) = (word(2)?, word(3)?, word(5)?);
        let short = u64::from(bytes) <= INLINE;
        let kind = match word(1)? {
            1 if short => Kind::Eager,
            2 if !short => Kind::Rts,
            3 if (last as usize) < LANES || last == NO_LANE => Kind::Cts,
            4 => Kind::Credit,
            _ => return None,
        };
        let (lane, high) = if kind.has_tag() { (0, last) } else { (last, 0) };
        let tag = u64::from(high) << 32 | u64::from(low);
        check_tag(tag).ok()?;
        let inside = from.get(24..56)?.try_into().ok()?;
        Some(Envelope { rank: word(0)?, kind, tag, bytes, id: word(4)?, lane, inside })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoding_inverts_encoding(bytes in prop::collection::vec(any::<u8>(), 0..60), kind in 0..6u8) {
            let mut bytes = bytes;
            if let Some(at) = bytes.get_mut(4..8) {
                at.copy_from_slice(&[kind, 0, 0, 0]);
            }
            if let Some(envelope) = Envelope::decode(&bytes) {
                prop_assert_eq!(Envelope::decode(&envelope.encode()), Some(envelope));
            }
        }
    }

    #[test]
    fn a_tag_is_in_two_words_of_a_message() {
        let tag = 0x7654_3210_fedc_ba98;
        let message = Envelope { tag, bytes: 5, id: 9, ..Envelope::new(3, Kind::Eager) };
        let words: Vec<u32> = message
            .encode()
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words[..6], [3, 1, 0xfedc_ba98, 5, 9, 0x7654_3210]);
        assert_eq!(Envelope::decode(&message.encode()), Some(message));
        assert_eq!(Envelope::decode(&Envelope { tag: tag | 1 << 63, ..message }.encode()), None);
    }

    #[test]
    fn lengths_and_lanes_that_cannot_be_are_none() {
        let envelope = |kind, bytes, lane| Envelope { bytes, lane, ..Envelope::new(1, kind) };
        for (envelope, good) in [
            (envelope(Kind::Eager, 32, 0), true),
            (envelope(Kind::Eager, 33, 0), false),
            (envelope(Kind::Rts, 32, 0), false),
            (envelope(Kind::Rts, 33, 0), true),
            (envelope(Kind::Cts, 0, 7), true),
            (envelope(Kind::Cts, 0, 8), false),
            (envelope(Kind::Cts, 0, NO_LANE), true),
        ] {
            assert_eq!(Envelope::decode(&envelope.encode()).is_some(), good, "{envelope:?}");
        }
        assert_eq!(Envelope::decode(&[1; 55]), None);
    }
}
