//! A memory level that cores share: banks, each with a queue that is served in order of arrival.
//!
//! The driver of the cores issues accesses in the order of their cycles. Each access occupies its bank. Later accesses
//! wait meanwhile, and their cores with them. A store does not delay its core if the bank's queue has room for it.

use std::collections::VecDeque;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A load, or LR.
    Load,
    /// A store.
    Store,
    /// A read-modify-write: an AMO, an SC, or a command with the same effect.
    Atomic,
}

/// The place where a read-modify-write is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicsAt {
    /// At the core: a load, then a store. The bank is held from the load to the store.
    Core,
    /// At the bank, which it occupies for its duration.
    Bank,
    /// In one unit of the level, which serves one operation at a time. On leaving the unit, it accesses its bank, which
    /// is reserved for it.
    Memory,
}

/// Banks and their timing, in cycles of the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankTiming {
    /// Number of banks.
    pub banks: u32,
    /// Consecutive bytes in one bank, before the next bank.
    pub interleave: u32,
    /// Bytes that a bank moves per occupancy. A longer access takes several.
    pub width: u32,
    /// Cycles of a load without waits.
    pub load: u32,
    /// Cycles of a store.
    pub store: u32,
    /// Cycles of an atomic operation.
    pub atomic: u32,
    /// Cycles for which an access occupies its bank.
    pub occupancy: u32,
    /// The place where atomic operations are computed.
    pub atomics: AtomicsAt,
    /// Cycles for which an atomic operation occupies its bank, or the level's unit. If it is computed at the core: from
    /// its load until its store has been served.
    pub atomic_occupancy: u32,
    /// Number of stores that may wait at a bank without delaying their cores.
    pub queue: u32,
}

impl BankTiming {
    /// Returns one bank of words with these cycles for a load, a store and an atomic operation. Each occupies it for
    /// one cycle.
    pub const fn one_bank(load: u32, store: u32, atomic: u32) -> BankTiming {
        BankTiming {
            banks: 1,
            interleave: 4,
            width: 4,
            load,
            store,
            atomic,
            occupancy: 1,
            atomics: AtomicsAt::Bank,
            atomic_occupancy: 1,
            queue: 0,
        }
    }

    /// Cycles to fetch an aligned line without waits.
    pub fn line(&self, bytes: u32) -> u64 {
        Banks::new(*self).fetch_line(0, 0, bytes).cycles
    }

    /// Cycles of an access without waits.
    pub const fn latency(&self, kind: AccessKind) -> u32 {
        match kind {
            AccessKind::Load => self.load,
            AccessKind::Store => self.store,
            AccessKind::Atomic => self.atomic,
        }
    }
}

/// Counters of a bank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BankCounters {
    /// Accesses served.
    pub accesses: u64,
    /// Cycles in which it was occupied.
    pub busy: u64,
    /// Cycles for which cores waited for it, without the latency. If an access uses several banks, the last one counts.
    pub waited: u64,
}

/// The cost of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Cycles until its core continues, waits included.
    pub cycles: u64,
    /// The part of them that is waiting.
    pub waited: u64,
}

#[derive(Clone, Debug, Default)]
struct Bank {
    /// The cycle from which it is free.
    free: u64,
    /// Reserved periods, start and end in order, for operations that are at the level's unit or wait there.
    kept: VecDeque<(u64, u64)>,
    /// Start cycles of the queued stores.
    stores: VecDeque<u64>,
    counters: BankCounters,
}

/// The banks of one memory.
#[derive(Clone, Debug)]
pub struct Banks {
    timing: BankTiming,
    /// log2 of the bytes per row and of the number of banks, if both are powers of two. A division would be much of the
    /// cost of an access here.
    row_bits: Option<u32>,
    bank_mask: Option<u64>,
    banks: Box<[Bank]>,
    /// The level's unit for atomic operations, if there is one: the cycle from which it is free, and its counters.
    unit: Bank,
}

