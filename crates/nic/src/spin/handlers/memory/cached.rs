//! Data caches before levels of memory: what an access to a cached level takes, and what caches have done.
//!
//! An access looks for its lines in the cycle in which its core comes to it, and what it asks memory for leaves in the same
//! cycle. So banks meet accesses in the order of cycles, cached or not.

use crate::spin::handlers::memory::reach::{PROGRAM_BITS, Reach};
use crate::spin::handlers::memory::waits::{WaitingLine, Waits};
use crate::spin::handlers::running::Turn;
use crate::spin::spec::{DataCacheSpec, HpuSpec, Level, Piece};
use nicety_hpu::{AccessKind, DataCaches, Found, Writes};

/// What data caches have done before a level, in a whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheUse {
    /// The level, as specs name it.
    pub level: &'static str,
    /// The counters.
    pub counters: CacheCounts,
    /// The lines that waited most for their bytes, or for other caches; the first few.
    pub lines: Vec<WaitingLine>,
    /// The lines of stale accesses, with their numbers; the first few.
    pub stale_lines: Vec<(String, u64)>,
}

/// Counters of data caches. An access to two lines is a hit if both are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Accesses by instructions and commands: hits, misses and those that passed.
    pub accesses: u64,
    /// Loads and stores that found their lines.
    pub hits: u64,
    /// Loads and stores that did not.
    pub misses: u64,
    /// Atomic operations, LR among them, which go past the caches.
    pub passed: u64,
    /// Lines written to memory: they made room, or an atomic operation came.
    pub written_back: u64,
    /// Lines that another cache had changed, and handed over.
    pub handed_over: u64,
    /// Accesses for which other caches gave their lines up.
    pub invalidated: u64,
    /// Accesses to words of which the card would have older bytes, where nothing keeps caches coherent.
    pub stale: u64,
    /// Cycles that loads and stores took longer than hits: for their lines, and for other caches.
    pub waited: u64,
}

/// The memories behind caches.
pub(super) trait Behind {
    /// An access of a handler that comes now, in memory itself. Returns the cycles that it takes.
    fn access_memory(&self, turn: &mut Turn<'_>, at: &Reach<'_>, bytes: u32, kind: AccessKind) -> u64;

    /// A cache fetches the line at an offset, for a handler that comes now. Returns the cycles that this takes.
    fn fetch_line(&self, turn: &mut Turn<'_>, at: &Reach<'_>, offset: u64, line: u32) -> u64;

    /// A cache writes the line at an offset of a memory of a level.
    fn write_line(&self, cycle: u64, of: (Level, usize), offset: u64, line: u32);
}

/// The data caches of a card's cores.
pub(in crate::spin) struct Cached {
    spec: DataCacheSpec,
    caches: DataCaches,
    /// Cores of a cache.
    cores: usize,
    /// By level, those behind caches, what fetching a line takes where nobody waits.
    fills: [Option<u64>; 5],
    counters: [CacheCounts; 5],
    waits: Waits,
    stale: Waits,
}

/// Where a line is: its bytes' place in all levels. Programs, read as data, lie where no other memory of the level is.
mod place {
    use super::{Level, PROGRAM_BITS, Reach};

    /// Places for a program.
    pub(super) const PROGRAM: u64 = 1 << PROGRAM_BITS;

    const MEMORY: u32 = 44;
    const LEVEL: u32 = 56;
    const CONSTANTS: u32 = 60;

    /// The first byte of a memory of a level.
    pub(super) fn base(at: &Reach<'_>, program: Option<u32>) -> u64 {
        let base = ((at.level as u64) << LEVEL) | ((at.memory as u64) << MEMORY);
        match program {
            Some(number) => base | (1 << CONSTANTS) | (u64::from(number) * PROGRAM),
            None => base,
        }
    }

    /// Level, memory and offset of a byte.
    pub(super) fn of(address: u64) -> (Level, usize, u64) {
        let level = Level::ALL[(address >> LEVEL) as usize % 8];
        let memory = (address >> MEMORY) as usize % (1 << (LEVEL - MEMORY));
        (level, memory, address % (1 << MEMORY))
    }
}

impl Cached {
    /// The empty caches of a card, if it has any.
    pub(super) fn new(hpu: &HpuSpec) -> Option<Cached> {
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
            waits: Waits::default(),
            stale: Waits::default(),
        })
    }

    /// The bytes of an access as places in all levels, by line.
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

    /// An access of a core in its turn to a cached level. Returns the cycles that it takes.
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
                    // Another core has it fetched.
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
        let own = match through {
            // The store itself, in memory.
            true => hit_cycles.max(memory.access_memory(turn, at, bytes, kind)),
            false => hit_cycles,
        };
        self.count(turn, at.level, hits, invalidated, waited);
        self.count_stale(turn, at.level, stale);
        own + waited
    }

    /// An atomic operation, at memory: lines of its bytes leave the caches.
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
        memory.access_memory(turn, at, bytes, kind) + price
    }

    /// Fetches the line of a byte from memory. Returns the cycles until it is there.
    fn fetch(&self, memory: &impl Behind, turn: &mut Turn<'_>, at: &Reach<'_>, place: u64) -> u64 {
        let line = self.spec.shape.line;
        match at.spec.contended {
            true => {
                // The part of it that is asked for is in this line of the memory, too.
                let (.., offset) = place::of(place);
                let within = if at.piece == Piece::Constants { offset % place::PROGRAM } else { offset };
                memory.fetch_line(turn, at, within & !u64::from(line - 1), line)
            }
            false => self.fills[at.level as usize].expect("the level is cached") + at.farther(),
        }
    }

    /// A line comes, and another one may have to make room.
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

    /// A line is written to memory.
    fn write(&mut self, memory: &impl Behind, cycle: u64, number: u64) {
        let line = self.spec.shape.line;
        let (level, number, offset) = place::of(number * u64::from(line));
        self.counters[level as usize].written_back += 1;
        memory.write_line(cycle, (level, number), offset, line);
    }

    /// Whether caches may differ in a piece: the others are of one core alone, or never written.
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
        // A store that goes through to memory is the last one there, whatever was there before.
        let stale = !through && self.caches.is_stale(cache, place, bytes);
        if stores {
            self.caches.stored(cache, place, bytes);
        }
        stale
    }

    fn count(&mut self, turn: &Turn<'_>, level: Level, hits: bool, invalidated: bool, waited: u64) {
        let counters = &mut self.counters[level as usize];
        counters.hits += u64::from(hits);
        counters.misses += u64::from(!hits);
        counters.invalidated += u64::from(invalidated);
        counters.waited += waited;
        if waited > 0 {
            self.waits.count(turn, level, waited);
        }
        turn.application().count(|statistics| {
            statistics.cache_hits += u64::from(hits);
            statistics.cache_misses += u64::from(!hits);
            statistics.cache_waits += waited;
        });
    }

    fn count_stale(&mut self, turn: &Turn<'_>, level: Level, stale: bool) {
        if stale {
            self.counters[level as usize].stale += 1;
            self.stale.count(turn, level, 0);
        }
    }

    /// The card has written bytes that one core alone has: they are in no cache.
    pub(super) fn forget(&mut self, turn: &Turn<'_>, at: &Reach<'_>, bytes: u64) {
        for (place, _) in self.lines(turn, at, bytes) {
            let cache = turn.core / self.cores;
            self.caches.drop_line(cache, place / u64::from(self.spec.shape.line));
        }
    }

    /// What the caches have done, by level.
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
