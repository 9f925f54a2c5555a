//! Data caches before levels of memory: the time of an access to a cached level, and the use of the caches.
//!
//! An access looks up its lines in the cycle in which its core makes it. Its requests to memory leave in the same
//! cycle. So banks see accesses in the order of cycles, cached or not.

use crate::memory::outer::OuterCaches;
use crate::memory::reach::{PROGRAM_BITS, Reach};
use crate::memory::waits::{WaitingLine, Waits};
use crate::running::Turn;
use crate::spec::{DataCacheSpec, HpuSpec, Level, Piece};
use nicety_hpu::profile::Cause;
use nicety_hpu::{AccessKind, DataCaches, Found, Writes};

/// The use of the data caches before a level in a whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheUse {
    /// The level's name in specs.
    pub level: &'static str,
    /// The counters.
    pub counters: CacheCounts,
    /// The first few source lines with the longest waits for their bytes, or for other caches.
    pub lines: Vec<WaitingLine>,
    /// The first few source lines with stale accesses, with their numbers.
    pub stale_lines: Vec<(String, u64)>,
}

/// Counters of data caches. An access to two lines is a hit if both are present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Accesses by instructions and commands: hits, misses and those that passed.
    pub accesses: u64,
    /// Loads and stores that hit.
    pub hits: u64,
    /// Loads and stores that missed.
    pub misses: u64,
    /// Atomic operations, including LR, which pass the caches.
    pub passed: u64,
    /// Lines written to memory, to make room or for an atomic operation.
    pub written_back: u64,
    /// Lines that another cache had changed and handed over.
    pub handed_over: u64,
    /// Accesses for which other caches gave up their lines.
    pub invalidated: u64,
    /// Accesses to words with older bytes on a real card, where no protocol keeps caches coherent.
    pub stale: u64,
    /// Cycles of loads and stores beyond those of hits, and waits of atomic operations for other caches.
    pub waited: u64,
}

/// The memories behind caches.
pub(super) trait Behind {
    /// Serves an access of a handler at this time in memory itself. Returns its cycles.
    fn access_memory(&self, turn: &mut Turn<'_>, at: &Reach<'_>, bytes: u32, kind: AccessKind) -> u64;

    /// Fetches the line at an offset for a handler at this time. Returns the cycles of the fetch.
    fn fetch_line(&self, turn: &mut Turn<'_>, at: &Reach<'_>, offset: u64, line: u32) -> u64;

    /// Writes the line at an offset back to a memory of a level.
    fn write_line(&self, cycle: u64, of: (Level, usize), offset: u64, line: u32);
}

/// The data caches of a card's cores.
pub(crate) struct Cached {
    spec: DataCacheSpec,
    caches: DataCaches,
    /// Cores per cache.
    cores: usize,
    /// Cycles of a line fetch without waits, by level, for levels behind caches.
    fills: [Option<u64>; 5],
    counters: [CacheCounts; 5],
    /// The caches of all cores behind these, and the levels behind them.
    outer: OuterCaches,
    has_outer: [bool; 5],
    waits: Waits,
    stale: Waits,
}

/// Line numbers: the place of a byte across all levels. Programs, read as data, do not overlap other memory of the
/// level.
mod place {
    use super::{Level, PROGRAM_BITS, Reach};

    /// Number of places of a program.
    pub(super) const PROGRAM: u64 = 1 << PROGRAM_BITS;

    const MEMORY: u32 = 44;
    const LEVEL: u32 = 56;
    const CONSTANTS: u32 = 60;

    /// Returns the place of the first byte of a memory of a level.
    pub(super) fn base(at: &Reach<'_>, program: Option<u32>) -> u64 {
        let base = ((at.level as u64) << LEVEL) | ((at.memory as u64) << MEMORY);
        match program {
            Some(number) => base | (1 << CONSTANTS) | (u64::from(number) * PROGRAM),
            None => base,
        }
    }

