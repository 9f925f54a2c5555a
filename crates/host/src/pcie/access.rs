//! The card's end of a link: its commands and DMA engines between a core of the card and host memory.

use nicety_types::{Duration, Frequency, Gap};

/// The cost of a card's access to host memory, in the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessSpec {
    /// The clock of the cores that measure times.
    pub clock: Frequency,
    /// Cycles between two values of the cores' timestamps.
    pub step: u64,
    /// Time from a core to the bus unit.
    pub issue: Duration,
    /// Time from the bus unit back to the waiting core.
    pub finish: Duration,
    /// Time in which the bus unit gets the first bytes of a core's registers.
    pub pull: Duration,
    /// Time per byte between registers of a core and the bus unit.
    pub gap: Gap,
    /// Maximum size of a command in bytes.
    pub most: u64,
    /// The DMA engines.
    pub engines: EnginesSpec,
}

/// The DMA engines of a card, as many for reads as for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnginesSpec {
    /// Number of engines for each direction.
    pub count: u64,
    /// Size of a transfer's descriptor in bytes.
    pub descriptor: u64,
    /// Time from the descriptor of a read to its first request.
    pub read: Duration,
    /// Time from the descriptor of a write to its engine.
    pub write: Duration,
    /// Time that an engine is busy with each read, beside its moves.
    pub setup: Duration,
    /// Time of a move of an engine into the card's memory.
    pub read_move: Duration,
    /// Time of a move of an engine out of the card's memory.
    pub write_move: Duration,
    /// Maximum size of a move, and the boundary in the card's memory that no move crosses.
    pub line: u64,
    /// The unit of moves. A part of a unit is a move of its own in a read. A write takes whole units out of the memory.
    pub word: u64,
    /// Maximum size of a write's move, and the boundary in the card's memory that no such move crosses.
    pub write_line: u64,
    /// Time between the starts of two moves of writes, of whichever engines.
    pub write_gap: Duration,
    /// Maximum size of a write that the bus unit sends at once.
    pub transaction: u64,
    /// Time of a part that all engines share between two transfers. The unit that moves bytes of writes out of the card's
    /// memory takes it for each transfer. The way to the host takes it before each read request and each transaction of a
    /// write.
    pub turn: Duration,
    /// Number of threads of the card that keep engines busy.
    pub workers: u64,
    /// Time of such a thread between two transfers.
    pub pause: Duration,
}

impl AccessSpec {
    /// Returns an access without any cost in the card, by 64 threads. The timestamps have steps of 1 ps.
    pub fn free() -> AccessSpec {
        let zero = Duration::ZERO;
        AccessSpec {
            clock: Frequency::from_hz(1_000_000_000_000),
            step: 1,
            issue: zero,
            finish: zero,
            pull: zero,
            gap: Gap::ZERO,
            most: 64,
            engines: EnginesSpec {
                count: 64,
                descriptor: 0,
                read: zero,
                write: zero,
                setup: zero,
                read_move: zero,
                write_move: zero,
                line: 64,
                word: 1,
                write_line: 64,
                write_gap: zero,
                transaction: 4096,
                turn: zero,
                workers: 64,
                pause: zero,
            },
        }
    }
}

impl EnginesSpec {
    /// Returns the moves of a read of `bytes` bytes to `address` of the card's memory: the offsets in the transfer at
    /// which they end. A move has whole words of one line, or a part of one word.
    pub fn read_moves(&self, address: u64, bytes: u64) -> impl Iterator<Item = u64> + use<> {
        let EnginesSpec { line, word, .. } = *self;
        let end = address + bytes;
        let mut at = address;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let words = (end / word * word).min((at / line + 1) * line);
            at =
                if at.is_multiple_of(word) && words > at { words } else { ((at / word + 1) * word).min(end) };
            Some(at - address)
        })
    }

    /// Returns the moves of a write of `bytes` bytes from `address` of the card's memory: the offsets in the transfer at
    /// which they end. A move has all bytes of one line.
    pub fn write_moves(&self, address: u64, bytes: u64) -> impl Iterator<Item = u64> + use<> {
        let (line, end) = (self.write_line, address + bytes);
        let mut at = address;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            at = ((at / line + 1) * line).min(end);
            Some(at - address)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(address: u64, bytes: u64) -> Vec<u64> {
        EnginesSpec { word: 8, ..AccessSpec::free().engines }.read_moves(address, bytes).collect()
    }

    #[test]
    fn moves_by_hand() {
        assert_eq!(ends(0, 64), [64]);
        assert_eq!(ends(0, 8), [8]);
        assert_eq!(ends(0, 4), [4]);
        assert_eq!(ends(0, 63), [56, 63]);
        assert_eq!(ends(0, 65), [64, 65]);
        assert_eq!(ends(0, 127), [64, 120, 127]);
        assert_eq!(ends(0, 129), [64, 128, 129]);
        assert_eq!(ends(8, 64), [56, 64]);
        assert_eq!(ends(3, 64), [5, 61, 64]);
        assert_eq!(ends(3, 2), [2]);
        assert_eq!(ends(0, 0), [0; 0]);
    }

    #[test]
    fn a_write_moves_what_a_line_has_by_hand() {
        let engines = EnginesSpec { write_line: 128, ..AccessSpec::free().engines };
        let ends = |address, bytes| engines.write_moves(address, bytes).collect::<Vec<_>>();
        assert_eq!(ends(0, 128), [128]);
        assert_eq!(ends(0, 63), [63]);
        assert_eq!(ends(0, 129), [128, 129]);
        assert_eq!(ends(63, 64), [64]);
        assert_eq!(ends(65, 64), [63, 64]);
        assert_eq!(ends(100, 300), [28, 156, 284, 300]);
        assert_eq!(ends(0, 0), [0; 0]);
    }

    proptest! {
        #[test]
        fn a_move_is_words_of_a_line_or_a_part_of_a_word(address in 0u64..200, bytes in 0u64..5000) {
            let mut begin = address;
            for end in ends(address, bytes) {
                let end = address + end;
                prop_assert!(begin < end && end <= address + bytes);
                let whole = begin % 8 == 0 && end % 8 == 0;
                let unit = if whole { 64 } else { 8 };
                prop_assert_eq!(begin / unit, (end - 1) / unit);
                begin = end;
            }
            prop_assert_eq!(begin, address + bytes);
        }
    }
}
