//! The spec of a Portals 4 card with packet handlers.

mod banks;
mod cache_shape;
mod clusters;
mod commands;
mod data_cache;
mod divisor;
mod interconnect;
mod memory;
mod overlap;
mod packets;
pub mod protection;
pub mod pspin_map;
mod timings;

pub use commands::CommandsSpec;
pub use data_cache::DataCacheSpec;
pub use interconnect::InterconnectSpec;
pub use memory::{InstructionCacheSpec, Level, LevelSpec, MemorySpec, Piece};
pub use packets::PacketsSpec;
pub(crate) use timings::{Timings, own_cycles};

use nicety_fabric::{LinkSpec, RouterSpec, SwitchSpec};
use nicety_host::{BusSpec, HostSpec};
use nicety_hpu::{Core, Isa, Misaligned};
use nicety_nic_core::parts::transport::TransportSpec;
use nicety_nic_core::{
    NodeSpec, read_costs, read_isa, read_misaligned, read_node, read_ports, read_transport,
};
use nicety_portals::{Features, Limits};
use nicety_spec::Reader;
use nicety_types::{Duration, Frequency};
use std::sync::Arc;

/// A Portals 4 card with packet handlers.
#[derive(Clone, Debug)]
pub struct SpinSpec {
    /// The host.
    pub host: HostSpec,
    /// The bus between host and card.
    pub bus: BusSpec,
    /// The link.
    pub link: LinkSpec,
    /// Ports of the card. Each has such a link.
    pub ports: u32,
    /// The switches, for topologies with switches.
    pub switch: SwitchSpec,
    /// The gap between the starts of messages.
    pub send_gap: Duration,
    /// Places of the send queue for messages of handlers.
    pub send_queue: u64,
    /// Most payload of a packet, in bytes.
    pub packet_payload: u64,
    /// Matching a header packet.
    pub match_first: Duration,
    /// Matching each further packet.
    pub match_further: Duration,
    /// Serving a command of the host.
    pub match_command: Duration,
    /// Computing an atomic operation, between reading host memory and writing it back.
    pub atomic: Duration,
    /// Operations in flight that need a reply.
    pub replies: u32,
    /// The limits of the Portals interface.
    pub limits: Limits,
    /// The protocol by which messages of `send` wait for their receives.
    pub messages: MessagesSpec,
    /// Reliable transport.
    pub transport: TransportSpec,
    /// The handler processors.
    pub hpu: Arc<HpuSpec>,
    /// The router of a host on a torus, if the card contains one.
    pub router: Option<RouterSpec>,
    /// One-way time to or from the job launcher.
    pub barrier: Duration,
}

/// The scheduling of handler processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// First come, first served: the handler that has waited longest.
    FirstCome,
    /// The application with the least use for its weight.
    WeightedFair,
    /// The packet that has waited longest in its cluster. That is the home cluster of its message, unless it is full.
    HomeCluster,
}

/// The handler processors of a card.
#[derive(Clone, Debug)]
pub struct HpuSpec {
    /// Number of processors.
    pub cores: usize,
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

/// The protocol of messages that may arrive before their receives are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagesSpec {
    /// The longest eager message, in bytes. It waits for its receive in a buffer of the receiver.
    pub eager: u64,
    /// Number of buffers.
    pub buffers: u32,
    /// Size of each buffer in bytes.
    pub buffer: u64,
}