    /// Returns level, memory and offset of a byte.
    pub(super) fn of(address: u64) -> (Level, usize, u64) {
        let level = Level::ALL[(address >> LEVEL) as usize % 8];
        let memory = (address >> MEMORY) as usize % (1 << (LEVEL - MEMORY));
        (level, memory, address % (1 << MEMORY))
    }
}

impl Cached {
    /// Returns the empty caches of a card, if it has any.
    pub fn new(hpu: &HpuSpec) -> Option<Cached> {
        let spec = hpu.memories.cache?;
        let cores = if spec.of_core { 1 } else { hpu.memories.cluster };
        let fill = |level| {
            let level = hpu.memories.level(level).filter(|level| level.cached)?;
            Some(level.banks.line(spec.shape.line))
        };
        Some(Cached {
            spec,
            caches: DataCaches::new(hpu.cores / cores, spec.shape, spec.writes, spec.coherence),
            cores,
            fills: Level::ALL.map(fill),
            counters: Default::default(),
            outer: OuterCaches::new(&spec.outer),
            has_outer: Level::ALL.map(|level| hpu.memories.level(level).is_some_and(|level| level.outer)),
            waits: Waits::default(),
            stale: Waits::default(),
        })
    }

    /// Returns the bytes of an access as places across all levels, one item per line.
    fn lines(&self, turn: &Turn<'_>, at: &Reach<'_>, bytes: u64) -> impl Iterator<Item = (u64, u32)> + use<> {
        let line = u64::from(self.spec.shape.line);
        let program = (at.piece == Piece::Constants).then_some(turn.attachment.program.number);
        let (first, end) = (at.offset, at.offset + bytes);
        let base = place::base(at, program);
        (first / line..end.div_ceil(line)).map(move |number| {
            let from = first.max(number * line);
            (base + from, (end.min((number + 1) * line) - from) as u32)
        })
    }

    /// Serves an access of a core in its turn to a cached level. Returns its cycles.
    pub(super) fn access(
        &mut self,
        memory: &impl Behind,
        turn: &mut Turn<'_>,
        at: &Reach<'_>,
        bytes: u32,
        kind: AccessKind,
        passes: bool,
    ) -> u64 {
        self.counters[at.level as usize].accesses += 1;
        if passes {
            return self.pass(memory, turn, at, bytes, kind);
        }
        let cycle = turn.cycle;
        let cache = turn.core / self.cores;
        let stores = kind == AccessKind::Store;
        let through = stores && self.spec.writes == Writes::Through;
        let hit_cycles = u64::from(self.spec.latency(kind));
        let (mut hits, mut stale, mut invalidated, mut ready) = (true, false, false, cycle);
        for (place, part) in self.lines(turn, at, bytes.into()) {
            let number = place / u64::from(self.spec.shape.line);
            let found = match stores {
                true => self.caches.store(cache, number),
                false => self.caches.load(cache, number),
            };
            let line_ready = match found {
                Found::Hit { ready, taken } => {
                    invalidated |= taken;
                    // Another core is already fetching it.
                    if through { cycle } else { ready }
                }
                Found::Owner { ready } => {
                    hits = false;
                    self.counters[at.level as usize].handed_over += 1;
                    let ready = cycle.max(ready) + u64::from(self.spec.transfer);
                    self.fill(memory, cycle, cache, number, ready, stores);
                    ready
                }
                Found::Memory { taken } => {
                    hits = false;
                    invalidated |= taken;
                    if through {
                        cycle
                    } else {
                        let ready = cycle + self.fetch(memory, turn, at, place);
                        self.fill(memory, cycle, cache, number, ready, stores);
                        ready
                    }
                }
            };
            ready = ready.max(line_ready);
            stale |= self.sees_stale(cache, at.piece, place, part, stores, through);
        }
        let waited = ready - cycle + if invalidated { u64::from(self.spec.invalidate) } else { 0 };
        turn.causes.clear();
        let own = match through {
            // The store itself, in memory.
            true => hit_cycles.max(memory.access_memory(turn, at, bytes, kind)),
            false => hit_cycles,
        };
        let known: u64 = turn.causes.iter().map(|(_, cycles)| cycles).sum();
        // The first cause of a store in memory is the memory's latency already.
        match turn.causes.first_mut() {
            Some((_, latency)) => *latency += own - known,
            None => turn.causes.push((at.cause(kind), own)),
        }
        turn.causes.push((Cause::Cache, waited));
        self.count(turn, at.level, hits, invalidated, waited);
        self.count_stale(turn, at.level, stale);
        own + waited
    }

