//! The memory system: the levels of handlers' memory, and the banks at which cores wait for one another.
//!
//! Cores access a contended level in the order of cycles, and within a cycle in the order of their numbers. On a card
//! with such a level all cores run on one clock. The cycles of core n begin 2 n ps after its edges. Levels behind
//! data caches count as contended, since earlier accesses decide the hits of later ones.

use crate::Processors;
use crate::hpus::edges::Edges;
use crate::memory::bank_waits::{BankUse, BankWaits};
use crate::memory::cached::{Behind, CacheUse, Cached};
use crate::memory::reach::{PROGRAM_BITS, Reach};
use crate::memory::waits::{WaitingLine, Waits};
use crate::programs::attachments::Attachment;
use crate::programs::program::map;
use crate::running::{ARGUMENTS, Running, Turn};
use crate::spec::{HpuSpec, Level, MemorySpec, Piece, Timings, own_cycles};
use nicety_hpu::profile::Cause;
use nicety_hpu::{AccessKind, Banks, Cache, OrderPoint, Served};
use nicety_types::{Duration, Time};
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::sync::Arc;

/// Offset between the cycles of consecutive cores, in picoseconds.
const SKEW: u64 = 2;

/// The use of a contended level in a whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelUse {
    /// The level's name in specs.
    pub level: &'static str,
    /// Accesses of all cores by instructions and commands, at any address.
    pub accesses: u64,
    /// Cycles that they waited for it, without its latency.
    pub waited_cycles: u64,
    /// The busiest bank, or the level's unit for atomic operations, such as `bank 5 of l1 of cluster 2`.
    pub busiest: String,
    /// Accesses of that bank, including lines of code.
    pub busiest_accesses: u64,
    /// Its busy time.
    pub busiest_busy: Duration,
    /// Cycles that cores waited for it.
    pub busiest_waited_cycles: u64,
    /// The first few source lines with the longest waits for any bank of the level.
    pub lines: Vec<WaitingLine>,
}

/// A contended level.
#[derive(Default)]
struct Contended {
    /// Its banks, by cluster. Empty before the first access.
    banks: Vec<Banks>,
    /// Accesses by instructions and commands, and the cycles that they waited.
    accesses: u64,
    waited: u64,
}

/// The memories of a card's cores.
pub struct Levels {
    spec: Arc<HpuSpec>,
    /// Most bytes of a packet.
    packet: u64,
    pub(crate) timings: Timings,
    /// Whether accesses to some piece of memory wait for their turns.
    pub(crate) in_turn: bool,
    /// Whether all cores run on one clock, since any level is contended or threads share the issue of a core.
    pub(crate) shared: bool,
    /// The contended levels, by [`Level::ALL`].
    contended: RefCell<[Contended; 5]>,
    /// Instruction caches of clusters or of cores, if any.
    pub(crate) caches: RefCell<Vec<Cache>>,
    /// The data caches, if any.
    data_caches: Option<RefCell<Cached>>,
    /// Waits for banks.
    waits: RefCell<Waits>,
    /// The same by bank and data, where handlers are profiled.
    /// Boxed, since few nodes have profiles.
    bank_waits: OnceCell<Box<BankWaits>>,
    /// The first cycle in which the only port of program memory is free.
    program_port: Cell<u64>,
    /// The place of each processor's packet among its places. Empty where each has one.
    places: RefCell<Vec<u32>>,
    /// The levels that the handler of each processor has accessed, as bits. Empty where first accesses take no longer.
    reached: RefCell<Vec<u8>>,
}

/// The memories of a card's cores, created on first use: most nodes of a large cluster never run a handler.
pub struct Memories {
    spec: Arc<HpuSpec>,
    packet: u64,
    levels: OnceCell<Box<Levels>>,
}

impl Memories {
    /// Returns the memories. Packets have at most `packet` bytes.
    pub fn new(spec: &Arc<HpuSpec>, packet: u64) -> Memories {
        Memories { spec: spec.clone(), packet, levels: OnceCell::new() }
    }
}

impl Deref for Memories {
    type Target = Levels;
    fn deref(&self) -> &Levels {
        self.levels.get_or_init(|| Box::new(Levels::new(&self.spec, self.packet)))
    }
}

