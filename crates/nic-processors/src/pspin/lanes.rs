//! Channels that move one beat a cycle, and the few transactions that an engine may have in flight.

use std::cell::RefCell;
use std::collections::VecDeque;

/// A channel that moves one beat a cycle: the occupied cycles, one bit each.
#[derive(Debug, Default)]
pub(crate) struct Lane(RefCell<Bits>);

#[derive(Debug, Default)]
struct Bits {
    /// The index of the first word.
    first: u64,
    words: VecDeque<u64>,
    /// Number of cycles taken in all.
    taken: u64,
}

/// Words before the present that are kept, because accesses may still read them.
const KEPT: u64 = 4;

impl Lane {
    /// Returns whether a cycle is taken.
    pub(crate) fn is_taken(&self, cycle: u64) -> bool {
        let bits = self.0.borrow();
        let word = (cycle / 64).checked_sub(bits.first).and_then(|word| bits.words.get(word as usize));
        word.is_some_and(|word| word >> (cycle % 64) & 1 == 1)
    }

    /// Takes a cycle.
    pub fn take(&self, cycle: u64) {
        let mut bits = self.0.borrow_mut();
        *bits.word(cycle) |= 1 << (cycle % 64);
        bits.taken += 1;
    }

    /// Forgets cycles long before `now`. No beat is put there any more.
    pub(crate) fn forget_before(&self, now: u64) {
        let mut bits = self.0.borrow_mut();
        while bits.first + KEPT < now / 64 && bits.words.pop_front().is_some() {
            bits.first += 1;
        }
    }

    /// Returns the number of cycles taken in all.
    pub fn busy(&self) -> u64 {
        self.0.borrow().taken
    }

    /// Takes cycles for beats, each the first free one after the one before. Returns the last. None without beats.
    pub(crate) fn move_beats(&self, from: u64, beats: u64) -> Option<u64> {
        let mut bits = self.0.borrow_mut();
        let (mut next, mut rest) = (from, beats);
        while rest > 0 {
            let word = bits.word(next);
            let taken = *word >> (next % 64);
            // A run of taken cycles, and the free ones behind it, up to the end of the word.
            let in_word = 64 - next % 64;
            let busy = u64::from(taken.trailing_ones());
            if busy >= in_word {
                next += in_word;
                continue;
            }
            let free = u64::from((taken >> busy).trailing_zeros()).min(in_word - busy).min(rest);
            next += busy;
            *word |= (u64::MAX >> (64 - free)) << (next % 64);
            (next, rest) = (next + free, rest - free);
        }
        bits.taken += beats;
        (beats > 0).then(|| next - 1)
    }
}

impl Bits {
    /// The word of a cycle.
    fn word(&mut self, cycle: u64) -> &mut u64 {
        let index = cycle / 64;
        if self.words.is_empty() {
            self.first = index;
        }
        while self.first > index {
            self.words.push_front(0);
            self.first -= 1;
        }
        let word = (index - self.first) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        &mut self.words[word]
    }
}

/// The target memory of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A cluster's L1.
    Cluster(usize),
    /// Packets in L2.
    Packets,
    /// Handler memory in L2.
    Handlers,
}

/// The transactions of one AXI identifier: those of an engine's reads, or of its writes.
#[derive(Debug)]
pub(crate) struct Transactions {
    /// Most transactions in flight.
    most: usize,
    turn: u64,
    /// The latest transactions, at most as many as may be in flight: the target and the last beat of each.
    latest: VecDeque<(Target, u64)>,
}

impl Transactions {
    pub fn new(most: u32, turn: u64) -> Transactions {
        Transactions { most: most as usize, turn, latest: VecDeque::new() }
    }

    /// Returns the first cycle, no earlier than `from`, for a beat of the next transaction, which goes to `target`. A
    /// transaction waits until fewer than the maximum are in flight. It also waits for the end of the previous one if
    /// that goes to another target.
    pub fn next(&self, from: u64, target: Target) -> u64 {
        let Some(&(before, last)) = self.latest.back() else { return from };
        let behind = if before == target { last + 1 } else { last + self.turn };
        let room = match self.latest.len() < self.most {
            true => 0,
            false => self.latest[0].1 + self.turn,
        };
        from.max(behind).max(room)
    }

    /// Records the cycle of a transaction's last beat.
    pub fn ends(&mut self, target: Target, last: u64) {
        if self.latest.len() == self.most {
            self.latest.pop_front();
        }
        self.latest.push_back((target, last));
    }
}