impl Banks {
    /// Idle banks.
    ///
    /// # Panics
    /// If banks, interleaving, width or occupancy are zero.
    pub fn new(timing: BankTiming) -> Banks {
        let BankTiming { banks, interleave, width, occupancy, .. } = timing;
        assert!(banks > 0 && interleave > 0 && width > 0 && occupancy > 0, "{timing:?}");
        Banks {
            timing,
            row_bits: interleave.is_power_of_two().then(|| interleave.ilog2()),
            bank_mask: banks.is_power_of_two().then(|| u64::from(banks) - 1),
            banks: vec![Bank::default(); banks as usize].into(),
            unit: Bank::default(),
        }
    }

    /// Returns the row of a byte. Rows are in banks in turn.
    #[inline]
    fn row_of(&self, offset: u64) -> u64 {
        self.row_bits.map_or_else(|| offset / u64::from(self.timing.interleave), |bits| offset >> bits)
    }

    /// The bank of a row.
    #[inline]
    fn bank_of_row(&self, row: u64) -> usize {
        self.bank_mask.map_or_else(|| row % u64::from(self.timing.banks), |mask| row & mask) as usize
    }

    /// The bank of a byte.
    pub fn bank_of(&self, offset: u64) -> usize {
        self.bank_of_row(self.row_of(offset))
    }

    /// Accesses `bytes` bytes at `offset`. The core issues the access at `cycle`. If the bytes are in several banks,
    /// all are accessed, and the access ends with the last one.
    pub fn access(&mut self, cycle: u64, offset: u64, bytes: u32, kind: AccessKind) -> Served {
        let timing = self.timing;
        let latency = u64::from(timing.latency(kind));
        // The wait for the level's unit, and the departure from it.
        let mut unit = None;
        if kind == AccessKind::Atomic && timing.atomics == AtomicsAt::Memory {
            let occupied = u64::from(timing.atomic_occupancy);
            let begins = self.unit.serve(cycle, occupied);
            self.unit.counters.waited += begins - cycle;
            unit = Some((begins - cycle, begins + occupied));
        }
        let (mut longest, mut last) = (Served { cycles: 0, waited: 0 }, 0);
        let (mut at, end) = (offset, offset + u64::from(bytes.max(1)));
        let interleave = u64::from(timing.interleave);
        let mut row = self.row_of(at);
        while at < end {
            let next = end.min((row + 1) * interleave);
            let bank = self.bank_of_row(row);
            row += 1;
            let served = self.access_bank(bank, cycle, unit, (next - at) as u32, kind, latency);
            if served.cycles > longest.cycles {
                (longest, last) = (served, bank);
            }
            at = next;
        }
        // An atomic operation's wait for the level's unit is counted there.
        self.banks[last].counters.waited += longest.waited - unit.map_or(0, |(waited, _)| waited);
        longest
    }

    /// A cache fetches a line at `offset`. Each bank moves its part in one go. The core issues the access at `cycle`,
    /// and continues when the whole line has arrived.
    pub fn fetch_line(&mut self, cycle: u64, offset: u64, bytes: u32) -> Served {
        let (served, last) = self.move_line(cycle, offset, bytes);
        self.banks[last].counters.waited += served.waited;
        Served { cycles: served.cycles + u64::from(self.timing.load), ..served }
    }

    /// A cache writes a line at `offset`. No core waits for it.
    pub fn write_line(&mut self, cycle: u64, offset: u64, bytes: u32) {
        self.move_line(cycle, offset, bytes);
    }