impl Levels {
    pub fn new(spec: &Arc<HpuSpec>, packet: u64) -> Levels {
        let (memories, timings) = (&spec.memories, Timings::of(spec));
        Levels {
            in_turn: timings.in_turn(),
            timings,
            shared: memories.is_shared() || spec.threads > 1,
            contended: RefCell::default(),
            caches: RefCell::new(caches(spec)),
            data_caches: Cached::new(spec).map(RefCell::new),
            waits: RefCell::default(),
            bank_waits: OnceCell::new(),
            program_port: Cell::new(0),
            places: RefCell::new(vec![0; if spec.ring > 1 { spec.cores } else { 0 }]),
            reached: RefCell::new(vec![0; if memories.has_first() { spec.cores } else { 0 }]),
            spec: spec.clone(),
            packet,
        }
    }

    fn hpu(&self) -> &HpuSpec {
        &self.spec
    }

    fn memories(&self) -> &MemorySpec {
        &self.spec.memories
    }

    /// Returns the cycles of a core that becomes busy at `now`.
    pub fn edges(&self, core: usize, now: Time) -> Edges {
        let clock = self.hpu().clock;
        match self.shared {
            true => Edges::since(clock, Time::from_ps(SKEW * core as u64), now),
            // Its commands wait for their turns by the card's cycles.
            false if self.spec.pspin.is_some() => Edges::since(clock, Time::ZERO, now),
            false => Edges::own(clock, now),
        }
    }

