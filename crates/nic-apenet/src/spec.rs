//! The specification of an APEnet+ card.

use nicety_host::{BusSpec, GpuSpec, KernelSpec};
use nicety_nic_core::{NodeSpec, read_bus, read_kernel, read_node};
use nicety_spec::{Reader, Section};
use nicety_types::Duration;

/// The specification of an APEnet+ card.
#[derive(Clone, Debug)]
pub struct ApenetSpec {
    /// The surroundings of the card: host and network.
    pub node: NodeSpec,
    /// The bus between host and card.
    pub bus: BusSpec,
    /// The graphics processor of the host, if it has one.
    pub gpu: Option<GpuSpec>,
    /// The host's operating system.
    pub kernel: KernelSpec,
    /// The driver.
    pub driver: DriverSpec,
    /// The transmit ring.
    pub ring: RingSpec,
    /// The DMA engines.
    pub dma: DmaSpec,
    /// The TLB.
    pub tlb: TlbSpec,
    /// The embedded processor.
    pub processor: ProcessorSpec,
    /// The event queue.
    pub events: EventsSpec,
    /// Limits of the card.
    pub limits: LimitsSpec,
    /// Messages of `send` and `recv`.
    pub messages: MessagesSpec,
    /// Maximum payload of a packet in bytes.
    pub packet: u64,
}

/// The driver's work on a CPU of the host.
#[derive(Clone, Copy, Debug)]
pub struct DriverSpec {
    /// Time for a put or get, without the time for its descriptors.
    pub operation: Duration,
    /// Time per descriptor.
    pub descriptor: Duration,
    /// Time to copy an event to the queue of the event's process.
    pub event: Duration,
}

/// The transmit ring in host memory.
#[derive(Clone, Copy, Debug)]
pub struct RingSpec {
    /// Capacity of the ring in descriptors.
    pub entries: u64,
    /// Size of a descriptor in bytes.
    pub descriptor: u64,
    /// Maximum number of descriptors that the card holds, and that it fetches at a time.
    pub fetch: u64,
    /// Size of a register write in bytes.
    pub doorbell: u64,
}

/// The DMA engines.
#[derive(Clone, Copy, Debug)]
pub struct DmaSpec {
    /// Number of engines that read host memory.
    pub transmit_engines: usize,
    /// Number of engines that write host memory.
    pub receive_engines: usize,
    /// Time to set up an engine before a transfer uses the bus.
    pub setup: Duration,
    /// Capacity of the transmit FIFO in packets. Packets that are being read, or that wait for the link, occupy it.
    pub fifo: u64,
}

/// The TLB.
#[derive(Clone, Copy, Debug)]
pub struct TlbSpec {
    /// Number of entries. Each entry holds a page.
    pub entries: usize,
    /// Time of a lookup.
    pub lookup: Duration,
}

/// The embedded processor, which serves one command at a time.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorSpec {
    /// Time of a translation.
    pub translation: Duration,
    /// Time of a registration or deregistration, without the time for its pages.
    pub register: Duration,
    /// Time per page of a registration or deregistration.
    pub page: Duration,
}

/// The way in which the driver is notified of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    /// The driver polls the memory of the next event.
    Poll,
    /// The card raises an interrupt.
    Interrupt,
}

impl Notify {
    /// All ways of notification.
    pub const ALL: [Notify; 2] = [Notify::Poll, Notify::Interrupt];

    /// Returns the name of the way in specs and programs.
    pub const fn name(self) -> &'static str {
        match self {
            Notify::Poll => "poll",
            Notify::Interrupt => "interrupt",
        }
    }
}

/// Granularity of the completions of one side of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// A completion for each packet. The driver reads every completion. The last completion of a message is the
    /// message's event.
    Packet,
    /// A completion for each message.
    Message,
}

/// The engine that writes a completion to host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The engine that moved the bytes, after a second set-up.
    Own,
    /// An engine of the receive side. It also writes completions of the transmit side.
    Receive,
    /// No engine: the card writes a completion without the set-up of an engine.
    Bus,
}

/// The card's event queue in host memory, and the event queues of the processes.
#[derive(Clone, Copy, Debug)]
pub struct EventsSpec {
    /// Capacity of the card's queue in events.
    pub entries: u64,
    /// Size of an event in bytes.
    pub bytes: u64,
    /// Capacity of a process's queue in events.
    pub user: u64,
    /// The default way in which the driver is notified of events.
    pub notify: Notify,
    /// Granularity of receive completions: a packet or a message.
    pub received: Per,
    /// Granularity of transmit completions: a packet or a message.
    pub sent: Per,
    /// The engine that writes completions.
    pub writer: Writer,
}

/// Limits of the card.
#[derive(Clone, Copy, Debug)]
pub struct LimitsSpec {
    /// Maximum number of registered regions.
    pub regions: u64,
    /// Maximum number of registered pages.
    pub pages: u64,
    /// Maximum number of unused streaming buffers of a process.
    pub streaming: u64,
    /// Maximum number of gets of this card without a reply. Also the maximum number of gets to this card that it has
    /// not answered.
    pub gets: u64,
    /// Maximum size of a message in bytes.
    pub message: u64,
}

/// Messages of `send` and `recv`.
#[derive(Clone, Copy, Debug)]
pub struct MessagesSpec {
    /// Maximum size in bytes of a message that is sent into a streaming buffer. A longer message is put into the buffer
    /// of its receive.
    pub eager: u64,
    /// Maximum number of messages to one host that no receive has taken.
    pub window: u64,
}