    /// Moves a line. Returns the cycles until the last bank has started its last piece, and the number of that bank.
    fn move_line(&mut self, cycle: u64, offset: u64, bytes: u32) -> (Served, usize) {
        let BankTiming { interleave, width, occupancy, .. } = self.timing;
        let (interleave, banks, once) =
            (u64::from(interleave), self.banks.len() as u64, u64::from(occupancy));
        let end = offset + u64::from(bytes.max(1));
        let rows = offset / interleave..end.div_ceil(interleave);
        let (mut longest, mut last) = (Served { cycles: 0, waited: 0 }, (rows.start % banks) as usize);
        for first in rows.start..rows.end.min(rows.start + banks) {
            let parts = (first..rows.end).step_by(self.banks.len());
            let beats: u64 = parts
                .map(|row| end.min((row + 1) * interleave) - offset.max(row * interleave))
                .map(|part| part.div_ceil(width.into()))
                .sum();
            let bank = (first % banks) as usize;
            let waited = self.banks[bank].serve(cycle, once * beats) - cycle;
            let served = Served { cycles: waited + once * (beats - 1), waited };
            if served.cycles > longest.cycles {
                (longest, last) = (served, bank);
            }
        }
        (longest, last)
    }

    fn access_bank(
        &mut self,
        bank: usize,
        cycle: u64,
        unit: Option<(u64, u64)>,
        bytes: u32,
        kind: AccessKind,
        latency: u64,
    ) -> Served {
        let timing = self.timing;
        let beats = if bytes <= timing.width { 1 } else { u64::from(bytes.div_ceil(timing.width)) };
        let once = u64::from(timing.occupancy);
        let occupied = match (kind, timing.atomics) {
            (AccessKind::Atomic, AtomicsAt::Core) => u64::from(timing.atomic_occupancy) + once * (beats - 1),
            (AccessKind::Atomic, AtomicsAt::Bank) => u64::from(timing.atomic_occupancy) * beats,
            _ => once * beats,
        };
        let bank = &mut self.banks[bank];
        let mut waited = match unit {
            Some((waited, leaves)) => waited + bank.keep(cycle, leaves, occupied) - leaves,
            None => bank.serve(cycle, occupied) - cycle,
        };
        if kind == AccessKind::Store && timing.queue > 0 {
            waited = bank.leave(cycle, cycle + waited, timing.queue as usize);
        }
        Served { cycles: waited + latency + once * (beats - 1), waited }
    }

    /// The counters of each bank.
    pub fn counters(&self) -> impl ExactSizeIterator<Item = BankCounters> {
        self.banks.iter().map(|bank| bank.counters)
    }

    /// The counters of the level's unit for atomic operations.
    pub const fn unit(&self) -> BankCounters {
        self.unit.counters
    }
}

impl Bank {
    /// Serves an access that arrives at `cycle`. Returns its start.
    fn serve(&mut self, cycle: u64, occupied: u64) -> u64 {
        let mut start = cycle.max(self.free);
        if !self.kept.is_empty() {
            self.forget(cycle);
            start = self.room(start, occupied);
        }
        self.free = start + occupied;
        self.count(occupied);
        start
    }

    /// Reserves the bank for an access that arrives later than now. Returns its start.
    fn keep(&mut self, cycle: u64, comes: u64, occupied: u64) -> u64 {
        self.forget(cycle);
        let start = self.room(comes.max(self.free), occupied);
        let place = self.kept.partition_point(|&(from, _)| from < start);
        self.kept.insert(place, (start, start + occupied));
        self.count(occupied);
        start
    }

    fn forget(&mut self, cycle: u64) {
        while self.kept.front().is_some_and(|&(_, until)| until <= cycle) {
            self.kept.pop_front();
        }
    }

    /// Returns the first cycle, from `start` on, at which no reservation starts within the next `occupied` cycles.
    fn room(&self, start: u64, occupied: u64) -> u64 {
        self.kept.iter().fold(start, |start, &(from, until)| match start + occupied <= from {
            true => start,
            false => start.max(until),
        })
    }

    const fn count(&mut self, occupied: u64) {
        self.counters.accesses += 1;
        self.counters.busy += occupied;
    }