    /// Returns the instruction cache of a core.
    pub(crate) fn cache_of<'c>(&self, caches: &'c mut [Cache], core: usize) -> Option<&'c mut Cache> {
        let spec = self.memories().instructions.as_ref()?;
        caches.get_mut(if spec.of_core { core } else { core / self.memories().cluster })
    }

    /// Serves a miss of a handler in its instruction cache, `asked` cycles after the request. Returns the cycles that
    /// the handler waits.
    pub(crate) fn fetch(&self, running: &mut Running, address: u32, asked: u32) -> u64 {
        let Some(spec) = self.memories().instructions else { return 0 };
        let Turn { core, cycle, .. } = running.turn();
        let line = address & !(spec.shape.line - 1);
        let cached = line.wrapping_add(running.attachment.program.number << PROGRAM_BITS);
        let mut caches = self.caches.borrow_mut();
        let cache = self.cache_of(&mut caches, core).expect("every core has its cache");
        if let Some(ready) = cache.find(cached) {
            // Another core is already fetching it.
            return ready.saturating_sub(cycle);
        }
        let reach = self.reach(&running.attachment, core, line).filter(|reach| reach.spec.contended);
        let waited = reach.map_or(0, |reach| {
            let level = &mut self.contended.borrow_mut()[reach.level as usize];
            self.serve(level, &reach, cycle, spec.shape.line, AccessKind::Load).waited
        });
        // The port of program memory. Fills of all caches share it.
        let came = cycle.saturating_sub(asked.into());
        let port = if spec.line_cycles > 0 { self.program_port.get().saturating_sub(came) } else { 0 };
        self.program_port.set(came + port + spec.line_cycles);
        let cycles = (spec.fill + waited + port).saturating_sub(asked.into());
        cache.fill(cached, cycle + cycles);
        cycles
    }

    /// Returns the number of lines filled into instruction caches.
    pub(crate) fn fills(&self) -> u64 {
        self.caches.borrow().iter().map(|cache| cache.counters().fills).sum()
    }

    /// Returns the contended or slower level of an address, if it is in one.
    fn reach(&self, attachment: &Attachment, core: usize, address: u32) -> Option<Reach<'_>> {
        let (hpu, memories) = (self.hpu(), self.memories());
        // Without clusters, this avoids a division, which would be a large part of an access's cost here.
        let (cluster, within) = match memories.cluster == hpu.cores {
            true => (0, core),
            false => (core / memories.cluster, core % memories.cluster),
        };
        let (piece, base) = match address {
            map::STACK.. => (Piece::Stack, map::STACK),
            map::CODE.. => (Piece::Constants, map::CODE),
            map::PACKET.. => (Piece::Packet, map::PACKET),
            map::ARGUMENTS.. => (Piece::Arguments, map::ARGUMENTS),
            map::STATE.. => (Piece::State, map::STATE),
            map::MEMORY.. => (Piece::Data, map::MEMORY),
            _ => return None,
        };
        let level = memories.place(piece);
        let spec = memories.level(level)?;
        // HPU memory comes first. Behind it is the private memory of each core that shares this memory.
        let (number, cores) = match level {
            Level::L1 => (within, memories.cluster),
            _ => (core, hpu.cores),
        };
        let slots = |size: u64, cores: usize| cores as u64 * size.next_multiple_of(64);
        let (payload, stack) = (self.packet, u64::from(hpu.stack));
        let packets = || u64::from(hpu.memory).next_multiple_of(64);
        let ring = self.spec.ring as usize;
        let place = || self.places.borrow().get(core).map_or(0, |&place| place as usize);
        let stacks = || packets() + slots(payload, cores * ring);
        let (start, own) = match piece {
            Piece::State => (0, false),
            Piece::Data => (u64::from(attachment.program.data.start), false),
            Piece::Constants => (0, true),
            Piece::Packet => (packets() + slots(payload, number * ring + place()), true),
            Piece::Stack => (stacks() + slots(stack, number), true),
            Piece::Arguments => (stacks() + slots(stack, cores) + slots(ARGUMENTS as u64, number), true),
        };
        let offset = start + u64::from(address - base);
        let (memory, offset) = match level {
            Level::L1 if own => (cluster, offset),
            // Each cluster has its part of HPU memory.
            Level::L1 if memories.cluster == hpu.cores && offset < hpu.memory.into() => (0, offset),
            Level::L1 => {
                let clusters = (hpu.cores / memories.cluster) as u64;
                let part = (u64::from(hpu.memory) / clusters).max(1);
                ((offset / part).min(clusters - 1) as usize, offset % part)
            }
            _ => (0, offset),
        };
        Some(Reach {
            piece,
            level,
            spec,
            memory,
            offset,
            address,
            remote: level == Level::L1 && memory != cluster,
        })
    }

    /// Serves an access of a core in its turn. Returns its cycles, if it is to a level with a timing of its own.
    /// Loads and stores of a cached level look up their lines first, unless the access `passes` the caches.
    fn access(&self, turn: &mut Turn<'_>, at: &Reach<'_>, bytes: u32, kind: AccessKind, passes: bool) -> u64 {
        turn.causes.clear();
        let cycles = self.access_level(turn, at, bytes, kind, passes);
        let first = self.first_access(turn.core, at);
        if first > 0 {
            turn.causes.push((at.cause(kind), first));
        }
        cycles + first
    }

    /// Returns the further cycles of an access of a core, if it is its handler's first one to this level.
    fn first_access(&self, core: usize, at: &Reach<'_>) -> u64 {
        let mut reached = self.reached.borrow_mut();
        let Some(reached) = reached.get_mut(core) else { return 0 };
        let level = 1 << at.level as u8;
        let is_first = *reached & level == 0;
        *reached |= level;
        if is_first { at.spec.first.into() } else { 0 }
    }

    fn access_level(
        &self,
        turn: &mut Turn<'_>,
        at: &Reach<'_>,
        bytes: u32,
        kind: AccessKind,
        passes: bool,
    ) -> u64 {
        match &self.data_caches {
            Some(caches) if at.spec.cached => {
                let contended = at.spec.contended;
                *turn.shared_accesses += u64::from(contended);
                if contended {
                    self.contended.borrow_mut()[at.level as usize].accesses += 1;
                }
                caches.borrow_mut().access(self, turn, at, bytes, kind, passes)
            }
            _ if at.spec.contended => {
                *turn.shared_accesses += 1;
                let served = {
                    let contended = &mut self.contended.borrow_mut()[at.level as usize];
                    contended.accesses += 1;
                    self.serve(contended, at, turn.cycle, bytes, kind)
                };
                self.has_waited(turn, at, served.waited);
                served_in(turn, at, kind, served)
            }
            _ => self.access_memory(turn, at, bytes, kind),
        }
    }

    fn with_banks<R>(&self, level: Level, memory: usize, act: impl FnOnce(&mut Banks) -> R) -> R {
        let contended = &mut self.contended.borrow_mut()[level as usize];
        act(&mut self.banks(contended, level)[memory])
    }

    /// Counts a handler's wait for banks of a level.
    fn has_waited(&self, turn: &mut Turn<'_>, at: &Reach<'_>, cycles: u64) {
        let level = at.level;
        if cycles > 0 {
            self.contended.borrow_mut()[level as usize].waited += cycles;
            *turn.memory_waits += cycles;
            self.waits.borrow_mut().count(turn, level, cycles);
            if let Some(waits) = self.bank_waits.get() {
                let bank = self.with_banks(level, at.memory, |banks| banks.bank_of(at.offset));
                waits.count(turn, at, bank, cycles);
            }
        }
    }

    /// Counts waits by bank and data from now on.
    pub(crate) fn count_bank_waits(&self) {
        self.bank_waits.get_or_init(Box::default);
    }

    /// Returns the waits by bank and data, the longest first. `variable` names the variable at an address of a program.
    pub(crate) fn list_bank_waits(&self, variable: impl Fn(u32, u32) -> Option<String>) -> Vec<BankUse> {
        self.bank_waits.get().map_or_else(Vec::new, |waits| waits.list(variable))
    }

    /// Serves an access to a contended level.
    fn serve(
        &self,
        contended: &mut Contended,
        at: &Reach<'_>,
        cycle: u64,
        bytes: u32,
        kind: AccessKind,
    ) -> Served {
        self.banks(contended, at.level)[at.memory].access(cycle, at.offset, bytes, kind)
    }

    /// Returns the banks of a contended level, by cluster.
    fn banks<'b>(&self, Contended { banks, .. }: &'b mut Contended, level: Level) -> &'b mut [Banks] {
        if banks.is_empty() {
            let clusters = self.hpu().cores / self.memories().cluster;
            let memories = if level == Level::L1 { clusters } else { 1 };
            let timing = self.memories().level(level).expect("it is in use").banks;
            banks.resize_with(memories, || Banks::new(timing));
        }
        banks
    }

    /// Begins a handler. The card has written its packet and its arguments, so they are in no data cache.
    pub fn begins(&self, running: &mut Running) {
        let core = running.thread.core;
        if let Some(place) = self.places.borrow_mut().get_mut(core) {
            *place = (*place + 1) % self.spec.ring;
        }
        if let Some(reached) = self.reached.borrow_mut().get_mut(core) {
            *reached = 0;
        }
        let Some(caches) = &self.data_caches else { return };
        let pieces = [(map::PACKET, running.memory.bytes()), (map::ARGUMENTS, ARGUMENTS as u64)];
        let turn = running.turn();
        for (address, bytes) in pieces {
            let reach = self.reach(turn.attachment, turn.core, address);
            if let Some(reach) = reach.filter(|reach| reach.spec.cached) {
                caches.borrow_mut().forget(self, &turn, &reach, bytes);
            }
        }
    }

    /// Returns the use of the data caches so far, by level.
    pub(crate) fn list_caches(&self) -> Vec<CacheUse> {
        self.data_caches.as_ref().map_or_else(Vec::new, |caches| caches.borrow().list())
    }

    /// Returns the use of each contended level so far.
    pub(crate) fn list(&self) -> Vec<LevelUse> {
        let levels = self.contended.borrow();
        let used = Level::ALL.into_iter().filter(|level| !levels[*level as usize].banks.is_empty());
        used.map(|level| self.level_use(level, &levels[level as usize])).collect()
    }

    fn level_use(&self, level: Level, contended: &Contended) -> LevelUse {
        let memories = &contended.banks;
        let clock = self.hpu().clock;
        let of_cluster = |number: usize| match memories.len() {
            1 => String::new(),
            _ => format!(" of cluster {number}"),
        };
        let name = level.name();
        let banks = memories.iter().enumerate().flat_map(|(cluster, memory)| {
            let unit = (None, cluster, memory.unit());
            memory
                .counters()
                .enumerate()
                .map(move |(bank, counters)| (Some(bank), cluster, counters))
                .chain([unit])
        });
        let mut most = None;
        for (bank, cluster, counters) in banks {
            let busiest = most.as_ref().map_or(0, |(.., most): &(_, _, nicety_hpu::BankCounters)| most.busy);
            if most.is_none() || counters.busy > busiest {
                most = Some((bank, cluster, counters));
            }
        }
        let (bank, cluster, busiest) = most.expect("a level has a bank");
        let busiest_name = match bank {
            Some(bank) => format!("bank {bank} of {name}{}", of_cluster(cluster)),
            None => format!("the atomic unit of {name}{}", of_cluster(cluster)),
        };
        LevelUse {
            level: name,
            accesses: contended.accesses,
            waited_cycles: contended.waited,
            busiest: busiest_name,
            busiest_accesses: busiest.accesses,
            busiest_busy: clock.cycles(busiest.busy),
            busiest_waited_cycles: busiest.waited,
            lines: self.waits.borrow().lines(level),
        }
    }
}

