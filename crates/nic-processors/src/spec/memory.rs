//! The memory system of the handler cores: the level of each piece of a handler's memory, and its timing.

use crate::spec::banks::{self, Divided};
use crate::spec::cache_shape::shape;
use crate::spec::clusters;
use crate::spec::data_cache::{self, DataCacheSpec};
use crate::spec::outer_caches;
use nicety_hpu::profile::Cause;
use nicety_hpu::{AtomicsAt, BankTiming, CacheShape, CycleCosts};
use nicety_spec::{Reader, Remedy, Section};

/// A level of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// No memory system: accesses cost the cycles of `hpu.cycles`, and none waits for another.
    Ideal,
    /// Private memory of a core.
    Core,
    /// Memory of a cluster of cores.
    L1,
    /// Memory of all cores.
    L2,
    /// Memory of all cores behind L2.
    Device,
}

impl Level {
    /// All levels, the nearest first.
    pub const ALL: [Level; 5] = [Level::Ideal, Level::Core, Level::L1, Level::L2, Level::Device];

    /// Returns the cause of its latency in profiles.
    pub(crate) const fn cause(self) -> Cause {
        match self {
            Level::Ideal => Cause::Execute,
            Level::Core => Cause::Core,
            Level::L1 => Cause::L1,
            Level::L2 => Cause::L2,
            Level::Device => Cause::Device,
        }
    }

    /// Returns its name in specs and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Ideal => "ideal",
            Level::Core => "core",
            Level::L1 => "l1",
            Level::L2 => "l2",
            Level::Device => "device",
        }
    }
}

/// A piece of a handler's memory. It lies in one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Piece {
    /// The handlers' state.
    State,
    /// The program's own variables.
    Data,
    /// The packet.
    Packet,
    /// The stack.
    Stack,
    /// The program's code, read as data.
    Constants,
    /// A handler's description of its message or packet.
    Arguments,
}

impl Piece {
    /// All pieces, in the order of specs.
    pub const ALL: [Piece; 6] =
        [Piece::State, Piece::Data, Piece::Packet, Piece::Stack, Piece::Constants, Piece::Arguments];

    /// Returns its key in specs.
    pub const fn key(self) -> &'static str {
        match self {
            Piece::State => "state",
            Piece::Data => "data",
            Piece::Packet => "packet",
            Piece::Stack => "stack",
            Piece::Constants => "constants",
            Piece::Arguments => "arguments",
        }
    }
}

/// The timing of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSpec {
    /// Whether accesses wait for one another. Otherwise each costs its latency alone.
    pub contended: bool,
    /// Its banks.
    pub banks: BankTiming,
    /// Further cycles of an access to another cluster's memory.
    pub remote: u32,
    /// Whether loads and stores go through the data caches.
    pub cached: bool,
    /// Whether lines that miss there go through the caches of all cores.
    pub outer: bool,
    /// Further cycles of a handler's first access to this level.
    pub first: u32,
}

/// The memory system of the handler cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySpec {
    /// Cores that share an L1.
    pub cluster: usize,
    /// The level of each piece, by [`Piece::ALL`].
    pub places: [Level; 6],
    /// The levels in use, by [`Level::ALL`].
    pub levels: [Option<LevelSpec>; 5],
    /// The instruction caches. Without them, instruction fetches take no time.
    pub instructions: Option<InstructionCacheSpec>,
    /// The data caches of the cached levels.
    pub cache: Option<DataCacheSpec>,
}

/// The instruction caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionCacheSpec {
    /// The shape of each cache.
    pub shape: CacheShape,
    /// Whether each core has its own cache. Otherwise each cluster has one.
    pub of_core: bool,
    /// Cycles to fill a line, without waits.
    pub fill: u64,
    /// Cycles for which a fill occupies the only port of program memory. 0 where fills do not wait for one another.
    pub line_cycles: u64,
}

impl MemorySpec {
    /// Returns the level of a piece.
    pub const fn place(&self, piece: Piece) -> Level {
        self.places[piece as usize]
    }

    /// Returns the timing of a level in use.
    pub const fn level(&self, level: Level) -> Option<&LevelSpec> {
        self.levels[level as usize].as_ref()
    }

