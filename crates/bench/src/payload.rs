//! Random payloads of any length. A payload is checked without a copy of it, by generating its bytes again.

use nicety::Buffer;
use nicety_kernel::Rng;

/// Number of bytes generated at once. It is a multiple of the random generator's word, so the bytes do not depend on the division
/// into pieces.
const PIECE: u64 = 64 << 10;

/// A payload that has been written. It is the state of the random stream before its first byte.
#[derive(Debug, Default)]
pub(super) struct Payload(Option<Rng>);

/// A byte in memory that differs from the byte of the payload.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) at: u64,
    pub(super) found: u8,
    pub(super) expected: u8,
}

impl Payload {
    /// Fills `memory` with the next bytes of a random stream. Returns the payload for a later check.
    pub(super) fn write(rng: &mut Rng, memory: &Buffer) -> Payload {
        let payload = Payload(Some(rng.clone()));
        pieces(rng, memory.len(), |at, bytes| {
            memory.write(at, bytes);
            None::<()>
        });
        payload
    }

    /// Returns the first byte of `memory` that differs from the payload; `None` if all are equal, or no payload was written.
    pub(super) fn difference(&self, memory: &Buffer) -> Option<Difference> {
        pieces(&mut self.0.clone()?, memory.len(), |start, bytes| {
            let found = memory.read(start, bytes.len() as u64);
            let at = first_difference(&found, bytes)?;
            Some(Difference { at: start + at as u64, found: found[at], expected: bytes[at] })
        })
    }
}

/// Returns the index of the first different byte. Equal bytes are compared as a whole, which is many times faster.
pub(super) fn first_difference(found: &[u8], expected: &[u8]) -> Option<usize> {
    if found == expected { None } else { found.iter().zip(expected).position(|(a, b)| a != b) }
}

/// Calls `act` with the offset and the bytes of each piece of a payload, until it returns a value.
fn pieces<T>(rng: &mut Rng, len: u64, mut act: impl FnMut(u64, &[u8]) -> Option<T>) -> Option<T> {
    let mut bytes = vec![0; PIECE.min(len) as usize];
    (0..len).step_by(PIECE as usize).find_map(|at| {
        let piece = &mut bytes[..PIECE.min(len - at) as usize];
        rng.fill(piece);
        act(at, piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety::{Cluster, ClusterConfig, cards};

    #[test]
    fn a_payload_is_that_of_one_fill_and_its_first_difference_is_found() {
        let card = cards::load("spin-discrete", &[]).unwrap();
        let cluster = Cluster::new(ClusterConfig::new(1, card)).unwrap();
        for len in [0, 1, 7, PIECE - 1, PIECE, 2 * PIECE + 5] {
            let memory = cluster.host(0).alloc(len).unwrap();
            let mut rng = cluster.host(0).rng("payload");
            let mut whole = vec![0; len as usize];
            rng.clone().fill(&mut whole);
            let payload = Payload::write(&mut rng, &memory);
            assert!(memory.read(0, len) == whole, "{len} bytes");
            assert_eq!(payload.difference(&memory), None);
            if let Some(at) = len.checked_sub(1) {
                let expected = whole[at as usize];
                memory.write(at, &[!expected]);
                assert_eq!(payload.difference(&memory), Some(Difference { at, found: !expected, expected }));
            }
        }
        assert_eq!(Payload::default().difference(&cluster.host(0).alloc(4).unwrap()), None);
    }
}