/// Returns the instruction caches of a card, empty.
fn caches(hpu: &HpuSpec) -> Vec<Cache> {
    let Some(spec) = hpu.memories.instructions else { return Vec::new() };
    let number = if spec.of_core { hpu.cores } else { hpu.cores / hpu.memories.cluster };
    vec![Cache::new(spec.shape); number]
}

/// Returns the cycles of an access, and notes their causes.
fn served_in(turn: &mut Turn<'_>, at: &Reach<'_>, kind: AccessKind, served: Served) -> u64 {
    let cycles = served.cycles + at.farther();
    turn.causes.clear();
    turn.causes.extend([(at.cause(kind), cycles - served.waited), (Cause::Bank, served.waited)]);
    cycles
}

impl Behind for Levels {
    fn access_memory(&self, turn: &mut Turn<'_>, at: &Reach<'_>, bytes: u32, kind: AccessKind) -> u64 {
        if !at.spec.contended {
            let cycles = u64::from(at.spec.banks.latency(kind));
            return served_in(turn, at, kind, Served { cycles, waited: 0 });
        }
        let served = {
            let contended = &mut self.contended.borrow_mut()[at.level as usize];
            self.serve(contended, at, turn.cycle, bytes, kind)
        };
        self.has_waited(turn, at, served.waited);
        served_in(turn, at, kind, served)
    }

