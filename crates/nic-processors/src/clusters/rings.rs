//! Memory in rings. Pieces are taken behind the last one, and freed in the order in which they were taken.
//!
//! This follows PsPIN: packets in L1 are in four rings of 16 KiB (`cluster_rb.sv`), and packets in L2 in one
//! (`NICInbound.hpp`). A packet that stays long keeps the memory behind it from being freed. A piece does not wrap
//! around.

use std::collections::VecDeque;

/// A piece of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    start: u64,
    pub bytes: u64,
    is_free: bool,
}

/// Several rings of equal length.
#[derive(Debug)]
pub(crate) struct Rings {
    /// Bytes of each ring.
    length: u64,
    slot: u64,
    /// Pieces in the order in which they were taken. The first piece of a ring is not free.
    rings: Box<[VecDeque<Piece>]>,
}

impl Rings {
    /// Returns `rings` rings in `bytes` bytes, with pieces of whole slots.
    pub fn new(bytes: u64, rings: u64, slot: u64) -> Rings {
        Rings { length: bytes / rings, slot, rings: (0..rings).map(|_| VecDeque::new()).collect() }
    }

    /// Takes a piece from the first ring that has room for it. Returns its offset.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1).next_multiple_of(self.slot);
        let length = self.length;
        let place = |ring: &VecDeque<Piece>| {
            let (Some(head), Some(last)) = (ring.front(), ring.back()) else {
                return (bytes <= length).then_some(0);
            };
            let (head, tail) = (head.start, last.start + last.bytes);
            match tail > head {
                // Behind the last piece, or at the beginning, with room to spare: the two ends never meet there.
                true if length - tail >= bytes => Some(tail),
                true => (bytes < head).then_some(0),
                false => (head - tail >= bytes).then_some(tail),
            }
        };
        let (ring, start) =
            self.rings.iter().enumerate().find_map(|(ring, pieces)| Some((ring, place(pieces)?)))?;
        self.rings[ring].push_back(Piece { start, bytes, is_free: false });
        Some(ring as u64 * length + start)
    }

    /// Frees a piece. Its memory is available once earlier pieces are free too.
    pub(crate) fn free(&mut self, start: u64) {
        let pieces = &mut self.rings[(start / self.length) as usize];
        let begin = start % self.length;
        if let Some(piece) = pieces.iter_mut().find(|piece| piece.start == begin && !piece.is_free) {
            piece.is_free = true;
        }
        while pieces.front().is_some_and(|piece| piece.is_free) {
            pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_are_freed_in_order() {
        let mut rings = Rings::new(1024, 2, 64);
        // Three pieces of 128 B in slots of 64, and a fourth of 128: the first ring is full.
        let all: Vec<_> = (0..4).map(|_| rings.take(100).unwrap()).collect();
        assert_eq!(all, [0, 128, 256, 384]);
        assert_eq!(rings.take(1), Some(512), "the second ring");
        rings.free(128);
        rings.free(256);
        assert_eq!(rings.take(64), Some(576), "the first piece keeps those behind it");
        rings.free(0);
        // Now 384 bytes are free at the beginning. As in the RTL, a piece must be shorter than the free part there.
        assert_eq!(rings.take(384), Some(640));
        assert_eq!(rings.take(320), Some(0));
        assert_eq!(rings.take(64), Some(320), "behind it, up to the oldest piece");
        assert_eq!(rings.take(64), None, "the second ring is full as well");
    }

    #[test]
    fn an_empty_ring_begins_anew() {
        let mut rings = Rings::new(256, 1, 64);
        assert_eq!(rings.take(192), Some(0));
        rings.free(0);
        assert_eq!(rings.take(256), Some(0));
        assert_eq!(rings.take(1), None);
    }

    proptest! {
        /// Pieces lie within one ring, in whole slots, and never overlap. When all are free, a piece can take all of
        /// a ring.
        #[test]
        fn pieces_never_overlap(
            rings in 1u64..4,
            steps in prop::collection::vec((any::<bool>(), 0u64..300), 1..200),
        ) {
            let mut memory = Rings::new(rings * 1024, rings, 64);
            let mut live: Vec<(u64, u64)> = Vec::new();
            for (take, number) in steps {
                if take {
                    if let Some(start) = memory.take(number) {
                        let end = start + number.max(1).next_multiple_of(64);
                        prop_assert!(start % 64 == 0 && start / 1024 == (end - 1) / 1024 && end <= rings * 1024);
                        prop_assert!(live.iter().all(|&(s, e)| end <= s || e <= start));
                        live.push((start, end));
                    }
                } else if !live.is_empty() {
                    memory.free(live.swap_remove(number as usize % live.len()).0);
                }
            }
            live.iter().for_each(|&(start, _)| memory.free(start));
            for ring in 0..rings {
                prop_assert_eq!(memory.take(1024), Some(ring * 1024));
            }
        }
    }
}