    /// Carries out an atomic operation at memory. Lines with its bytes leave the caches.
    fn pass(
        &mut self,
        memory: &impl Behind,
        turn: &mut Turn<'_>,
        at: &Reach<'_>,
        bytes: u32,
        kind: AccessKind,
    ) -> u64 {
        let (cycle, cache) = (turn.cycle, turn.core / self.cores);
        let (mut invalidated, mut stale) = (false, false);
        for (place, part) in self.lines(turn, at, bytes.into()) {
            let number = place / u64::from(self.spec.shape.line);
            let passed = self.caches.pass(cache, number);
            invalidated |= passed.taken;
            if passed.written_back {
                self.write(memory, cycle, number);
            }
            if self.differ(at.piece) {
                stale |= self.caches.is_stale(cache, place, part);
                if kind == AccessKind::Atomic {
                    self.caches.stored_in_memory(place, part);
                }
            }
        }
        let counters = &mut self.counters[at.level as usize];
        counters.passed += 1;
        counters.invalidated += u64::from(invalidated);
        self.count_stale(turn, at.level, stale);
        let price = if invalidated { u64::from(self.spec.invalidate) } else { 0 };
        self.count_wait(turn, at.level, price);
        let cycles = memory.access_memory(turn, at, bytes, kind);
        turn.causes.push((Cause::Cache, price));
        cycles + price
    }

    /// Fetches the line of a byte. Returns the cycles until its arrival.
    fn fetch(&mut self, memory: &impl Behind, turn: &mut Turn<'_>, at: &Reach<'_>, place: u64) -> u64 {
        if !at.spec.outer {
            return self.fetch_from_memory(memory, turn, at, place);
        }
        let (cycle, number) = (turn.cycle, place / u64::from(self.spec.shape.line));
        let (mut outer, mut evicted) = (std::mem::take(&mut self.outer), Vec::new());
        let from_memory = || self.fetch_from_memory(memory, turn, at, place);
        let cycles = outer.fetch(number, cycle, from_memory, &mut evicted);
        self.outer = outer;
        evicted.into_iter().for_each(|goes| self.write_to_memory(memory, cycle, goes));
        cycles
    }

    /// Fetches the line of a byte from memory. Returns the cycles until its arrival.
    fn fetch_from_memory(
        &self,
        memory: &impl Behind,
        turn: &mut Turn<'_>,
        at: &Reach<'_>,
        place: u64,
    ) -> u64 {
        let line = self.spec.shape.line;
        match at.spec.contended {
            true => {
                // The requested part of it is in this line of the memory too.
                let (.., offset) = place::of(place);
                let within = if at.piece == Piece::Constants { offset % place::PROGRAM } else { offset };
                memory.fetch_line(turn, at, within & !u64::from(line - 1), line)
            }
            false => self.fills[at.level as usize].expect("the level is cached") + at.farther(),
        }
    }

    /// Inserts a line, and writes back an evicted one.
    fn fill(
        &mut self,
        memory: &impl Behind,
        cycle: u64,
        cache: usize,
        number: u64,
        ready: u64,
        stores: bool,
    ) {
        if let Some(goes) = self.caches.fill(cache, number, ready, stores) {
            self.write(memory, cycle, goes);
        }
    }