    /// Returns whether accesses to a level wait for one another.
    pub fn contended(&self, level: Level) -> bool {
        self.level(level).is_some_and(|level| level.contended)
    }

    /// Returns whether a level is behind data caches.
    pub fn cached(&self, level: Level) -> bool {
        self.level(level).is_some_and(|level| level.cached)
    }

    /// Returns whether accesses to a level take place in the order of their cycles, because earlier accesses decide
    /// the time of later ones.
    pub fn in_order(&self, level: Level) -> bool {
        self.contended(level) || self.cached(level)
    }

    /// Returns whether cores share any level.
    pub fn is_shared(&self) -> bool {
        Level::ALL.into_iter().any(|level| self.in_order(level))
    }

    /// Returns whether a handler's first access to any level takes longer.
    pub fn has_first(&self) -> bool {
        self.levels.iter().flatten().any(|level| level.first > 0)
    }

    /// Returns the pieces with the costs of `hpu.cycles`.
    pub fn ideal(&self) -> impl Iterator<Item = Piece> {
        Piece::ALL.into_iter().filter(|piece| self.place(*piece) == Level::Ideal)
    }

    /// Returns the levels that several cores share without contention.
    pub fn uncontended(&self) -> impl Iterator<Item = Level> {
        let shared = [Level::L1, Level::L2, Level::Device].into_iter();
        shared.filter(|level| self.level(*level).is_some_and(|level| !level.contended))
    }
}

/// The parts of the spec that the memory system must fit.
pub(super) struct Surroundings {
    pub(super) cores: usize,
    /// Bytes of HPU memory.
    pub(super) memory: u32,
    /// Hardware threads of a core, which are among `cores`.
    pub(super) threads: usize,
    pub(super) clock_hz: u64,
    pub(super) costs: CycleCosts,
    /// Whether the cycles are those of `[hpu.overlap]`.
    pub(super) overlaps: bool,
    /// Bytes of a stack, where the cores run handlers written for PsPIN.
    pub(super) pspin_stack: Option<u32>,
}

const KEYS: [&str; 15] = [
    "contended",
    "cached",
    "outer",
    "first",
    "banks",
    "interleave",
    "width",
    "load",
    "store",
    "atomic",
    "occupancy",
    "atomics",
    "atomic_occupancy",
    "queue",
    "remote",
];

/// Reads the number of cores of a cluster.
fn read_cluster(reader: &Reader<'_>, s: &Section<'_>, around: &Surroundings) -> u64 {
    let cores = around.cores as u64;
    let mut cluster =
        s.count_or("cluster", 1..=1024, cores, "cores of a cluster, which share an L1; by default all");
    if cluster > cores || !cores.is_multiple_of(cluster) {
        let hpu = reader.section("hpu");
        let cluster_near = clusters::cluster_near(cores, cluster, around.pspin_stack);
        let cores_near = clusters::cores_near(cores, cluster, around.pspin_stack);
        let remedy = |section, key, value: u64| Remedy { section, key, value: value.to_string() };
        let remedies: Vec<_> = cores_near
            .map(|near| remedy(&hpu, "cores", near))
            .into_iter()
            .chain(cluster_near.map(|near| remedy(s, "cluster", near)))
            .collect();
        s.refuse_one(
            &format!("{cores} cores (hpu.cores) do not divide into clusters of {cluster}"),
            &remedies,
            "cluster",
            "change both values",
        );
        // Errors below would only follow from this one.
        cluster = match around.pspin_stack {
            None => cores,
            Some(_) => cluster_near.unwrap_or(cluster.min(cores)),
        };
    }
    cluster
}