    /// Queues a store that begins at `start`. Returns the cycles until the queue has room for it.
    fn leave(&mut self, cycle: u64, start: u64, room: usize) -> u64 {
        while self.stores.front().is_some_and(|&begins| begins <= cycle) {
            self.stores.pop_front();
        }
        self.stores.push_back(start);
        match self.stores.len().checked_sub(room + 1) {
            // The store that makes room begins.
            Some(before) => self.stores[before] - cycle,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: BankTiming =
        BankTiming { banks: 4, occupancy: 2, atomic_occupancy: 6, ..BankTiming::one_bank(5, 3, 8) };

    fn cycles(banks: &mut Banks, cycle: u64, offset: u64, kind: AccessKind) -> u64 {
        banks.access(cycle, offset, 4, kind).cycles
    }

    #[test]
    fn one_of_two_cores_at_a_bank_waits_for_its_occupancy() {
        let mut banks = Banks::new(TIMING);
        assert_eq!(cycles(&mut banks, 100, 0, AccessKind::Load), 5);
        assert_eq!(banks.access(100, 16, 4, AccessKind::Load), Served { cycles: 7, waited: 2 });
        // Another bank, and a word of the same bank when that is free again.
        assert_eq!(cycles(&mut banks, 100, 4, AccessKind::Store), 3);
        assert_eq!(cycles(&mut banks, 104, 0, AccessKind::Store), 3);
        let all: Vec<_> = banks.counters().collect();
        assert_eq!(all[0], BankCounters { accesses: 3, busy: 6, waited: 2 });
        assert_eq!(all[1], BankCounters { accesses: 1, busy: 2, waited: 0 });
        assert_eq!(all[2..], [BankCounters::default(); 2]);
    }

    #[test]
    fn a_bank_moves_its_part_of_a_line_in_one_go() {
        // 32 bytes are two words of each of four banks.
        let mut banks = Banks::new(TIMING);
        assert_eq!(banks.fetch_line(100, 32, 32), Served { cycles: 5 + 2, waited: 0 });
        assert_eq!(banks.fetch_line(101, 64, 32), Served { cycles: 3 + 5 + 2, waited: 3 });
        // No core waits for a written line, but other accesses wait for it.
        banks.write_line(102, 0, 16);
        assert_eq!(banks.access(103, 0, 4, AccessKind::Load), Served { cycles: 5 + 7, waited: 7 });
        let all: Vec<_> = banks.counters().collect();
        assert_eq!(all[0], BankCounters { accesses: 4, busy: 4 + 4 + 2 + 2, waited: 3 + 7 });
        assert_eq!(all[1], BankCounters { accesses: 3, busy: 4 + 4 + 2, waited: 0 });
        // A bank of 8 bytes per occupancy, in rows of 16.
        let wide = BankTiming { banks: 2, interleave: 16, width: 8, ..TIMING };
        assert_eq!((wide.line(8), wide.line(16), wide.line(32), wide.line(64)), (5, 7, 7, 11));
    }

    #[test]
    fn interleaving_says_which_bank() {
        let banks = Banks::new(BankTiming { interleave: 64, ..TIMING });
        let found: Vec<_> = [0, 63, 64, 191, 192, 255, 256].map(|offset| banks.bank_of(offset)).into();
        assert_eq!(found, [0, 0, 1, 2, 3, 3, 0]);
    }

    #[test]
    fn a_wide_access_takes_several_occupancies_and_several_banks() {
        let mut banks = Banks::new(BankTiming { interleave: 8, width: 4, ..TIMING });
        // Bytes 4 to 19: half of bank 0, bank 1, half of bank 2. Bank 1 has two beats.
        assert_eq!(banks.access(0, 4, 16, AccessKind::Load), Served { cycles: 7, waited: 0 });
        let busy: Vec<_> = banks.counters().map(|bank| bank.busy).collect();
        assert_eq!(busy, [2, 4, 2, 0]);
        // A misaligned word waits for the bank that is free last.
        assert_eq!(banks.access(1, 6, 4, AccessKind::Store), Served { cycles: 6, waited: 3 });
    }

    #[test]
    fn atomics_are_at_the_core_the_bank_or_the_memory() {
        let two = |timing: BankTiming, second: u64| {
            let mut banks = Banks::new(timing);
            assert_eq!(cycles(&mut banks, 0, 0, AccessKind::Atomic), 8);
            cycles(&mut banks, 0, second, AccessKind::Atomic) - 8
        };
        // The bank is held from the load to the store, 5 + 2 cycles.
        let core = BankTiming { atomics: AtomicsAt::Core, atomic_occupancy: 5 + 2, ..TIMING };
        assert_eq!((two(core, 0), two(core, 4)), (7, 0));
        assert_eq!((two(TIMING, 0), two(TIMING, 4)), (6, 0));
        // One unit for all banks.
        let memory = BankTiming { atomics: AtomicsAt::Memory, ..TIMING };
        assert_eq!((two(memory, 0), two(memory, 4)), (6, 6));
        let mut banks = Banks::new(memory);
        banks.access(0, 0, 4, AccessKind::Atomic);
        banks.access(0, 4, 4, AccessKind::Atomic);
        assert_eq!(banks.unit(), BankCounters { accesses: 2, busy: 12, waited: 6 });
        assert!(banks.counters().all(|bank| bank.waited == 0));
        assert_eq!(banks.counters().map(|bank| bank.busy).sum::<u64>(), 4);
    }

    #[test]
    fn a_bank_is_idle_while_operations_wait_for_the_unit() {
        let mut banks = Banks::new(BankTiming { atomics: AtomicsAt::Memory, ..TIMING });
        for before in 0..10 {
            assert_eq!(banks.access(0, 0, 4, AccessKind::Atomic).waited, 6 * before);
        }
        // They leave the unit at 6, 12 and so on up to 60, and each occupies the bank for two cycles. One load has room
        // before 6. One of two cycles from 5 on has not and begins at 8, and one begins at 10.
        let load = |banks: &mut Banks, cycle| banks.access(cycle, 0, 4, AccessKind::Load).waited;
        assert_eq!([3, 3, 3].map(|cycle| load(&mut banks, cycle)), [0, 5, 7]);
        assert_eq!([61, 64].map(|cycle| load(&mut banks, cycle)), [1, 0]);
        // The unit is idle from 60 on. An operation that leaves it at 76 waits for the access that arrives at the bank
        // before.
        assert_eq!(banks.access(70, 0, 4, AccessKind::Atomic).waited, 0);
        assert_eq!(banks.access(70, 4, 4, AccessKind::Load).waited, 0);
        assert_eq!(load(&mut banks, 75), 3);
        let all: Vec<_> = banks.counters().collect();
        assert_eq!(all[0], BankCounters { accesses: 17, busy: 34, waited: 5 + 7 + 1 + 3 });
        assert_eq!(banks.unit(), BankCounters { accesses: 11, busy: 66, waited: 6 * 45 });
    }

    #[test]
    fn a_queue_hides_the_wait_of_a_store_while_it_has_room() {
        let mut banks = Banks::new(BankTiming { queue: 2, occupancy: 10, ..TIMING });
        // One begins at once. The two that wait begin at 10 and at 20, and the fourth waits for the second to begin.
        let store = |banks: &mut Banks, cycle| banks.access(cycle, 0, 4, AccessKind::Store).waited;
        assert_eq!([0, 0, 0, 0].map(|cycle| store(&mut banks, cycle)), [0, 0, 0, 10]);
        // A load waits for all of them.
        assert_eq!(banks.access(10, 0, 4, AccessKind::Load).waited, 30);
        // The last store begins at 30.
        assert_eq!(store(&mut banks, 30), 0);
    }
}