    /// Writes a line to the caches of all cores, or to memory.
    fn write(&mut self, memory: &impl Behind, cycle: u64, number: u64) {
        let (level, ..) = place::of(number * u64::from(self.spec.shape.line));
        if !self.has_outer[level as usize] {
            return self.write_to_memory(memory, cycle, number);
        }
        let mut evicted = Vec::new();
        self.outer.write(0, number, cycle, &mut evicted);
        evicted.into_iter().for_each(|goes| self.write_to_memory(memory, cycle, goes));
    }

    /// Writes a line to memory.
    fn write_to_memory(&mut self, memory: &impl Behind, cycle: u64, number: u64) {
        let line = self.spec.shape.line;
        let (level, number, offset) = place::of(number * u64::from(line));
        self.counters[level as usize].written_back += 1;
        memory.write_line(cycle, (level, number), offset, line);
    }

    /// Returns whether caches may differ in a piece. Other pieces are private to a core, or never written.
    const fn differ(&self, piece: Piece) -> bool {
        self.caches.may_differ() && matches!(piece, Piece::State | Piece::Data)
    }

    fn sees_stale(
        &mut self,
        cache: usize,
        piece: Piece,
        place: u64,
        bytes: u32,
        stores: bool,
        through: bool,
    ) -> bool {
        if !self.differ(piece) {
            return false;
        }
        // A write-through store is the last one in memory, whatever was there before.
        let stale = !through && self.caches.is_stale(cache, place, bytes);
        if stores {
            self.caches.stored(cache, place, bytes);
        }
        stale
    }

    pub fn count(&mut self, turn: &Turn<'_>, level: Level, hits: bool, invalidated: bool, waited: u64) {
        let counters = &mut self.counters[level as usize];
        counters.hits += u64::from(hits);
        counters.misses += u64::from(!hits);
        counters.invalidated += u64::from(invalidated);
        turn.application().count(|statistics| {
            statistics.cache_hits += u64::from(hits);
            statistics.cache_misses += u64::from(!hits);
        });
        self.count_wait(turn, level, waited);
    }

    fn count_wait(&mut self, turn: &Turn<'_>, level: Level, cycles: u64) {
        if cycles > 0 {
            self.counters[level as usize].waited += cycles;
            self.waits.count(turn, level, cycles);
            turn.application().count(|statistics| statistics.cache_waits += cycles);
        }
    }

    fn count_stale(&mut self, turn: &Turn<'_>, level: Level, stale: bool) {
        if stale {
            self.counters[level as usize].stale += 1;
            self.stale.count(turn, level, 0);
        }
    }

    /// Drops bytes from the caches that the card has written and that only one core uses. The caches of all cores may
    /// take them.
    pub(super) fn forget(&mut self, memory: &impl Behind, turn: &Turn<'_>, at: &Reach<'_>, bytes: u64) {
        let mut evicted = Vec::new();
        for (place, _) in self.lines(turn, at, bytes) {
            let (cache, number) = (turn.core / self.cores, place / u64::from(self.spec.shape.line));
            self.caches.drop_line(cache, number);
            if at.spec.outer {
                self.outer.deposit(number, turn.cycle, &mut evicted);
            }
        }
        evicted.into_iter().for_each(|goes| self.write_to_memory(memory, turn.cycle, goes));
    }

    /// Returns the use of the caches, by level.
    pub(super) fn list(&self) -> Vec<CacheUse> {
        let used = Level::ALL.into_iter().filter(|level| self.counters[*level as usize].accesses > 0);
        let of = |level: Level| CacheUse {
            level: level.name(),
            counters: self.counters[level as usize],
            lines: self.waits.lines(level),
            stale_lines: self.stale.lines(level).into_iter().map(|line| (line.place, line.waits)).collect(),
        };
        used.map(of).collect()
    }
}
