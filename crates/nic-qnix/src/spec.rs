//! The specification of a QNIX card.

use nicety_host::{BusSpec, KernelSpec};
use nicety_nic_core::{NodeSpec, read_kernel, read_node};
use nicety_spec::{Reader, Section};
use nicety_types::{Duration, Frequency, Gap};

/// The specification of a QNIX card.
#[derive(Clone, Debug)]
pub struct QnixSpec {
    /// The surroundings of the card: host and network.
    pub node: NodeSpec,
    /// The bus between host and card.
    pub bus: BusSpec,
    /// The host's operating system.
    pub kernel: KernelSpec,
    /// The library in the process.
    pub library: LibrarySpec,
    /// Limits of the card and its interfaces.
    pub limits: LimitsSpec,
    /// The card's memory.
    pub memory: MemorySpec,
    /// The control program.
    pub program: ProgramSpec,
    /// The DMA controller.
    pub dma: DmaSpec,
    /// Maximum payload of a packet in bytes.
    pub packet: u64,
    /// Maximum size in bytes of a message that a process sends to the card by programmed I/O.
    pub pio: u64,
}

/// The library in the process. The section `host` has the times to post a command and to notice a doorbell.
#[derive(Clone, Copy, Debug)]
pub struct LibrarySpec {
    /// Size of a command in the Command Queue in bytes.
    pub command: u64,
    /// Time to begin to write descriptors into a Context Region, without the writes themselves.
    pub context: Duration,
    /// Time per byte to copy from a buffer to a Buffer Pool, or back.
    pub copy: Gap,
}

/// Limits of the card and its interfaces.
#[derive(Clone, Copy, Debug)]
pub struct LimitsSpec {
    /// Number of virtual network interfaces, and thus maximum number of registered processes.
    pub vnis: u32,
    /// Maximum number of pending sends of a process.
    pub sends: u32,
    /// Maximum number of pending receives of a process.
    pub receives: u32,
    /// Maximum size of a message in bytes.
    pub message: u64,
    /// Maximum size of a Buffer Pool in bytes.
    pub pool: u64,
}

/// The partition of the card's memory.
#[derive(Clone, Copy, Debug)]
pub struct MemorySpec {
    /// Size of the memory in bytes.
    pub size: u64,
    /// Size in bytes of the control program and its own state.
    pub program: u64,
    /// Size in bytes of a virtual network interface without its Context Regions.
    pub interface: u64,
    /// Size of a page's descriptor in bytes.
    pub descriptor: u64,
    /// Size in bytes of the status of a buffered packet.
    pub status: u64,
    /// Maximum number of staged packets in the transmit path.
    pub staging: u32,
}

/// The control program. The duration of each step is in cycles of the card's processor.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSpec {
    /// The processor's clock.
    pub clock: Frequency,
    /// Number of cycles to poll one source of work.
    pub poll: u64,
    /// Number of cycles to take a command out of a Command Queue.
    pub command: u64,
    /// Number of cycles to build a packet's header and to hand the packet to the link.
    pub header: u64,
    /// Number of cycles to examine a received packet.
    pub receive: u64,
    /// Number of cycles to compare one message with one receive.
    pub compare: u64,
    /// Number of cycles to program a DMA channel.
    pub transfer: u64,
}

/// The DMA controller.
#[derive(Clone, Copy, Debug)]
pub struct DmaSpec {
    /// Number of channels. Each channel does one transfer at a time.
    pub channels: usize,
    /// Time to set up a channel, before the channel moves data or a doorbell over the bus.
    pub setup: Duration,
    /// Size of a doorbell in bytes.
    pub doorbell_bytes: u64,
}

impl LimitsSpec {
    /// Maximum number of pages of a message: the number of pages of the largest message.
    pub const fn message_pages(&self, page: u64) -> u64 {
        self.message.div_ceil(page)
    }
}

impl QnixSpec {
    /// Size in bytes of the Context Regions of an interface: one region per send and receive, with one descriptor per
    /// page.
    pub const fn contexts(&self) -> u64 {
        let pages = self.limits.message_pages(self.kernel.page);
        (self.limits.sends as u64 + self.limits.receives as u64) * pages * self.memory.descriptor
    }

