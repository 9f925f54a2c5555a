//! What goes from messenger to messenger: 56 bytes that are a channel's message, and a frame.

use super::{INLINE, LANES};

/// The lane of an answer that gives none: there is no room for the message.
pub(super) const NO_LANE: u32 = u32::MAX;

/// What an envelope is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// A message, and its bytes.
    Whole = 1,
    /// A message whose bytes wait at its sender.
    Asking = 2,
    /// The answer to that: through which lane they may come.
    Ready = 3,
    /// How many envelopes receives have taken since the beginning.
    Taken = 4,
}

/// Seven words, of which one is not used, then the bytes inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    /// To whom, and from whom once it has come.
    pub(super) rank: u32,
    pub(super) kind: Kind,
    pub(super) tag: u32,
    /// Of the message.
    pub(super) bytes: u32,
    /// The sender's number of the message; of [`Kind::Taken`], how many were taken.
    pub(super) id: u32,
    /// A lane.
    pub(super) lane: u32,
    pub(super) inside: [u8; INLINE as usize],
}

impl Envelope {
    pub(super) const fn new(rank: u32, kind: Kind) -> Envelope {
        Envelope { rank, kind, tag: 0, bytes: 0, id: 0, lane: 0, inside: [0; INLINE as usize] }
    }

    pub(super) fn encode(&self) -> [u8; 56] {
        let mut to = [0; 56];
        let words = [self.rank, self.kind as u32, self.tag, self.bytes, self.id, self.lane];
        for (place, word) in to.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        to[24..].copy_from_slice(&self.inside);
        to
    }

    /// What bytes that came from the network say; none where they are no envelope.
    pub(super) fn decode(from: &[u8]) -> Option<Envelope> {
        let word =
            |index: usize| Some(u32::from_le_bytes(from.get(4 * index..4 * index + 4)?.try_into().ok()?));
        let (bytes, lane) = (word(3)?, word(5)?);
        let short = u64::from(bytes) <= INLINE;
        let kind = match word(1)? {
            1 if short => Kind::Whole,
            2 if !short => Kind::Asking,
            3 if (lane as usize) < LANES || lane == NO_LANE => Kind::Ready,
            4 => Kind::Taken,
            _ => return None,
        };
        let inside = from.get(24..56)?.try_into().ok()?;
        Some(Envelope { rank: word(0)?, kind, tag: word(2)?, bytes, id: word(4)?, lane, inside })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_decoded_is_what_was_encoded(bytes in prop::collection::vec(any::<u8>(), 0..60), kind in 0..6u8) {
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
    fn lengths_and_lanes_that_cannot_be_are_none() {
        let envelope = |kind, bytes, lane| Envelope { bytes, lane, ..Envelope::new(1, kind) };
        for (envelope, good) in [
            (envelope(Kind::Whole, 32, 0), true),
            (envelope(Kind::Whole, 33, 0), false),
            (envelope(Kind::Asking, 32, 0), false),
            (envelope(Kind::Asking, 33, 0), true),
            (envelope(Kind::Ready, 0, 7), true),
            (envelope(Kind::Ready, 0, 8), false),
            (envelope(Kind::Ready, 0, NO_LANE), true),
        ] {
            assert_eq!(Envelope::decode(&envelope.encode()).is_some(), good, "{envelope:?}");
        }
        assert_eq!(Envelope::decode(&[1; 55]), None);
    }
}
