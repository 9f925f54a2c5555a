//! First-fit allocation in a range of addresses: the memory of a card, or a part of a host's memory.

use std::ops::Range;

/// A range of addresses with its allocated pieces.
#[derive(Debug)]
pub struct FirstFit {
    range: Range<u64>,
    /// Pieces begin at multiples of this number of bytes, counted from the start of the range.
    alignment: u64,
    /// First address and length in bytes of the pieces, in ascending order.
    taken: Vec<(u64, u64)>,
}

impl FirstFit {
    /// Returns a range without pieces.
    pub const fn new(range: Range<u64>, alignment: u64) -> FirstFit {
        FirstFit { range, alignment, taken: Vec::new() }
    }

    /// The range of addresses.
    pub const fn range(&self) -> &Range<u64> {
        &self.range
    }

    /// Number of free bytes.
    pub fn left(&self) -> u64 {
        self.gaps().map(|(_, len)| len).sum()
    }

    /// Size of the largest gap in bytes.
    pub fn largest(&self) -> u64 {
        self.gaps().map(|(_, len)| len).max().unwrap_or(0)
    }

    /// The gaps before each piece and after the last piece: first address and length in bytes.
    fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut from = self.range.start;
        self.taken.iter().copied().chain([(self.range.end, 0)]).map(move |(start, len)| {
            let gap = (from, start - from);
            from = start + len;
            gap
        })
    }

    /// Allocates a piece of `bytes` bytes, or one byte if `bytes` is zero, in the first gap that is large enough.
    /// Returns the piece's first address and its length. The length is rounded up to the alignment, but not beyond the
    /// gap.
    pub fn take(&mut self, bytes: u64) -> Option<(u64, u64)> {
        let bytes = bytes.max(1);
        let (at, (start, gap)) = self.gaps().enumerate().find(|&(_, (_, gap))| gap >= bytes)?;
        let piece = (start, bytes.next_multiple_of(self.alignment).min(gap));
        self.taken.insert(at, piece);
        Some(piece)
    }

    /// Frees the piece at this address, if there is one.
    pub fn give_back(&mut self, start: u64) {
        self.taken.retain(|&(taken, _)| taken != start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_gap_that_is_large_enough_is_taken() {
        let mut memory = FirstFit::new(1000..1120, 16);
        assert_eq!(memory.take(17), Some((1000, 32)));
        assert_eq!(memory.take(0), Some((1032, 16)));
        // The size of the last gap is not a multiple of 16, but the whole gap can be allocated.
        assert_eq!((memory.left(), memory.largest(), memory.take(73)), (72, 72, None));
        assert_eq!(memory.take(72), Some((1048, 72)));
        assert_eq!((memory.left(), memory.largest(), memory.take(1)), (0, 0, None));
        memory.give_back(1000);
        memory.give_back(1048);
        assert_eq!((memory.left(), memory.largest()), (104, 72));
        assert_eq!(memory.take(33), Some((1048, 48)));
        assert_eq!(memory.take(32), Some((1000, 32)));
        memory.give_back(1);
        assert_eq!(memory.take(u64::MAX), None);
        assert_eq!(memory.left(), 24);
    }

    proptest! {
        /// Pieces are in the range, aligned, and never overlap. Free bytes add up. A piece that fits is allocated.
        #[test]
        fn pieces_never_overlap(
            end in 64..1100u64,
            steps in prop::collection::vec((any::<bool>(), 0..200u64), 1..200),
        ) {
            let mut memory = FirstFit::new(64..end, 16);
            let mut live: Vec<(u64, u64)> = Vec::new();
            for (take, number) in steps {
                if take {
                    let largest = memory.largest();
                    match memory.take(number) {
                        Some((start, len)) => {
                            prop_assert!(start % 16 == 0 && len >= number.max(1) && start >= 64 && start + len <= end);
                            prop_assert!(live.iter().all(|&(s, l)| start + len <= s || s + l <= start));
                            live.push((start, len));
                        }
                        None => prop_assert!(largest < number.max(1)),
                    }
                } else if !live.is_empty() {
                    memory.give_back(live.swap_remove(number as usize % live.len()).0);
                }
                prop_assert_eq!(memory.left(), end - 64 - live.iter().map(|&(_, len)| len).sum::<u64>());
            }
        }
    }
}