/// Reads `[memory]` and its levels.
pub(super) fn read(reader: &Reader<'_>, around: &Surroundings) -> MemorySpec {
    let s = reader.section("memory");
    let names = Level::ALL.map(Level::name);
    let places = Piece::ALL.map(|piece| {
        let doc = match piece {
            Piece::State => "the level that has handlers' states",
            Piece::Data => "the level that has programs' variables",
            Piece::Packet => "the level that has packets",
            Piece::Stack => "the level that has stacks",
            Piece::Constants => "the level that has programs, for loads from them",
            Piece::Arguments => "the level that has handlers' arguments, one header for each processor",
        };
        let name = s.choice_or(piece.key(), &names, Level::Ideal.name(), doc);
        Level::ALL.into_iter().find(|level| level.name() == name).unwrap_or(Level::Ideal)
    });
    let cluster = read_cluster(reader, &s, around);
    let levels = Level::ALL.map(|level| match level {
        Level::Ideal => None,
        level => {
            let s = s.section(level.name());
            let used = places.contains(&level);
            let spare = s.has("spare") && s.flag_or("spare", false, "the level may have nothing in it");
            match KEYS.into_iter().find(|key| s.has(key)) {
                Some(_) if !used && spare => {
                    read_level(&s, level, around);
                    None
                }
                Some(key) if !used => {
                    let name = level.name();
                    read_level(&s, level, around);
                    s.refuse(
                        key,
                        "nothing lies in this level",
                        &format!("write for example memory.state = \"{name}\", or leave out memory.{name}"),
                    );
                    None
                }
                _ => used.then(|| read_level(&s, level, around)),
            }
        }
    });
    let instructions = read_instructions(&s.section("instructions"));
    let (costs, section) = (&around.costs, if around.overlaps { "hpu.overlap" } else { "hpu.cycles" });
    let cache = data_cache::read(&s.section("cache"), costs, section);
    let spec = MemorySpec { cluster: cluster as usize, places, levels, instructions, cache };
    check_cached(&s, &spec, around);
    check(reader, &s, &spec, around);
    spec
}

const INSTRUCTION_KEYS: [&str; 6] = ["size", "ways", "line", "of", "fill", "port"];

/// Reads `[memory.instructions]`, if it is present.
fn read_instructions(s: &Section<'_>) -> Option<InstructionCacheSpec> {
    if !INSTRUCTION_KEYS.iter().any(|key| s.has(key)) {
        return None;
    }
    let bytes = s.size("size", 16..=16 << 20, "bytes of an instruction cache") as u32;
    let ways = s.count_or("ways", 1..=1024, 1, "places that a line may have") as u32;
    let line = s.size_or("line", 4..=4096, "16 B", "bytes of a line") as u32;
    let of = s.choice_or("of", &["cluster", "core"], "cluster", "the unit with a separate instruction cache");
    let fill = s.count("fill", 0..=100_000, "cycles of filling in a line, if it waits for nothing");
    let port = s.size_or(
        "port",
        0..=4096,
        "0 B",
        "bytes that the one port of program memory gives in a cycle; 0 where fills do not wait for one another",
    );
    let line_cycles = if port > 0 { u64::from(line).div_ceil(port) } else { 0 };
    let shape = shape(s, bytes, ways, line)?;
    Some(InstructionCacheSpec { shape, of_core: of == "core", fill, line_cycles })
}

/// The cycles of accesses to a level that wait for nothing.
struct Latencies<'a> {
    s: &'a Section<'a>,
    around: &'a Surroundings,
}

impl Latencies<'_> {
    /// Reads the cycles of an access. An instruction that does not wait for memory takes at least `least`.
    fn read(&self, key: &'static str, default: u32, least: u16, doc: &'static str) -> u32 {
        let cycles = self.s.count_or(key, 1..=100_000, u64::from(default), doc) as u32;
        if cycles < u32::from(least) {
            let section = if self.around.overlaps && key != "atomic" { "hpu.overlap" } else { "hpu.cycles" };
            self.s.refuse(
                key,
                &format!(
                    "an instruction that does not wait for memory takes {least} cycles ({section}.{key})"
                ),
                &format!("write {least} or more, or lower {section}.{key}"),
            );
        }
        cycles.max(u32::from(least))
    }

    fn atomic(&self, default: u32) -> u32 {
        const DOC: &str = "cycles of an atomic operation that waits for nothing";
        self.read("atomic", default, self.around.costs.atomic, DOC)
    }
}