pub(super) fn read_spin(reader: &Reader<'_>) -> SpinSpec {
    let bus = nicety_nic_core::read_bus(reader);
    let transport = read_transport(reader);
    let NodeSpec { host, mut link, switch, router, barrier, .. } = read_node(reader);
    let ports = read_ports(reader);
    if transport.reliable {
        link.header += transport.header;
    }
    let s = reader.section("send");
    let send_gap = s.time("gap", "between the starts of messages: g");
    let send_queue = s.count("queue", 1..=1 << 20, "messages that handlers may have waiting to be sent");
    let s = reader.section("packet");
    let packet_payload = s.size("payload", 8..=65_536, "most payload that a packet carries");
    let s = reader.section("match");
    let match_first = s.time("first", "matching a header packet: a search of the lists");
    let match_further = s.time("further", "matching each further packet of a message");
    let match_command = s.time("command", "serving a host's command");
    let s = reader.section("limits");
    let limit = |key, doc| s.count(key, 1..=1 << 24, doc) as u32;
    let limits = Limits {
        entries: limit("match_entries", "match entries"),
        descriptors: limit("descriptors", "memory descriptors"),
        counters: limit("counters", "counting events"),
        event_queues: limit("event_queues", "event queues"),
        event_queue_depth: limit("event_queue_depth", "events in one queue"),
        portal_table: limit("portal_table", "portal table entries"),
        triggered: limit("triggered", "triggered operations that wait"),
        unexpected_headers: limit("unexpected_headers", "unexpected headers"),
        operations: limit("operations", "operations of the host and of handlers that have not ended"),
        atomic_bytes: s.size("atomic", 8..=1 << 20, "most bytes of an atomic"),
        fetch_atomic_bytes: s.size("fetch_atomic", 8..=1 << 20, "most bytes of a fetch-and-atomic or swap"),
        features: Features::all(),
        ..Limits::default()
    };
    let replies = limit("replies", "gets, fetch-and-atomics and swaps that wait for their reply to be sent");
    let s = reader.section("atomic");
    let atomic =
        s.time("compute", "computing an atomic operation, between reading host memory and writing it");
    let messages = read_messages(reader);
    let hpu = Arc::new(read_hpu(reader));
    if let Some(packets) = &hpu.packets {
        packets.check(reader, packet_payload, hpu.pspin.is_some());
    }
    SpinSpec {
        host,
        bus,
        link,
        ports,
        switch,
        send_gap,
        send_queue,
        packet_payload,
        match_first,
        match_further,
        match_command,
        atomic,
        replies,
        limits,
        messages,
        transport,
        hpu,
        router,
        barrier,
    }
}

/// Returns the instruction set for compilers. Where hardware handles misaligned accesses (RISC-V's Zicclsm),
/// compilers may use them.
fn compiled_for(isa: String, misaligned: Misaligned) -> String {
    match misaligned {
        Misaligned::Trap => isa,
        Misaligned::Costs => format!("{isa}_zicclsm"),
    }
}

/// Reads the handler processors of a card from the sections `[hpu]`, `[hpu.cycles]` and `[memory]`.
pub fn read_hpu(reader: &Reader<'_>) -> HpuSpec {
    let s = reader.section("hpu.cycles");
    let (costs, overlap) = overlap::read(reader, read_costs(&s));
    let handler_start = s.count("handler_start", 0..=1_000_000, "starting a handler");
    let handler_end = s.count("handler_end", 0..=1_000_000, "finishing a handler");
    let printf = s.count_or("printf", 0..=1_000_000, 60, "a call of printf");
    let printf_byte = s.count_or("printf_byte", 0..=10_000, 20, "each byte that printf prints");
    let s = reader.section("hpu");
    let cores = s.count("cores", 1..=clusters::CORES, "handler processors") as usize;
    let clock = s.frequency("clock", "clock of the handler processors");
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
    let around = memory::Around {
        cores,
        memory,
        clock_hz: clock.hz(),
        costs,
        overlaps: overlap.is_some(),
        pspin_stack: commands::is_pspins(reader).then_some(stack),
    };
    let memories = memory::read(reader, &around);
    let pspin = commands::read(reader, &memories, cores, stack);
    HpuSpec {
        cores,
        clock,
        core: Core { isa, costs, misaligned, overlap },
        isa: compiled_for(isa_text, misaligned),
        memory,
        interconnect: pspin.and_then(|_| interconnect::read(reader)),
        pspin,
        memories,
        contexts: s.count_or("contexts", 1..=1 << 20, 4096, "messages for handlers that may be in flight")
            as u32,
        applications: s.count_or("applications", 1..=4096, 64, "applications that are kept apart") as u32,
        code: size("code", 16 << 20, "program memory of one program"),
        stack,
        parked: s.count_or("parked", 0..=1024, 1, "handlers that have yielded, on each core") as u32,
        scheduling,
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

fn read_messages(reader: &Reader<'_>) -> MessagesSpec {
    let s = reader.section("messages");
    let eager =
        s.size_or("eager", 0..=1 << 30, "2 KiB", "the longest message that is buffered until it is received");
    let buffers =
        s.count_or("buffers", 1..=4096, 32, "buffers for messages that come before their receives") as u32;
    let buffer = s.size_or("buffer", 64..=1 << 30, "2 MiB", "bytes of each such buffer");
    if buffer < eager {
        s.refuse(
            "buffer",
            "a buffer holds at least one message of messages.eager",
            "raise messages.buffer, or lower messages.eager",
        );
    }
    MessagesSpec { eager, buffers, buffer }
}
