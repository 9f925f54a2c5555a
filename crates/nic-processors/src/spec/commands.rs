//! Processors that run handlers written for PsPIN or FPsPIN: `hpu.interface`, and the command unit in `[hpu.commands]`.

use crate::spec::{Level, MemorySpec, Piece, clusters, pspin_map as map};
use nicety_spec::{Reader, Section};

/// The command unit of a processor, in cycles of the processors' clock, and the memory of its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandsSpec {
    /// Bytes of a packet that are sent per cycle.
    pub beat: u64,
    /// Cycles from the issue of a send to its completion, without its beats.
    pub send: u64,
    /// The same for a write to host memory, without its time on the bus.
    pub to_host: u64,
    /// The same for a read.
    pub from_host: u64,
    /// Commands in flight per engine of the card, which has three. 0 for no limit.
    pub engine_commands: u32,
    /// Commands of a cluster that wait for engines, in order across all kinds. 0 for no limit.
    pub cluster_queue: u32,
    /// Feedbacks that a core holds for its handlers' commands. A core that holds one issues no command. 0 for no
    /// limit.
    pub feedbacks: u32,
    /// Bytes of the header in each packet of `spin_rdma_put`.
    pub put_header: u64,
    /// Bytes of each cluster's memory for handlers.
    pub scratchpad: u32,
    /// Protection entries of a core.
    pub protection: u32,
    /// Cycles of FPsPIN's call that reads the core's cycle counter, without the instructions that pass its arguments.
    /// None if handlers are not written for FPsPIN.
    pub cycle_call: Option<u64>,
}

/// Mean distance of two calls in FPsPIN's own runs: 104 cycles (examples/udp_ping/data/udp, counter 2). The call
/// itself has 10 instructions of these.
const CYCLE_CALL: u64 = 94;

/// The interface of PsPIN, that of its version for FPGAs, and the most clusters of a card with the latter. The host's
/// answers and the runtime have places for the cores of that many clusters.
const PSPIN: &str = "pspin";
const FPSPIN: &str = "fpspin";
const FPSPIN_CLUSTERS: usize = 2;

pub fn interface(reader: &Reader<'_>) -> &'static str {
    let doc = "the interface that handlers are written for: nicety.h, or the headers of PsPIN or FPsPIN";
    reader.section("hpu").choice_or("interface", &["nicety", PSPIN, FPSPIN], "nicety", doc)
}

/// Returns whether handlers are written for PsPIN or FPsPIN.
pub(super) fn is_pspins(reader: &Reader<'_>) -> bool {
    [PSPIN, FPSPIN].contains(&interface(reader))
}

impl CommandsSpec {
    /// Returns the name of the interface that handlers are written for.
    pub const fn interface(&self) -> &'static str {
        if self.cycle_call.is_some() { FPSPIN } else { PSPIN }
    }
}

/// Refuses memories and cores that the interface does not allow.
fn check(hpu: &Section<'_>, spec: &CommandsSpec, memories: &MemorySpec, cores: usize) {
    if spec.cycle_call.is_some() && cores / memories.cluster.max(1) > FPSPIN_CLUSTERS {
        hpu.refuse(
            "interface",
            "FPsPIN's card has two clusters, and its host data has flags for their cores",
            &format!("write hpu.cores = {} or fewer", FPSPIN_CLUSTERS * memories.cluster),
        );
    }
    if memories.is_shared() {
        hpu.refuse(
            "interface",
            "accesses of handlers written for PsPIN do not wait for one another here",
            "write contended = false and cached = false in each level of [memory], or interface = \"nicety\" without [hpu.commands], hpu.scratchpad and hpu.protection",
        );
    }
    if [Piece::State, Piece::Data].iter().any(|piece| memories.place(*piece) == Level::L1) {
        hpu.refuse(
            "interface",
            "handler memory of PsPIN, with states and data, is not in a cluster's L1",
            "write memory.state = \"l2\" and memory.data = \"l2\"",
        );
    }
}

/// Reads the keys of PsPIN's interface, if handlers are written for it.
pub(super) fn read(
    reader: &Reader<'_>,
    memories: &MemorySpec,
    cores: usize,
    stack: u32,
) -> Option<CommandsSpec> {
    if !is_pspins(reader) {
        return None;
    }
    let hpu = reader.section("hpu");
    let s = reader.section("hpu.commands");
    let cycles = |key, doc| s.count(key, 0..=1_000_000, doc);
    let spec = CommandsSpec {
        beat: s.size("beat", 1..=4096, "bytes of a packet that a send moves in a cycle"),
        send: cycles("send", "cycles of a send, in addition to those of its bytes"),
        to_host: cycles("to_host", "cycles of a write of host memory, in addition to the bus"),
        from_host: cycles("from_host", "cycles of a read of host memory, in addition to the bus"),
        engine_commands: s.count_or(
            "engine_commands",
            0..=1 << 20,
            0,
            "commands in flight of each of three engines (direct writes, sends, DMA with the host), for the whole card; 0 for any number",
        ) as u32,
        cluster_queue: s.count_or(
            "cluster_queue",
            0..=1 << 20,
            0,
            "commands of a cluster that wait for engines, in order whatever their kind; 0 for any number",
        ) as u32,
        feedbacks: s.count_or(
            "feedbacks",
            0..=1,
            0,
            "1 if a core holds the feedback of one handler until its commands have ended, and issues no \
             commands until then; 0 without a limit",
        ) as u32,
        put_header: s.size_or("put_header", 0..=4096, "0 B", "the header in each packet of spin_rdma_put"),
        scratchpad: hpu.size(
            "scratchpad",
            0..=u64::from(map::L1_EACH - map::PADS),
            "bytes of each cluster's memory that handlers have",
        ) as u32,
        protection: hpu.count_or("protection", 1..=1024, 16, "protection entries of a core") as u32,
        cycle_call: (interface(reader) == FPSPIN).then(|| {
            hpu.count_or(
                "cycle_call",
                0..=1_000_000,
                CYCLE_CALL,
                "cycles of FPsPIN's cycles(), in addition to the instructions that pass arguments",
            )
        }),
    };
    check(&hpu, &spec, memories, cores);
    clusters::check(reader, memories.cluster as u64, cores as u64, stack);
    Some(spec)
}