fn read_level(s: &Section<'_>, level: Level, around: &Surroundings) -> LevelSpec {
    let costs = &around.costs;
    let latencies = Latencies { s, around };
    let of = |cost: u16| u32::from(cost.max(1));
    let load = latencies.read("load", of(costs.load), costs.load, "cycles of a load that waits for nothing");
    let store =
        latencies.read("store", of(costs.store), costs.store, "cycles of a store that waits for nothing");
    if level == Level::Core {
        let atomic = latencies.atomic(load.max(of(costs.atomic)));
        let banks = BankTiming::one_bank(load, store, atomic);
        return LevelSpec { contended: false, banks, remote: 0, cached: false, outer: false, first: 0 };
    }
    let contended = s.flag_or("contended", true, "accesses wait for one another");
    let cached = s.flag_or("cached", false, "loads and stores look for their lines in [memory.cache] first");
    let outer =
        s.flag_or("outer", false, "lines go through the second and third cache, which all cores share");
    let doc = "additional cycles of a handler's first access to this level";
    let first = s.count_or("first", 0..=100_000, 0, doc) as u32;
    if outer && !cached {
        s.refuse("outer", "this level has no data caches", "write cached = true, or leave it out");
    }
    if first > 0 && !cached && !contended {
        s.refuse(
            "first",
            "accesses to this level have a fixed time",
            "write cached = true or contended = true, or leave it out",
        );
    }
    let banks = read_banks(s, (load, store), &latencies);
    let remote = match level {
        Level::L1 => {
            s.count_or("remote", 0..=100_000, 0, "additional cycles of an access to another cluster's memory")
                as u32
        }
        _ => 0,
    };
    LevelSpec { contended, banks, remote, cached, outer, first }
}

/// Reads the banks of a level. Loads and stores that wait for nothing take `load` and `store` cycles.
fn read_banks(s: &Section<'_>, (load, store): (u32, u32), latencies: &Latencies<'_>) -> BankTiming {
    let banks = s.count_or("banks", 1..=4096, 1, "banks of this level") as u32;
    let interleave = s.size_or("interleave", 4..=1 << 20, "4 B", "consecutive bytes in one bank") as u32;
    let width = s.size_or("width", 1..=4096, "4 B", "bytes that a bank moves in an occupancy") as u32;
    let cycles = |key, default: u32, doc| s.count_or(key, 1..=100_000, u64::from(default), doc) as u32;
    let occupancy = cycles("occupancy", 1, "cycles for which an access occupies its bank");
    let places = ["core", "bank", "memory"];
    let atomics = match s.choice_or("atomics", &places, "bank", "where atomic operations are computed") {
        "core" => AtomicsAt::Core,
        "memory" => AtomicsAt::Memory,
        _ => AtomicsAt::Bank,
    };
    let (at_once, occupied, least) = match atomics {
        AtomicsAt::Core => (load + store, load + occupancy, load + occupancy),
        _ => (load.max(u32::from(latencies.around.costs.atomic.max(1))), occupancy, 1),
    };
    let atomic = latencies.atomic(at_once);
    let atomic_occupancy = cycles(
        "atomic_occupancy",
        occupied,
        "cycles for which an atomic operation occupies its bank, or the level's unit for them",
    );
    if atomic_occupancy < least {
        s.refuse(
            "atomic_occupancy",
            &format!(
                "computed at the core, it occupies its bank from its load, {load} cycles, until its store has been served, \
                 {occupancy}"
            ),
            &format!("write {least} or more, or leave it out"),
        );
    }
    let queue = s.count_or("queue", 0..=1024, 0, "stores that wait at a bank while their cores go on") as u32;
    BankTiming {
        banks,
        interleave,
        width,
        occupancy,
        atomics,
        atomic_occupancy,
        queue,
        ..BankTiming::one_bank(load, store, atomic)
    }
}

