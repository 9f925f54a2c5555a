//! The spec of a network flow processor.

mod channels;
mod port;
mod xdp;

pub use channels::{ChannelSpec, DriverSpec, ManagerSpec};
pub use port::PortSpec;
pub use xdp::XdpSpec;

use crate::map::{self, MemoryKind};
use nicety_host::BusSpec;
use nicety_hpu::{Core, Extension, Isa};
use nicety_nic_core::{NodeSpec, read_costs, read_isa, read_misaligned, read_node};
use nicety_spec::{Reader, Section};
use nicety_types::Frequency;

/// The most cards of a host.
const MOST_CARDS: u64 = 16;

/// The spec of a network flow processor. Durations are in cycles of its clock, unless they have a unit.
#[derive(Clone, Debug)]
pub struct NfpSpec {
    /// The surroundings of the card: host and network.
    pub node: NodeSpec,
    /// Number of equal cards in the host, each with its own bus. The first card has the port to the network.
    pub cards: usize,
    /// The bus between host and card.
    pub bus: BusSpec,
    /// Software and managers between the host's programs and the card's processes.
    pub channels: ChannelSpec,
    /// The Ethernet port.
    pub port: PortSpec,
    /// Number of microengines.
    pub cores: usize,
    /// Number of microengines per island. The microengines of an island share a CLS and a CTM.
    pub island: usize,
    /// Number of contexts per microengine.
    pub contexts: usize,
    /// The clock.
    pub clock: Frequency,
    /// Instruction set and cycle costs.
    pub core: Core,
    /// The ISA as written in the spec.
    pub isa: String,
    /// Size of a microengine's local memory in bytes.
    pub local_memory: u32,
    /// Size of a microengine's code store in bytes.
    pub code: u32,
    /// Maximum number of bytes of a reference.
    pub transfer: u32,
    /// Number of transfer registers for a direct message. Each has four bytes.
    pub message_registers: u32,
    /// Cycles of a context switch.
    pub switch: u64,
    /// Cycles of the CRC of a word, including the instruction.
    pub crc32: u64,
    /// Cycles from the sending of a signal until a context sees it.
    pub signal: u64,
    /// The memories, in the order of [`MemoryKind::ALL`].
    pub memories: [MemorySpec; 4],
    /// XDP programs on microengines, if the card has a firmware for them.
    pub xdp: Option<XdpSpec>,
}

/// A memory outside the microengines. Durations are in cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySpec {
    /// The memory's size in bytes.
    pub size: u32,
    /// Latency of a read: from the reference to its first bytes.
    pub read: u64,
    /// Latency of a write: from the reference to its completion.
    pub write: u64,
    /// Latency of an atomic reference: from the reference to its completion.
    pub atomic: u64,
    /// Minimum number of cycles between the starts of two references.
    pub gap: u64,
    /// Number of bytes that the memory transfers per cycle.
    pub width: u64,
}

impl NfpSpec {
    /// Returns the number of islands.
    pub fn islands(&self) -> usize {
        self.cores.div_ceil(self.island)
    }

    /// Returns the number of contexts of all microengines together.
    pub fn hardware_contexts(&self) -> u16 {
        (self.cores * self.contexts) as u16
    }

    /// Returns the maximum length of a direct message in bytes.
    pub fn message(&self) -> u32 {
        4 * self.message_registers
    }

    /// Returns the spec of a memory.
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
    let transfer = s.size("transfer", 4..=1024, "maximum number of bytes that one reference moves") as u32;
    let message_registers =
        s.count("message_registers", 1..=256, "transfer registers of 4 bytes that carry a direct message")
            as u32;
    let memories =
        MemoryKind::ALL.map(|kind| read_memory(&reader.section(&format!("memory.{}", kind.key())), kind));
    let ctm = memories[MemoryKind::Ctm as usize].size;
    let xdp = xdp::read(reader, island, contexts, ctm);
    let cards = reader.section("host").count_or(
        "cards",
        1..=MOST_CARDS,
        1,
        "equal cards in the host, each with its bus",
    );
    NfpSpec {
        node: read_node(reader),
        cards: cards as usize,
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
        xdp,
    }
}

fn read_memory(s: &Section<'_>, kind: MemoryKind) -> MemorySpec {
    // A memory must fit into the space up to the first address of the next memory.
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