/// Reads the specification of an APEnet+ card.
pub(super) fn read_apenet(reader: &Reader<'_>) -> ApenetSpec {
    let bus = read_bus(reader);
    let node = read_node(reader);
    let kernel = read_kernel(reader);
    let gpu = reader.section("gpu");
    let gpu = gpu.has("memory").then(|| read_gpu(&gpu));
    let s = reader.section("driver");
    let driver = DriverSpec {
        operation: s.time("operation", "the driver's time for a put or get, apart from its descriptors"),
        descriptor: s.time("descriptor", "the driver's time for a descriptor"),
        event: s.time("event", "the driver's time to copy an event to the queue of its process"),
    };
    let ring = read_ring(&reader.section("ring"));
    let s = reader.section("dma");
    let dma = DmaSpec {
        transmit_engines: s.count("transmit_engines", 1..=16, "DMA engines that read") as usize,
        receive_engines: s.count("receive_engines", 1..=16, "DMA engines that write") as usize,
        setup: s.time("setup", "an engine's time before a transfer uses the bus"),
        fifo: s.count("fifo", 1..=4096, "packets that are being read, or wait for the link"),
    };
    let s = reader.section("tlb");
    let tlb = TlbSpec {
        entries: s.count(
            "entries",
            1..=1 << 20,
            "pages that the TLB holds; it replaces the least recently used page",
        ) as usize,
        lookup: s.time("lookup", "a lookup in the TLB"),
    };
    let s = reader.section("processor");
    let processor = ProcessorSpec {
        translation: s
            .time("translation", "the embedded processor's time for an address that the TLB does not have"),
        register: s.time(
            "register",
            "the embedded processor's time for a registration or deregistration, apart from its pages",
        ),
        page: s
            .time("page", "the embedded processor's time for each page of a registration or deregistration"),
    };
    let events = read_events(&reader.section("events"));
    let limits = read_limits(&reader.section("limits"));
    let s = reader.section("packet");
    let packet = s.size("payload", 64..=65_536, "maximum payload of a packet");
    let s = reader.section("messages");
    let messages = MessagesSpec {
        eager: s.size("eager", 0..=1 << 20, "longest message of send that goes into a streaming buffer"),
        window: s.count("window", 1..=1024, "messages to one host that no receive has taken"),
    };
    ApenetSpec { node, bus, gpu, kernel, driver, ring, dma, tlb, processor, events, limits, messages, packet }
}

fn read_gpu(s: &Section<'_>) -> GpuSpec {
    let page = s.size("page", 4096..=1 << 30, "a page of the graphics processor's memory");
    if !page.is_power_of_two() {
        s.refuse("page", "a page is a power of two", "write for example \"64 KiB\"");
    }
    GpuSpec {
        memory: s.size("memory", 1 << 20..=1 << 44, "bytes of the graphics processor's memory"),
        page,
        read_latency: s
            .time("read_latency", "additional time of a read, compared with a read of host memory"),
        read_gap: s.gap("read_gap", "time per byte of peer-to-peer reads over the bus"),
        write_latency: s
            .time("write_latency", "additional time of a write, compared with a write to host memory"),
        write_gap: s.gap("write_gap", "time per byte of peer-to-peer writes over the bus"),
    }
}

fn read_ring(s: &Section<'_>) -> RingSpec {
    RingSpec {
        entries: s.count("entries", 1..=1 << 20, "descriptors of the transmit ring"),
        descriptor: s.size("descriptor", 16..=4096, "a descriptor in the transmit ring"),
        fetch: s.count(
            "fetch",
            1..=4096,
            "descriptors that the card holds, and the maximum number of descriptors in a fetch",
        ),
        doorbell: s.size("doorbell", 1..=64, "a write to a register of the card"),
    }
}

fn read_events(s: &Section<'_>) -> EventsSpec {
    EventsSpec {
        entries: s.count("entries", 1..=1 << 24, "events that the card's queue in host memory holds"),
        bytes: s.size("bytes", 4..=4096, "an event in the card's queue"),
        user: s.count("user", 1..=1 << 24, "events that the queue of a process holds"),
        notify: match s.choice(
            "notify",
            &["poll", "interrupt"],
            "the way in which the driver is notified of events",
        ) {
            "interrupt" => Notify::Interrupt,
            _ => Notify::Poll,
        },
        received: read_per(s, "received", "the unit for which the receive side writes a completion"),
        sent: read_per(s, "sent", "the unit for which the transmit side writes a completion"),
        writer: match s.choice("writer", &["own", "receive", "bus"], "the engine that writes a completion") {
            "own" => Writer::Own,
            "receive" => Writer::Receive,
            _ => Writer::Bus,
        },
    }
}

fn read_per(s: &Section<'_>, key: &str, about: &str) -> Per {
    match s.choice(key, &["packet", "message"], about) {
        "packet" => Per::Packet,
        _ => Per::Message,
    }
}

fn read_limits(s: &Section<'_>) -> LimitsSpec {
    LimitsSpec {
        regions: s.count("regions", 1..=1 << 20, "registered regions"),
        pages: s.count("pages", 1..=1 << 30, "registered pages"),
        streaming: s.count("streaming", 1..=1 << 20, "unused streaming buffers of a process"),
        gets: s.count(
            "gets",
            1..=1 << 16,
            "gets of this card without a reply, and gets of other cards that it must answer",
        ),
        message: s.size("message", 1..=(1 << 32) - 1, "largest message"),
    }
}