/// Checks the data caches against the levels behind them.
fn check_cached(s: &Section<'_>, spec: &MemorySpec, around: &Surroundings) {
    let cached: Vec<Level> = Level::ALL.into_iter().filter(|level| spec.cached(*level)).collect();
    let section = s.section("cache");
    let Some(cache) = spec.cache else {
        // A section that is present but invalid has been refused.
        if let Some(level) = cached.first().filter(|_| !data_cache::is_there(&section)) {
            s.section(level.name()).refuse(
                "cached",
                "there are no data caches",
                "write memory.cache.size and other keys of [memory.cache], or leave it out",
            );
        }
        return;
    };
    if cached.is_empty() {
        let used =
            [Level::L1, Level::L2, Level::Device].into_iter().find(|level| spec.level(*level).is_some());
        let level = used.unwrap_or(Level::L2).name();
        let lies = if used.is_some() { String::new() } else { format!("memory.state = \"{level}\" and ") };
        section.refuse(
            "size",
            "no level is behind the data caches",
            &format!("write for example {lies}memory.{level}.cached = true, or leave out [memory.cache]"),
        );
    }
    let outer = cached.iter().find(|level| spec.level(**level).is_some_and(|level| level.outer));
    match outer {
        Some(level) if !outer_caches::is_there(&section) => s.section(level.name()).refuse(
            "outer",
            "there is no second cache",
            "write memory.cache.second.size and its other keys, or leave it out",
        ),
        None if outer_caches::is_there(&section) => section.section("second").refuse(
            "size",
            "no level is behind the second cache",
            &format!(
                "write for example memory.{}.outer = true, or leave out memory.cache.second",
                cached.first().unwrap_or(&Level::L2).name()
            ),
        ),
        _ => {}
    }
    let clusters = (around.cores / spec.cluster.max(1)).max(1) as u64;
    for level in cached {
        let memories = if level == Level::L1 { clusters } else { 1 };
        let (memory, line) = (u64::from(around.memory), u64::from(cache.shape.line));
        if !memory.is_multiple_of(memories * line) {
            let all = if memories > 1 { format!("{memories} clusters of ") } else { String::new() };
            section.refuse(
                "line",
                &format!(
                    "hpu.memory has {memory} bytes, which do not divide into {all}lines of {line} bytes"
                ),
                &format!(
                    "write a shorter line, or hpu.memory = \"{} B\"",
                    memory.next_multiple_of(memories * line)
                ),
            );
        }
    }
}

/// Checks keys against one another. Memories must divide into banks, and the model must be able to order the cores
/// that share a level.
fn check(reader: &Reader<'_>, s: &Section<'_>, spec: &MemorySpec, around: &Surroundings) {
    let clusters = (around.cores / spec.cluster.max(1)).max(1) as u64;
    for level in [Level::L1, Level::L2, Level::Device] {
        let Some(LevelSpec { banks, contended, .. }) = spec.level(level) else { continue };
        let has_addresses = [Piece::State, Piece::Data].iter().any(|piece| spec.place(*piece) == level);
        let memories = if level == Level::L1 { clusters } else { 1 };
        let bytes = u64::from(around.memory);
        if has_addresses && !bytes.is_multiple_of(memories) {
            s.refuse(
                "cluster",
                &format!("hpu.memory has {bytes} bytes, which do not divide into {memories} clusters"),
                "write another hpu.memory, or clusters of another size",
            );
            continue;
        }
        let divided = (has_addresses && *contended).then_some(Divided { bytes, memories });
        banks::check(reader, &s.section(level.name()), banks, divided);
    }
    // Accesses of one cycle take place two picoseconds apart, in the order of core numbers.
    let period = 1_000_000_000_000 / around.clock_hz.max(1);
    let most = (period / 2).saturating_sub(2);
    if around.cores as u64 <= most {
        return;
    }
    let used = Piece::ALL.into_iter().find(|piece| spec.in_order(spec.place(*piece)));
    let ghz = around.clock_hz as f64 / 1e9;
    if let Some(used) = used {
        let (what, lower) = match around.threads {
            1 => ("cores", "hpu.cores"),
            _ => ("hardware threads", "hpu.threads or hpu.cores"),
        };
        s.refuse(
            used.key(),
            &format!(
                "{} {what} cannot share a level at {ghz} GHz: the model orders at most {most}",
                around.cores
            ),
            &format!("lower {lower}, or write contended = false for this level and remove data caches"),
        );
    } else if around.threads > 1 {
        reader.section("hpu").refuse(
            "threads",
            &format!(
                "{} threads cannot share cores at {ghz} GHz: the model orders at most {most}",
                around.cores
            ),
            "lower hpu.threads or hpu.cores",
        );
    }
}
