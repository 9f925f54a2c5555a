//! Processors that run handlers written for PsPIN: `hpu.interface`, and the command unit in `[hpu.commands]`.

use crate::spin::spec::{Level, MemorySpec, Piece, pspin_map as map};
use nicety_spec::Reader;

/// The command unit of a processor, in cycles of the processors' clock, and the memory of its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandsSpec {
    /// Bytes of a packet that are sent in a cycle.
    pub beat: u64,
    /// From the issue of a send to its completion, beside its beats.
    pub send: u64,
    /// The same of a write of host memory, beside its way over the bus.
    pub to_host: u64,
    /// The same of a read.
    pub from_host: u64,
    /// Bytes of each cluster's memory that handlers have.
    pub scratchpad: u32,
    /// Protection entries of a core.
    pub protection: u32,
}

/// Reads `hpu.interface`, and what goes with PsPIN's.
pub(super) fn read(
    reader: &Reader<'_>,
    memories: &MemorySpec,
    cores: usize,
    stack: u32,
) -> Option<CommandsSpec> {
    let hpu = reader.section("hpu");
    let doc = "the interface that handlers are written for: nicety.h, or the headers of PsPIN";
    if hpu.choice_or("interface", &["nicety", "pspin"], "nicety", doc) == "nicety" {
        return None;
    }
    let s = reader.section("hpu.commands");
    let cycles = |key, doc| s.count(key, 0..=1_000_000, doc);
    let spec = CommandsSpec {
        beat: s.size("beat", 1..=4096, "bytes of a packet that are sent in a cycle"),
        send: cycles("send", "cycles of a send, beside those of its bytes"),
        to_host: cycles("to_host", "cycles of a write of host memory, beside the bus"),
        from_host: cycles("from_host", "cycles of a read of host memory, beside the bus"),
        scratchpad: hpu.size(
            "scratchpad",
            0..=u64::from(map::L1_EACH - map::PADS),
            "bytes of each cluster's memory that handlers have",
        ) as u32,
        protection: hpu.count_or("protection", 1..=1024, 16, "protection entries of a core") as u32,
    };
    if memories.is_shared() {
        hpu.refuse(
            "interface",
            "accesses of handlers written for PsPIN do not wait for one another here",
            "write contended = false and cached = false in each level of [memory], or interface = \"nicety\"",
        );
    }
    if [Piece::State, Piece::Data].iter().any(|piece| memories.place(*piece) == Level::L1) {
        hpu.refuse(
            "interface",
            "handler memory of PsPIN, with states and data, is not in a cluster's L1",
            "write memory.state = \"l2\" and memory.data = \"l2\"",
        );
    }
    let clusters = cores / memories.cluster.max(1);
    if clusters > map::CLUSTERS {
        hpu.refuse(
            "cores",
            &format!(
                "{clusters} clusters: a task of PsPIN has the scratchpads of {} clusters",
                map::CLUSTERS
            ),
            &format!("write {} or fewer, or raise memory.cluster", map::CLUSTERS * memories.cluster),
        );
    }
    let each = map::RUNTIME / memories.cluster.clamp(1, 1024) as u32;
    if stack > each {
        hpu.refuse(
            "stack",
            &format!(
                "the stacks of a cluster's {} cores have {} bytes in all",
                memories.cluster,
                map::RUNTIME
            ),
            &format!("write \"{each} B\" or less"),
        );
    }
    Some(spec)
}