    /// Number of bytes of the card's memory that are allocated before any message is buffered.
    pub const fn fixed_memory(&self) -> u64 {
        let interfaces = self.limits.vnis as u64 * (self.contexts() + self.memory.interface);
        let packets = (self.node.link.buffer + self.memory.staging) as u64;
        self.memory.program + interfaces + packets * self.packet
    }
}

/// Reads the specification of a QNIX card.
pub(super) fn read_qnix(reader: &Reader<'_>) -> QnixSpec {
    let bus = nicety_nic_core::read_bus(reader);
    let node = read_node(reader);
    let kernel = read_kernel(reader);
    let library = read_library(&reader.section("library"));
    let limits = read_limits(&reader.section("limits"));
    let m = reader.section("memory");
    let memory = read_memory(&m);
    let program = read_program(&reader.section("program"));
    let dma = read_dma(&reader.section("dma"));
    let s = reader.section("packet");
    let packet = s.size("payload", 64..=65_536, "maximum payload of a packet");
    let s = reader.section("pio");
    let pio = s.size("limit", 0..=1 << 20, "longest message that goes to the card by programmed I/O");
    let region = limits.message_pages(kernel.page) * memory.descriptor;
    if pio > region {
        s.refuse(
            "limit",
            &format!("a message by programmed I/O lies in one Context Region, which has {region} B"),
            &format!("write {region} B or less, or raise limits.message"),
        );
    }
    let spec = QnixSpec { node, bus, kernel, library, limits, memory, program, dma, packet, pio };
    let (fixed, status) = (spec.fixed_memory(), spec.memory.status);
    if fixed + packet + status > memory.size {
        m.refuse(
            "size",
            &format!("interfaces, packets and the control program take {fixed} B, and the rest is too small to buffer a packet"),
            "raise it, or lower limits.vnis",
        );
    }
    spec
}

fn read_library(s: &Section<'_>) -> LibrarySpec {
    LibrarySpec {
        command: s.size("command", 4..=4096, "a command in the Command Queue"),
        context: s.time("context", "time to begin to write descriptors, in addition to the writes"),
        copy: s.gap("copy", "time per byte of a copy between a buffer and the Buffer Pool"),
    }
}

fn read_limits(s: &Section<'_>) -> LimitsSpec {
    LimitsSpec {
        vnis: s.count("vnis", 1..=4096, "virtual network interfaces, one for each registered process") as u32,
        sends: s.count(
            "sends",
            1..=4096,
            "sends of a process that are pending until it has seen their completion",
        ) as u32,
        receives: s.count(
            "receives",
            1..=4096,
            "receives of a process that are pending until it has seen their completion",
        ) as u32,
        message: s.size("message", 1..=1 << 30, "largest message"),
        pool: s.size("pool", 1..=1 << 30, "largest Buffer Pool"),
    }
}

fn read_memory(s: &Section<'_>) -> MemorySpec {
    MemorySpec {
        size: s.size("size", 1 << 16..=1 << 40, "the card's memory"),
        program: s.size("program", 0..=1 << 30, "the control program and its own state"),
        interface: s.size("interface", 0..=1 << 30, "an interface without its Context Regions"),
        descriptor: s.size("descriptor", 4..=4096, "the descriptor of a page in a Context Region"),
        status: s.size("status", 0..=4096, "the status of a buffered packet"),
        staging: s.count("staging", 1..=1 << 16, "packets staged in the transmit path") as u32,
    }
}

fn read_program(s: &Section<'_>) -> ProgramSpec {
    let cycles = |key, doc| s.count(key, 0..=1_000_000, doc);
    ProgramSpec {
        clock: s.frequency("clock", "clock of the card's processor"),
        // The polling loop never ends, so each poll must take time.
        poll: s.count("poll", 1..=1_000_000, "cycles to poll a source of work"),
        command: cycles("command", "cycles to take a command"),
        header: cycles("header", "cycles to build a packet's header and hand the packet to the link"),
        receive: cycles("receive", "cycles to examine a received packet"),
        compare: cycles("compare", "cycles to compare a message with one receive"),
        transfer: cycles("transfer", "cycles to program a DMA channel"),
    }
}

fn read_dma(s: &Section<'_>) -> DmaSpec {
    DmaSpec {
        channels: s.count("channels", 1..=64, "channels of the DMA controller") as usize,
        setup: s.time("setup", "a channel's time before a transfer uses the bus"),
        doorbell_bytes: s.size("doorbell_bytes", 1..=4096, "a doorbell in host memory"),
    }
}
