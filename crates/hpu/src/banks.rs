//! A level of memory that cores share: banks, each with a queue that it serves in the order in which accesses come.
//!
//! Whoever drives the cores hands accesses over in the order of their cycles. A bank is busy for its occupancy with
//! each; what comes meanwhile waits, and its core with it, unless it is a store for which the bank's queue has room.

use std::collections::VecDeque;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A load, or LR.
    Load,
    /// A store.
    Store,
    /// A read-modify-write: an AMO or SC, or a command that is one.
    Atomic,
}

/// The place where a read-modify-write is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicsAt {
    /// At the core: a load, and a store behind it. The bank is held from the one to the other.
    Core,
    /// At the bank, which it occupies for as long as it takes.
    Bank,
    /// In one unit of the whole level, which serves one at a time; when it leaves that, it is an access to its bank, which keeps
    /// itself free for it.
    Memory,
}

/// Banks and their timing, in cycles of the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankTiming {
    /// Number of banks.
    pub banks: u32,
    /// Consecutive bytes in one bank; the next ones are in the next bank.
    pub interleave: u32,
    /// Bytes that a bank moves in one occupancy. A longer access takes several.
    pub width: u32,
    /// Cycles of a load that waits for nothing.
    pub load: u32,
    /// Cycles of a store.
    pub store: u32,
    /// Cycles of an atomic operation.
    pub atomic: u32,
    /// Cycles for which an access occupies its bank.
    pub occupancy: u32,
    /// Where atomic operations are computed.
    pub atomics: AtomicsAt,
    /// Cycles for which an atomic operation occupies its bank, or the level's unit. At the core, from its load until its store has
    /// been served.
    pub atomic_occupancy: u32,
    /// Stores that wait at a bank while their cores go on.
    pub queue: u32,
}

impl BankTiming {
    /// One bank of words with these cycles of a load, a store and an atomic operation, occupied for one cycle by each.
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

    /// Cycles of fetching an aligned line that waits for nothing.
    pub fn line(&self, bytes: u32) -> u64 {
        Banks::new(*self).fetch_line(0, 0, bytes).cycles
    }

    /// Cycles of an access that waits for nothing.
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
    /// Cycles that cores waited for it, beside the latency. Of several banks of an access the last one counts.
    pub waited: u64,
}

/// How an access is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Cycles until its core goes on, waits included.
    pub cycles: u64,
    /// The part of them that is waiting.
    pub waited: u64,
}

#[derive(Clone, Debug, Default)]
struct Bank {
    /// The cycle at which it is free.
    free: u64,
    /// When it will be occupied by operations that are at the level's unit now, or wait there: from and until, in order.
    kept: VecDeque<(u64, u64)>,
    /// When the stores begin that their cores have left to it.
    stores: VecDeque<u64>,
    counters: BankCounters,
}

/// The banks of one memory.
#[derive(Clone, Debug)]
pub struct Banks {
    timing: BankTiming,
    /// Bits of an offset in its bank's row, and of a row that say its bank, where these are powers of two: dividing would be a
    /// good part of what an access takes here.
    row_bits: Option<u32>,
    bank_mask: Option<u64>,
    banks: Box<[Bank]>,
    /// The unit for atomic operations, where the level has one: when it is free, and its counters.
    unit: Bank,
}

impl Banks {
    /// Idle banks.
    ///
    /// # Panics
    /// When banks, interleaving, width or occupancy are zero.
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

    /// The row of a byte: rows are in banks in turn.
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

    /// An access to `bytes` bytes at `offset` that its core comes to at `cycle`. Where they lie in several banks, all
    /// of these are accessed, and the last one ends it.
    pub fn access(&mut self, cycle: u64, offset: u64, bytes: u32, kind: AccessKind) -> Served {
        let timing = self.timing;
        let latency = u64::from(timing.latency(kind));
        // What it waits for the level's unit, and when it leaves that.
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
        // What an atomic operation waited for the level's unit is counted there.
        self.banks[last].counters.waited += longest.waited - unit.map_or(0, |(waited, _)| waited);
        longest
    }

    /// A cache fetches a line, from `offset` on: each bank moves its part in one go. The core that needs it comes at `cycle`,
    /// and goes on when the whole line is there.
    pub fn fetch_line(&mut self, cycle: u64, offset: u64, bytes: u32) -> Served {
        let (served, last) = self.move_line(cycle, offset, bytes);
        self.banks[last].counters.waited += served.waited;
        Served { cycles: served.cycles + u64::from(self.timing.load), ..served }
    }

    /// A cache writes a line, from `offset` on. No core waits for that.
    pub fn write_line(&mut self, cycle: u64, offset: u64, bytes: u32) {
        self.move_line(cycle, offset, bytes);
    }

    /// Moves a line. Returns the cycles until the last bank has begun with its last piece, and which one that is.
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
    /// Serves an access that comes at `cycle`. Returns when it begins.
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

    /// Keeps itself free for an access that comes later than now. Returns when it begins.
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

    /// The first cycle, at `start` or later, from which on it is not kept free for others for so long.
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

    /// A store that begins at `start` is left to the queue. Returns the cycles until there is room for it.
    fn leave(&mut self, cycle: u64, start: u64, room: usize) -> u64 {
        while self.stores.front().is_some_and(|&begins| begins <= cycle) {
            self.stores.pop_front();
        }
        self.stores.push_back(start);
        match self.stores.len().checked_sub(room + 1) {
            // The one that makes room begins.
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
        // Another bank, and a word of the same one when it is free again.
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
        // Nobody waits for a line that is written, but others wait for it.
        banks.write_line(102, 0, 16);
        assert_eq!(banks.access(103, 0, 4, AccessKind::Load), Served { cycles: 5 + 7, waited: 7 });
        let all: Vec<_> = banks.counters().collect();
        assert_eq!(all[0], BankCounters { accesses: 4, busy: 4 + 4 + 2 + 2, waited: 3 + 7 });
        assert_eq!(all[1], BankCounters { accesses: 3, busy: 4 + 4 + 2, waited: 0 });
        // A bank of 8 bytes an occupancy, in rows of 16.
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
        // They leave the unit at 6, 12 and so on up to 60, and the bank is occupied for two cycles by each: one load has room
        // before 6, one of two cycles from 5 on has not and begins at 8, and one at 10.
        let load = |banks: &mut Banks, cycle| banks.access(cycle, 0, 4, AccessKind::Load).waited;
        assert_eq!([3, 3, 3].map(|cycle| load(&mut banks, cycle)), [0, 5, 7]);
        assert_eq!([61, 64].map(|cycle| load(&mut banks, cycle)), [1, 0]);
        // The unit is idle from 60 on; what leaves it at 76 waits for the one that comes to the bank before.
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
        // One begins at once, at 10 and at 20 begin the two that wait, and the fourth waits for the second to begin.
        let store = |banks: &mut Banks, cycle| banks.access(cycle, 0, 4, AccessKind::Store).waited;
        assert_eq!([0, 0, 0, 0].map(|cycle| store(&mut banks, cycle)), [0, 0, 0, 10]);
        // A load waits for all of them.
        assert_eq!(banks.access(10, 0, 4, AccessKind::Load).waited, 30);
        // At 30 the last store begins.
        assert_eq!(store(&mut banks, 30), 0);
    }
}