    fn fetch_line(&self, turn: &mut Turn<'_>, at: &Reach<'_>, offset: u64, line: u32) -> u64 {
        let cycle = turn.cycle;
        let served = self.with_banks(at.level, at.memory, |banks| banks.fetch_line(cycle, offset, line));
        self.has_waited(turn, at, served.waited);
        served.cycles + at.farther()
    }

    fn write_line(&self, cycle: u64, (level, memory): (Level, usize), offset: u64, line: u32) {
        if !self.memories().contended(level) {
            return;
        }
        self.with_banks(level, memory, |banks| banks.write_line(cycle, offset, line));
    }
}

impl Levels {
    /// Serves a handler's instruction that waits for its turn. Returns its cycles beyond those in a memory without
    /// contention.
    pub(crate) fn in_turn(&self, turn: &mut Turn<'_>, point: &OrderPoint) -> u64 {
        turn.causes.clear();
        if !self.in_turn {
            return 0;
        }
        // LR is a load.
        let (address, bytes, kind) = match *point {
            OrderPoint::Fence => return 0,
            OrderPoint::Atomic { address, size, write: true } => (address, size, AccessKind::Atomic),
            OrderPoint::Atomic { address, size, .. } => (address, size, AccessKind::Load),
            OrderPoint::Memory { address, size, write: true } => (address, size, AccessKind::Store),
            OrderPoint::Memory { address, size, .. } => (address, size, AccessKind::Load),
        };
        let reach = self.reach(turn.attachment, turn.core, address);
        // The slice itself adds the latency of other pieces.
        let Some(reach) = reach.filter(|reach| self.timings.waits(reach.piece)) else { return 0 };
        let passes = matches!(point, OrderPoint::Atomic { .. });
        let cycles = self.access(turn, &reach, bytes, kind, passes);
        let own = u64::from(own_cycles(&self.hpu().core.costs, kind));
        // The first part has the access itself.
        if let Some((_, latency)) = turn.causes.first_mut() {
            *latency -= own.min(*latency);
        }
        cycles - own
    }
}

impl Processors {
    /// Serves a command that works atomically on 8 bytes of a handler's memory. Returns its cycles beyond the
    /// command's own.
    pub(crate) fn command_in_turn(&self, running: &mut Running, address: u32) -> u64 {
        running.atomic_commands += 1;
        let (levels, mut turn) = (&*self.levels, running.turn());
        let reach = levels.reach(turn.attachment, turn.core, address);
        turn.causes.clear();
        reach.map_or(0, |reach| levels.access(&mut turn, &reach, 8, AccessKind::Atomic, true))
    }
}
