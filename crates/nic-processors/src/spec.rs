//! The spec of handler cores: the sections `[hpu]` and `[memory]`.

mod banks;
mod cache_shape;
mod clusters;
mod commands;
mod data_cache;
mod divisor;
mod interconnect;
pub mod memory;
mod outer_caches;
mod overlap;
mod packets;
pub mod protection;
pub mod pspin_map;
mod threads;
mod timings;

pub use commands::CommandsSpec;
pub use data_cache::DataCacheSpec;
pub use interconnect::InterconnectSpec;
pub use memory::{InstructionCacheSpec, Level, LevelSpec, MemorySpec, Piece};
pub use outer_caches::{OuterCacheSpec, OuterCachesSpec};
pub use packets::PacketsSpec;
pub(crate) use timings::{Timings, own_cycles};

use nicety_hpu::{Core, Isa, Misaligned};
use nicety_nic_core::{read_costs, read_isa, read_misaligned};
use nicety_spec::Reader;
use nicety_types::Frequency;

/// The scheduling of handler cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// First come, first served: the handler that has waited longest.
    FirstCome,
    /// The application with the least use for its weight.
    WeightedFair,
    /// The packet that has waited longest in its cluster. That is the home cluster of its message, unless it is full.
    HomeCluster,
}

/// The handler cores of a card.
#[derive(Clone, Debug)]
pub struct HpuSpec {
    /// Number of processors: the cores, or the hardware threads of all cores.
    pub cores: usize,
    /// Hardware threads of a core. They share its issue. Processors that differ by the number of cores share one.
    pub threads: usize,
    /// Instructions that a core with several threads issues in a cycle, one of a thread.
    pub issue: usize,
    /// Their clock.
    pub clock: Frequency,
    /// Instruction set and cycle costs.
    pub core: Core,
    /// The instruction set for compilers: that of the spec, plus `zicclsm` where misaligned accesses cost cycles but
    /// do not trap.
    pub isa: String,
    /// HPU memory of all applications together, in bytes.
    pub memory: u32,
    /// Program memory of one program, in bytes.
    pub code: u32,
    /// Most applications on the card.
    pub applications: u32,
    /// Handlers that may be parked per core after a yield.
    pub stack: u32,
    /// Handlers parked per core after a yield.
    pub parked: u32,
    /// Message contexts: the number of messages for handlers in progress at a time.
    pub contexts: u32,
    /// The order in which handlers get a processor.
    pub scheduling: Scheduling,
    /// The command unit and the memory of handlers written for PsPIN, if the processors run them.
    pub pspin: Option<CommandsSpec>,
    /// The assignment of packets to clusters, with [`Scheduling::HomeCluster`].
    pub packets: Option<PacketsSpec>,
    /// The sharing of memories by the engines of handlers written for PsPIN, if it is modelled.
    pub interconnect: Option<InterconnectSpec>,
    /// Places of each processor for packets, which its handlers use in turn.
    pub ring: u32,
    /// Cycles to start a handler.
    pub handler_start: u64,
    /// Cycles to finish a handler.
    pub handler_end: u64,
    /// Cycles after which a handler is stopped.
    pub cycle_limit: u64,
    /// Cycles of a call of `printf`.
    pub printf: u64,
    /// Cycles per printed byte.
    pub printf_byte: u64,
    /// DMA transfers in flight per handler.
    pub dma_handles: u32,
    /// The placement of handlers' memory, and its timing.
    pub memories: MemorySpec,
}

/// Returns the instruction set for compilers. Where hardware handles misaligned accesses (RISC-V's Zicclsm),
/// compilers may use them.
fn compiled_for(isa: String, misaligned: Misaligned) -> String {
    match misaligned {
        Misaligned::Trap => isa,
        Misaligned::Costs => format!("{isa}_zicclsm"),
    }
}

/// Reads the handler cores of a card from the sections `[hpu]`, `[hpu.cycles]` and `[memory]`.
pub fn read_hpu(reader: &Reader<'_>) -> HpuSpec {
    let s = reader.section("hpu.cycles");
    let (costs, overlap) = overlap::read(reader, read_costs(&s));
    let handler_start = s.count("handler_start", 0..=1_000_000, "starting a handler");
    let handler_end = s.count("handler_end", 0..=1_000_000, "finishing a handler");
    let printf = s.count_or("printf", 0..=1_000_000, 60, "a call of printf");
    let printf_byte = s.count_or("printf_byte", 0..=10_000, 20, "each byte that printf prints");
    let s = reader.section("hpu");
    let (cores, threads, issue) = threads::read(&s, overlap.is_some());
    let clock = s.frequency("clock", "clock of the handler cores");
    let (isa_text, isa) = read_isa(&s, Isa::RV32IMAC);
    let misaligned = read_misaligned(&s);
    let orders = ["first-come", "weighted-fair", "home-cluster"];
    let scheduling =
        match s.choice_or("scheduling", &orders, "first-come", "which handler a free one runs next") {
            "weighted-fair" => Scheduling::WeightedFair,
            "home-cluster" => Scheduling::HomeCluster,
            _ => Scheduling::FirstCome,
        };
    let size = |key, most: u64, doc| s.size(key, clusters::STACK..=most, doc) as u32;
    let memory = s.size("memory", banks::MEMORY, "HPU memory, of all applications together") as u32;
    let stack = size("stack", 1 << 20, "stack of a handler");
    let around = memory::Surroundings {
        cores,
        memory,
        threads,
        clock_hz: clock.hz(),
        costs,
        overlaps: overlap.is_some(),
        pspin_stack: commands::is_pspins(reader).then_some(stack),
    };
    let memories = memory::read(reader, &around);
    let pspin = commands::read(reader, &memories, cores, stack);
    if pspin.is_some() && threads > 1 {
        s.refuse(
            "threads",
            "handlers written for PsPIN have a core each",
            "write 1, or another hpu.interface",
        );
    }
    if pspin.is_some() && isa.is_wide() {
        s.refuse("isa", "handlers written for PsPIN are for RV32", "write for example \"rv32imac_zicsr\"");
    }
    HpuSpec {
        cores,
        threads,
        issue,
        clock,
        core: Core { isa, costs, misaligned, overlap },
        isa: compiled_for(isa_text, misaligned),
        memory,
        interconnect: pspin.and_then(|_| interconnect::read(reader)),
        pspin,
        memories,
        contexts: s.count_or("contexts", 1..=1 << 20, 4096, "messages for handlers that may be in flight")
            as u32,
        applications: s.count_or("applications", 1..=4096, 64, "applications that the card separates") as u32,
        code: size("code", 16 << 20, "program memory of one program"),
        stack,
        parked: s.count_or("parked", 0..=1024, 1, "handlers that have yielded, on each core") as u32,
        scheduling,
        ring: s.count_or("ring", 1..=1 << 16, 1, "places of each processor for packets, used in turn") as u32,
        packets: (scheduling == Scheduling::HomeCluster).then(|| packets::read(reader)),
        handler_start,
        handler_end,
        printf,
        printf_byte,
        cycle_limit: s.count("cycle_limit", 1..=1 << 40, "cycles after which a handler is stopped"),
        dma_handles: s.count("dma_handles", 1..=1024, "DMA transfers that a handler may have in flight")
            as u32,
    }
}
