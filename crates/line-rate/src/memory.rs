//! The memory of handlers in the results of a line-rate check: its levels, and the source lines that wait for banks.

use super::load::Load;
use nicety_nic_processors::{CacheUse, LevelUse, WaitingLine};
use schemars::JsonSchema;
use serde::Serialize;

/// A line of a handler's source that waits for banks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "WaitingLine")]
pub struct WaitingLineRow {
    /// The source line.
    pub line: String,
    /// Number of its accesses that waited.
    pub waits: u64,
    /// Cycles of these waits, per packet.
    pub wait_cycles: f64,
}

/// A level of memory in which processors wait for one another, over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "MemoryLevel")]
pub struct LevelRow {
    /// The level, as the card's spec names it.
    pub level: String,
    /// Accesses per packet, to bytes of any kind.
    pub accesses: f64,
    /// Cycles per packet of their waits for banks, in addition to the latency.
    pub wait_cycles: f64,
    /// The busiest bank, or the level's unit for atomic operations.
    pub busiest: String,
    /// Its accesses per packet, including lines of code.
    pub busiest_accesses: f64,
    /// Cycles per packet for which processors waited for it.
    pub busiest_wait_cycles: f64,
    /// Its load at line rate.
    pub load: f64,
    /// Maximum packets per second with any number of handler cores, by the time for which a packet occupies it.
    pub max_packets_per_s: f64,
    /// The source lines with the longest waits for the level; the first few.
    pub lines: Vec<WaitingLineRow>,
}

/// A line of a handler's source with accesses that would have read older bytes on the card.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "StaleLine")]
pub struct StaleLineRow {
    /// The source line.
    pub line: String,
    /// Number of its stale accesses.
    pub accesses: u64,
}

/// The data caches before a level of memory, over the whole run. Accesses are hits, misses or passed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "DataCache")]
pub struct CacheRow {
    /// The level behind them, as the card's spec names it.
    pub level: String,
    /// Accesses per packet.
    pub accesses: f64,
    /// Loads and stores per packet that hit.
    pub hits: f64,
    /// Loads and stores per packet that missed.
    pub misses: f64,
    /// Atomic operations per packet, which bypass the caches.
    pub bypasses: f64,
    /// Misses over loads and stores; none without any.
    pub miss_rate: Option<f64>,
    /// Lines per packet written to memory, to make room or for an atomic operation.
    pub writebacks: f64,
    /// Lines per packet that another cache had changed, and handed over.
    pub cache_to_cache_transfers: f64,
    /// Accesses per packet that invalidated lines of other caches.
    pub invalidations: f64,
    /// Additional cycles per packet of loads and stores over those of hits.
    pub wait_cycles: f64,
    /// The fraction of all processors' time that these cycles take at line rate.
    pub load: f64,
    /// The source lines with the longest waits; the first few.
    pub lines: Vec<WaitingLineRow>,
    /// Accesses of the whole run to words that another cache had changed, on a card without cache coherence. Handlers read the
    /// newest bytes here, but would not on the card.
    pub stale_accesses: u64,
    /// The source lines with the most stale accesses; the first few.
    pub stale_lines: Vec<StaleLineRow>,
}

/// The memory of handlers, over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "HandlerMemory")]
pub struct MemoryRow {
    /// Pieces of memory that are in no level, without waits of one access for another.
    pub ideal: Vec<String>,
    /// The section of the card's spec with the cycles of an access to them: `hpu.cycles`, or `hpu.overlap` where instructions
    /// overlap.
    pub ideal_cycles: &'static str,
    /// Levels that processors share without waits of one access for another, by the card's spec.
    pub uncontended: Vec<&'static str>,
    /// Accesses of handlers per packet: loads, stores, atomic operations and commands.
    pub accesses: f64,
    /// Accesses per packet to levels in which processors wait for one another.
    pub shared_accesses: f64,
    /// Levels in which processors wait for one another.
    pub levels: Vec<LevelRow>,
    /// Levels behind data caches.
    pub caches: Vec<CacheRow>,
    /// Lines per packet that filled instruction caches.
    pub instruction_cache_fills: f64,
    /// Cycles per packet for which handlers waited for their code.
    pub fetch_wait_cycles: f64,
}

pub(super) fn memory_row(load: &Load) -> MemoryRow {
    let packets = load.packets() as f64;
    let each = |count: u64| count as f64 / packets;
    let lines = |lines: &[WaitingLine]| {
        let row = |line: &WaitingLine| WaitingLineRow {
            line: line.place.clone(),
            waits: line.waits,
            wait_cycles: each(line.cycles),
        };
        lines.iter().map(row).collect()
    };
    let level_row = |level: &LevelUse| {
        let busy_ps = level.busiest_busy.ps() as f64 / packets;
        LevelRow {
            level: level.level.to_owned(),
            accesses: each(level.accesses),
            wait_cycles: each(level.waited_cycles),
            busiest: level.busiest.clone(),
            busiest_accesses: each(level.busiest_accesses),
            busiest_wait_cycles: each(level.busiest_waited_cycles),
            load: load.bank(level),
            max_packets_per_s: 1e12 / busy_ps.max(1.0),
            lines: lines(&level.lines),
        }
    };
    let cache_row = |cache: &CacheUse| {
        let counts = &cache.counters;
        let looked = counts.hits + counts.misses;
        let stale =
            |(line, accesses): &(String, u64)| StaleLineRow { line: line.clone(), accesses: *accesses };
        CacheRow {
            level: cache.level.to_owned(),
            accesses: each(counts.accesses),
            hits: each(counts.hits),
            misses: each(counts.misses),
            bypasses: each(counts.passed),
            miss_rate: (looked > 0).then(|| counts.misses as f64 / looked as f64),
            writebacks: each(counts.written_back),
            cache_to_cache_transfers: each(counts.handed_over),
            invalidations: each(counts.invalidated),
            wait_cycles: each(counts.waited),
            load: load.misses(cache),
            lines: lines(&cache.lines),
            stale_accesses: counts.stale,
            stale_lines: cache.stale_lines.iter().map(stale).collect(),
        }
    };
    MemoryRow {
        ideal: load.ideal.clone(),
        ideal_cycles: load.ideal_cycles,
        uncontended: load.uncontended.clone(),
        accesses: each(load.statistics.accesses),
        shared_accesses: each(load.statistics.shared_accesses),
        levels: load.levels.iter().map(level_row).collect(),
        caches: load.caches.iter().map(cache_row).collect(),
        instruction_cache_fills: each(load.code_lines),
        fetch_wait_cycles: each(load.statistics.fetch_waits),
    }
}
