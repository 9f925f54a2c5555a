//! The spec of a network flow processor.

mod channels;
mod port;

pub use channels::{ChannelSpec, DriverSpec, ManagerSpec};
pub use port::PortSpec;

use crate::map::{self, MemoryKind};
use nicety_host::BusSpec;
use nicety_hpu::{Core, Extension, Isa};
use nicety_nic_core::{NodeSpec, read_costs, read_isa, read_misaligned, read_node};
use nicety_spec::{Reader, Section};
use nicety_types::Frequency;

/// The spec of a network flow processor. Durations are in cycles of its single clock.
#[derive(Clone, Debug)]
pub struct NfpSpec {
    /// The surroundings of the card: host and network.
    pub node: NodeSpec,
    /// The bus between host and card.
    pub bus: BusSpec,
    /// Software and managers between the host's programs and the card's processes.
    pub channels: ChannelSpec,
    /// The Ethernet port.
    pub port: PortSpec,
    /// Number of microengines.
    pub cores: usize,
    /// Microengines per island. The microengines of an island share a CLS and a CTM.
    pub island: usize,
    /// Contexts per microengine.
    pub contexts: usize,
    /// The clock.
    pub clock: Frequency,
    /// Instruction set and cycle costs.
    pub core: Core,
    /// The ISA as written in the spec.
    pub isa: String,
    /// Bytes of a microengine's local memory.
    pub local_memory: u32,
    /// Bytes of its code store.
    pub code: u32,
    /// The most bytes of one reference.
    pub transfer: u32,
    /// Transfer registers for a direct message, of four bytes each.
    pub message_registers: u32,
    /// Cycles of a context switch.
    pub switch: u64,
    /// Cycles of the CRC of a word, including its instruction.
    pub crc32: u64,
    /// Cycles from the sending of a signal until a context sees it.
    pub signal: u64,
    /// The memories, by [`MemoryKind::ALL`].
    pub memories: [MemorySpec; 4],
}

/// A memory outside the microengines. Durations are in cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySpec {
    /// Its size in bytes.
    pub size: u32,
    /// Latency of a read: from the reference to its first bytes.
    pub read: u64,
    /// Latency of a write: from the reference to its completion.
    pub write: u64,
    /// Latency of an atomic reference: from the reference to its completion.
    pub atomic: u64,
    /// The least number of cycles between the starts of two references.
    pub gap: u64,
    /// Bytes that it moves per cycle.
    pub width: u64,
}

impl NfpSpec {
    /// Number of islands.
    pub fn islands(&self) -> usize {
        self.cores.div_ceil(self.island)
    }

    /// Number of contexts of all microengines.
    pub fn hardware_contexts(&self) -> u16 {
        (self.cores * self.contexts) as u16
    }

    /// The most bytes of a direct message.
    pub fn message(&self) -> u32 {
        4 * self.message_registers
    }

    /// The memory of a kind.
    pub fn memory(&self, kind: MemoryKind) -> &MemorySpec {
        &self.memories[kind as usize]
    }
}

/// Reads the spec of a flow processor.
pub(crate) fn read_processor(reader: &Reader<'_>) -> NfpSpec {
    let s = reader.section("hpu.cycles");
    let costs = read_costs(&s);
    let switch = s.count("switch", 0..=10_000, "a switch from one context to another");
    let crc32 = s.count("crc32", 1..=10_000, "nfp_crc32, including its instruction");
    let least = u64::from(costs.ecall).max(1);
    if crc32 < least {
        s.refuse(
            "crc32",
            "it is less than the cost of the instruction that calls it (command)",
            &format!("write {least} or more"),
        );
    }
    let signal = s.count("signal", 1..=10_000, "from nfp_signal until the other context sees the signal");
    let s = reader.section("hpu");
    let cores = s.count("cores", 1..=1024, "microengines") as usize;
    let island =
        s.count("island", 1..=1024, "microengines of an island, which share a CLS and a CTM") as usize;
    let contexts = s.count("contexts", 1..=8, "contexts of a microengine") as usize;
    let clock = s.frequency("clock", "clock of the microengines and of the memories on the chip");
    let fallback = Isa::RV32I.with(Extension::A).with(Extension::Zicsr);
    let (isa_text, isa) = read_isa(&s, fallback);
    if isa.is_wide() {
        s.refuse(
            "isa",
            "microengines have registers of 32 bits",
            "write an isa of RV32, for example \"rv32i\"",
        );
    }
    let misaligned = read_misaligned(&s);
    let local_memory = s.size("local_memory", 64..=1 << 20, "local memory of a microengine") as u32;
    let code = s.size("code", 64..=16 << 20, "code store of a microengine") as u32;
    let transfer = s.size("transfer", 4..=1024, "the most bytes that one reference moves") as u32;
    let message_registers =
        s.count("message_registers", 1..=256, "transfer registers of 4 bytes that carry a direct message")
            as u32;
    let memories =
        MemoryKind::ALL.map(|kind| read_memory(&reader.section(&format!("memory.{}", kind.key())), kind));
    NfpSpec {
        node: read_node(reader),
        bus: nicety_nic_core::read_bus(reader),
        channels: channels::read(reader),
        port: port::read(reader),
        cores,
        island,
        contexts,
        clock,
        core: Core { isa, costs, misaligned, overlap: None },
        isa: isa_text,
        local_memory,
        code,
        transfer,
        message_registers,
        switch,
        crc32: crc32.max(least),
        signal,
        memories,
    }
}

fn read_memory(s: &Section<'_>, kind: MemoryKind) -> MemorySpec {
    // The space up to the next memory's first address.
    let most = match kind {
        MemoryKind::Cls => map::CTM - map::CLS,
        MemoryKind::Ctm => map::IMEM - map::CTM,
        MemoryKind::Imem => map::EMEM - map::IMEM,
        MemoryKind::Emem => 1 << 31,
    };
    let latency = |key, doc| s.count(key, 1..=100_000, doc);
    MemorySpec {
        size: s.size("size", 64..=u64::from(most), "bytes of it") as u32,
        read: latency("read", "cycles from a reference to the first bytes"),
        write: latency("write", "cycles from a reference to its completion"),
        atomic: latency("atomic", "cycles from an atomic reference to its completion"),
        gap: s.count("gap", 1..=10_000, "cycles between the starts of references"),
        width: s.count("width", 1..=4096, "bytes moved in a cycle"),
    }
}