/// Returns the pieces of a transfer of `bytes` bytes between two addresses. A piece ends where either address is a
/// multiple of `burst`.
pub fn bursts(from: u64, to: u64, bytes: u64, burst: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let room = |address: u64| burst - address.wrapping_add(done) % burst;
        let piece = (bytes - done).min(room(from)).min(room(to));
        let begin = done;
        done += piece;
        (piece > 0).then_some((begin, piece))
    })
}

/// Returns the number of beats that hold `bytes` bytes at `address`.
pub const fn beats_at(address: u64, bytes: u64, beat: u64) -> u64 {
    if bytes == 0 { 0 } else { (address % beat + bytes).div_ceil(beat) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_lane_moves_a_beat_a_cycle_and_fills_its_gaps() {
        let lane = Lane::default();
        assert_eq!(lane.move_beats(10, 0), None);
        assert_eq!(lane.move_beats(100, 3), Some(102));
        assert_eq!(lane.move_beats(101, 2), Some(104), "100 to 102 are taken");
        assert_eq!(lane.busy(), 5);
        let lane = Lane::default();
        lane.take(64);
        lane.take(66);
        assert_eq!(lane.move_beats(64, 2), Some(67), "65 and 67");
        lane.forget_before(64 * 6);
        assert!(!lane.is_taken(64));
    }

    #[test]
    fn a_transaction_waits_for_another_memory_and_for_one_of_two_places() {
        let mut reads = Transactions::new(2, 2);
        assert_eq!(reads.next(10, Target::Cluster(0)), 10);
        reads.ends(Target::Cluster(0), 10);
        // A second single beat from the same cluster is in the next cycle, and so is a third.
        assert_eq!(reads.next(10, Target::Cluster(0)), 11);
        reads.ends(Target::Cluster(0), 11);
        assert_eq!(reads.next(10, Target::Cluster(0)), 12, "the first has ended at 10 + 2");
        // One from another cluster waits for the last: one in two cycles.
        assert_eq!(reads.next(10, Target::Cluster(1)), 13);
        reads.ends(Target::Cluster(1), 13);
        assert_eq!(reads.next(10, Target::Handlers), 15);
        // One transaction at a time.
        let mut one = Transactions::new(1, 3);
        one.ends(Target::Packets, 20);
        assert_eq!(one.next(0, Target::Packets), 23);
    }

    #[test]
    fn bursts_end_at_boundaries_of_both_addresses() {
        let all: Vec<_> = bursts(4096 - 64, 4096 - 192, 8192, 4096).collect();
        assert_eq!(all, [(0, 64), (64, 128), (192, 3968), (4160, 128), (4288, 3904)]);
        assert_eq!(bursts(0, 0, 0, 4096).next(), None);
        assert_eq!(
            [beats_at(0, 0, 64), beats_at(60, 4, 64), beats_at(60, 5, 64), beats_at(1, 128, 64)],
            [0, 1, 2, 3]
        );
    }

    proptest! {
        /// Streams never share a cycle, and each takes the first free cycles.
        #[test]
        fn lanes_are_never_taken_twice(streams in prop::collection::vec((0u64..300, 0u64..200), 1..30)) {
            let lane = Lane::default();
            let mut taken = std::collections::BTreeSet::new();
            for (from, beats) in streams {
                let mut next = from;
                for _ in 0..beats {
                    next = (next..).find(|cycle| !taken.contains(cycle)).unwrap();
                    taken.insert(next);
                    next += 1;
                }
                prop_assert_eq!(lane.move_beats(from, beats), (beats > 0).then(|| next - 1));
                prop_assert!(taken.iter().all(|&cycle| lane.is_taken(cycle)));
                prop_assert_eq!(lane.busy(), taken.len() as u64);
            }
        }

        /// Pieces make up the transfer, and none crosses a boundary.
        #[test]
        fn bursts_make_up_the_transfer(from in 0u64..20_000, to in 0u64..20_000, bytes in 0u64..30_000) {
            let mut next = 0;
            for (begin, piece) in bursts(from, to, bytes, 4096) {
                prop_assert_eq!(begin, next);
                for address in [from, to] {
                    prop_assert_eq!((address + begin) / 4096, (address + begin + piece - 1) / 4096);
                }
                next += piece;
            }
            prop_assert_eq!(next, bytes);
        }
    }
}
