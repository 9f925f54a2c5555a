//! The spec of an Ethernet card and of its host's kernel path.

use crate::driver_spec::{MOST_PACKET, instructions, read_driver, read_interrupts};
use crate::flows::FlowHash;
use crate::receive_spec::read_receive;
use crate::rules::MOST_WORDS;
use crate::wire;
use crate::xdp_spec::read_xdp;
use nicety_host::BusSpec;
use nicety_host::threads::ThreadsSpec;
use nicety_nic_core::{NodeSpec, read_bus, read_node, read_ports, read_threads};
use nicety_nic_processors::{HpuSpec, Scheduling, read_hpu};
use nicety_spec::Reader;
use nicety_stack::{CongestionControl, LEAST_MTU_V6, Network, Stack, StackSpec};
use nicety_types::{Duration, Gap, NodeId};
use std::sync::Arc;

pub use crate::driver_spec::{DriverSpec, InterruptsSpec};
pub(super) use crate::receive_spec::HEADERS;
pub use crate::receive_spec::ReceiveSpec;
pub use crate::xdp_spec::XdpSpec;

/// An Ethernet card.
#[derive(Clone, Debug)]
pub struct EthernetSpec {
    /// The surroundings of the card: host and network.
    pub node: NodeSpec,
    /// The bus between host and card.
    pub bus: BusSpec,
    /// The host's threads.
    pub threads: ThreadsSpec,
    /// CPUs that the operating system uses.
    pub cpus: usize,
    /// The card's registers.
    pub registers: RegistersSpec,
    /// The frames, and the card's part in their checksums.
    pub frames: FramesSpec,
    /// The transmit rings.
    pub transmit: TransmitSpec,
    /// The receive rings.
    pub receive: ReceiveSpec,
    /// Interrupts.
    pub interrupts: InterruptsSpec,
    /// The driver.
    pub driver: DriverSpec,
    /// The protocols.
    pub stack: StackCosts,
    /// Sockets.
    pub sockets: SocketsSpec,
    /// TCP.
    pub tcp: TcpSpec,
    /// Messages of `send` and `recv`.
    pub messages: MessagesSpec,
    /// Handlers on frames, if the card has handler cores.
    pub handlers: Option<HandlersSpec>,
    /// The costs of XDP in the driver, if the host runs XDP programs.
    pub xdp: Option<XdpSpec>,
}

/// Handlers on frames.
#[derive(Clone, Debug)]
pub struct HandlersSpec {
    /// The handler cores.
    pub hpu: Arc<HpuSpec>,
    /// Capacity of the table of rules.
    pub rules: usize,
    /// The maximum number of words of a frame that a rule compares.
    pub words: usize,
    /// Time to compare a frame with all rules.
    pub match_: Duration,
    /// Number of bytes before a frame for headers that handlers add.
    pub headroom: u64,
}

/// The card's registers, over the bus.
#[derive(Clone, Copy, Debug)]
pub struct RegistersSpec {
    /// Size of a register in bytes.
    pub bytes: u64,
    /// Time from the arrival of a read at the card to its answer.
    pub latency: Duration,
}

/// Frames, and the card's part in their checksums.
#[derive(Clone, Copy, Debug)]
pub struct FramesSpec {
    /// Length of the longest IP packet in a frame, in bytes.
    pub mtu: u64,
    /// Whether the card writes checksums of TCP and UDP, and verifies them.
    pub checksums: bool,
    /// Length in bytes of the longest IP packet that the card splits into frames (TSO). 0 without TSO.
    pub tso: u64,
}

/// The transmit rings in host memory.
#[derive(Clone, Copy, Debug)]
pub struct TransmitSpec {
    /// Number of DMA channels, each with a ring.
    pub channels: usize,
    /// Number of descriptors per ring.
    pub entries: u64,
    /// Size of a descriptor in bytes.
    pub descriptor: u64,
    /// The hash that distributes connections to channels.
    pub hash: FlowHash,
    /// The maximum number of descriptors per fetch.
    pub fetch: u64,
    /// The maximum number of frames, of all channels, that the card reads or that wait for the link.
    pub fifo: u64,
}

/// The protocols' work, in instructions unless stated otherwise.
#[derive(Clone, Copy, Debug)]
pub struct StackCosts {
    /// Number of soft rings, the kernel threads that take frames from the interrupts' CPUs. A hash distributes
    /// connections to these threads. Without soft rings, the interrupt handlers run the protocols.
    pub rings: usize,
    /// Whether each of these threads is bound to a CPU. The CPUs are consecutive, from that of the first receive
    /// channel's interrupts on. Bound threads have priority over threads of programs.
    pub bound: bool,
    /// The hash that distributes connections to these threads.
    pub hash: FlowHash,
    /// The maximum number of frames that wait for one of these threads.
    pub backlog: usize,
    /// The work of a received frame with payload.
    pub receive: u64,
    /// The work of a frame without payload, such as an acknowledgement, in either direction.
    pub acknowledge: u64,
    /// The work of a frame with payload to send.
    pub transmit: u64,
    /// The work of the checksum of a cache line of a frame, if the card does not compute checksums.
    pub checksum: u64,
    /// Number of cache lines of a connection's state.
    pub lines: u64,
    /// The work to allocate or release a packet buffer.
    pub buffer: u64,
}

/// Sockets: the work of their calls, in instructions, and their limits.
#[derive(Clone, Copy, Debug)]
pub struct SocketsSpec {
    /// The cost of a system call without work.
    pub call: u64,
    /// The socket's work for a call.
    pub socket: u64,
    /// The work to copy a cache line between kernel and user.
    pub copy: u64,
    /// Size of a socket's send buffer in bytes.
    pub send_buffer: u64,
    /// Size of a socket's receive buffer in bytes.
    pub receive_buffer: u64,
    /// Without a push, a reader is notified when 1/`push` of a receive buffer is full. 0 stands for a notification per
    /// frame.
    pub push: u64,
    /// The time for which fewer bytes are held back from a reader.
    pub push_time: Duration,
    /// Free room of a send buffer, in percent of the buffer, from which on a waiting thread is woken.
    pub wake_room: u64,
    /// The maximum number of connections of a host.
    pub connections: u64,
    /// The maximum total size of all connections' buffers, in bytes.
    pub memory: u64,
}

/// TCP's times.
#[derive(Clone, Copy, Debug)]
pub struct TcpSpec {
    /// The retransmission timeout before a round trip is measured.
    pub initial_rto: Duration,
    /// The least retransmission timeout.
    pub min_rto: Duration,
    /// The greatest retransmission timeout.
    pub max_rto: Duration,
    /// The time for which the acknowledgement of a single segment waits for another segment.
    pub delayed_ack: Duration,
    /// The maximum number of segments per acknowledgement.
    pub ack_segments: u8,
    /// The time for which a connection continues without a sign of its peer.
    pub timeout: Duration,
    /// The time for which an attempt to establish a connection continues without a sign of the peer.
    pub connect_timeout: Duration,
    /// The time for which the end that closed first waits for late segments.
    pub time_wait: Duration,
    /// The initial window of a connection in segments.
    pub initial_window: u32,
    /// The algorithm of the congestion window.
    pub congestion: CongestionControl,
    /// Whether selective acknowledgements are offered and used.
    pub sack: bool,
    /// Whether a probe is sent before the retransmission timeout in case the last segments are lost. The peer must
    /// acknowledge selectively.
    pub loss_probe: bool,
}

/// Messages of `send` and `recv`.
#[derive(Clone, Copy, Debug)]
pub struct MessagesSpec {
    /// The maximum number of bytes of messages without a receive in the library's memory.
    pub unexpected: u64,
    /// The library's work for a message at either end, in instructions.
    pub match_: u64,
}

impl EthernetSpec {
    /// The spec of a node's stack.
    pub(super) fn host_stack(&self, node: NodeId, seed: u64) -> StackSpec {
        let EthernetSpec { frames, sockets, tcp, .. } = self;
        StackSpec {
            mac: wire::station(node),
            ipv4: Some(Network { address: wire::ipv4(node.0), prefix: 8, gateway: None }),
            // As in operating systems, the host has no IPv6 if its MTU is too small for IPv6.
            ipv6: (frames.mtu as usize >= LEAST_MTU_V6).then_some(Network {
                address: wire::ipv6(node.0),
                prefix: 64,
                gateway: None,
            }),
            mtu: frames.mtu as usize,
            initial_rto: tcp.initial_rto,
            min_rto: tcp.min_rto,
            max_rto: tcp.max_rto,
            delayed_ack: Some(tcp.delayed_ack),
            ack_segments: tcp.ack_segments,
            timeout: tcp.timeout,
            connect_timeout: tcp.connect_timeout,
            time_wait: tcp.time_wait,
            initial_window: tcp.initial_window,
            congestion: tcp.congestion,
            sack: tcp.sack,
            loss_probe: tcp.sack && tcp.loss_probe,
            send_buffer: sockets.send_buffer as usize,
            receive_buffer: sockets.receive_buffer as usize,
            connections: sockets.connections as usize,
            memory: sockets.memory as usize,
            checksum_offload: frames.checksums,
            tso: (frames.tso > 0).then_some(frames.tso.min(u16::MAX.into()) as usize),
            seed,
            ..StackSpec::default()
        }
    }
}

/// Reads the spec of an Ethernet card.
pub(super) fn read_ethernet(reader: &Reader<'_>) -> EthernetSpec {
    let bus = read_bus(reader);
    let node = NodeSpec { ports: read_ports(reader), ..read_node(reader) };
    if node.link.gap == Gap::ZERO {
        let s = reader.section("link");
        s.refuse("gap", "a frame takes a wire some time", "write a gap above zero, for example \"80 ps/B\"");
    }
    let threads = read_threads(reader, &node.host);
    let s = reader.section("threads");
    let all = threads.cpus() as u64;
    let cpus =
        s.count_or("cpus", 1..=all, all, "CPUs that the operating system uses, from the first core on");
    let registers = read_registers(reader);
    let frames = read_frames(reader);
    let transmit = read_transmit(reader);
    let receive = read_receive(reader, frames.mtu, frames.checksums);
    let interrupts = read_interrupts(&reader.section("interrupts"), &reader.section("bus"), cpus);
    if receive.batch > 1 && !interrupts.from_arming {
        let help = "write interrupts.timer = \"arming\", or leave batch out";
        reader.section("receive").refuse(
            "batch",
            "completions that wait need a timer that runs without frames",
            help,
        );
    }
    let driver = read_driver(&reader.section("driver"));
    let stack = read_stack(reader);
    let sockets = read_sockets(reader);
    let tcp = read_tcp(reader);
    let messages = read_messages(reader);
    let handlers = reader.section("hpu").has("cores").then(|| read_handlers(reader));
    let spec = EthernetSpec {
        node,
        bus,
        threads,
        cpus: cpus as usize,
        registers,
        frames,
        transmit,
        receive,
        interrupts,
        driver,
        stack,
        sockets,
        tcp,
        messages,
        handlers,
        xdp: read_xdp(&reader.section("host.xdp")),
    };
    if let Err(error) = Stack::new(spec.host_stack(NodeId(0), 0)) {
        let text = error.to_string();
        let key = text.split(':').next().unwrap_or_default();
        reader.section("tcp").refuse(key, &text, "see docs/parts/stack.md");
    }
    spec
}

fn read_registers(reader: &Reader<'_>) -> RegistersSpec {
    let s = reader.section("registers");
    RegistersSpec {
        bytes: s.size("bytes", 1..=64, "a register of the card"),
        latency: s.time("latency", "time from a read's arrival at the card to its answer"),
    }
}

fn read_frames(reader: &Reader<'_>) -> FramesSpec {
    let s = reader.section("frames");
    let frames = FramesSpec {
        mtu: s.size("mtu", 576..=9600, "longest IP packet in a frame"),
        checksums: s.choice("checksums", &["card", "host"], "who computes checksums of TCP and UDP")
            == "card",
        tso: s.size_or(
            "tso",
            0..=MOST_PACKET,
            "0 B",
            "longest packet that the card cuts into frames; 0 B without TSO",
        ),
    };
    if frames.tso > 0 && !frames.checksums {
        let help = "write checksums = \"card\", or leave tso out";
        s.refuse("tso", "a card that cuts packets computes the checksums of their parts", help);
    }
    if frames.tso > 0 && frames.tso < frames.mtu {
        s.refuse("tso", "packets to be cut are longer than frames.mtu", "write \"64 KiB\"");
    }
    frames
}

fn read_transmit(reader: &Reader<'_>) -> TransmitSpec {
    let s = reader.section("transmit");
    TransmitSpec {
        channels: s.count("channels", 1..=256, "transmit DMA channels") as usize,
        hash: FlowHash::read(&s, &["toeplitz", "ports"], "hash of a connection that chooses its channel"),
        entries: s.count("entries", 2..=1 << 16, "descriptors of a transmit ring"),
        descriptor: s.size("descriptor", 8..=256, "a descriptor in host memory"),
        fetch: s.count("fetch", 1..=256, "descriptors that the card fetches at a time"),
        fifo: s.count("fifo", 1..=4096, "frames that are being read, or wait for the link"),
    }
}

fn read_stack(reader: &Reader<'_>) -> StackCosts {
    let s = reader.section("stack");
    StackCosts {
        rings: s.count(
            "rings",
            0..=1024,
            "kernel threads that run the protocols, connections hashed among them; with 0 the interrupt handlers run them",
        ) as usize,
        hash: FlowHash::read(&s, &["toeplitz", "ports"], "hash of a connection that chooses its thread"),
        bound: s.flag_or(
            "bound",
            false,
            "whether these threads are bound to consecutive CPUs, from the CPU of the first receive \
             channel's interrupts on",
        ),
        backlog: s.count("backlog", 1..=1 << 20, "frames that wait for one of these threads") as usize,
        receive: instructions(&s, "receive", "a received frame with payload"),
        acknowledge: instructions(&s, "acknowledge", "a frame without payload, in or out"),
        transmit: instructions(&s, "transmit", "a frame with payload to send"),
        checksum: instructions(&s, "checksum", "the checksum of a line of a frame, without the card's help"),
        lines: s.count("lines", 0..=1 << 16, "lines of a connection's state"),
        buffer: instructions(&s, "buffer", "allocating or freeing a packet buffer"),
    }
}

fn read_sockets(reader: &Reader<'_>) -> SocketsSpec {
    let s = reader.section("sockets");
    SocketsSpec {
        call: instructions(&s, "call", "a system call that does nothing"),
        socket: instructions(&s, "socket", "the socket's part of a call"),
        copy: instructions(&s, "copy", "copying a line between kernel and user"),
        send_buffer: s.size("send_buffer", 1 << 10..=1 << 28, "a socket's send buffer"),
        receive_buffer: s.size("receive_buffer", 1 << 10..=1 << 28, "a socket's receive buffer"),
        push: s.count_or(
            "push",
            0..=1024,
            0,
            "a reader is woken without a push when 1 / this value of its receive buffer has data; with 0 after each frame",
        ),
        push_time: s.time_or("push_time", "50 ms", "time after which a reader is woken with less data"),
        wake_room: s.count(
            "wake_room",
            1..=100,
            "room in a send buffer that wakes a thread that waits for it, in percent",
        ),
        connections: s.count("connections", 1..=1 << 20, "connections of a host"),
        memory: s.size("memory", 1 << 20..=1 << 40, "buffers of all connections of a host"),
    }
}

fn read_tcp(reader: &Reader<'_>) -> TcpSpec {
    let s = reader.section("tcp");
    TcpSpec {
        initial_rto: s.time("initial_rto", "retransmission timeout before a round trip was measured"),
        min_rto: s.time("min_rto", "minimum retransmission timeout"),
        max_rto: s.time("max_rto", "maximum retransmission timeout"),
        delayed_ack: s.time("delayed_ack", "delay of the acknowledgement of a single segment"),
        ack_segments: s.count_or(
            "ack_segments",
            2..=16,
            2,
            "maximum number of segments that an acknowledgement waits for",
        ) as u8,
        timeout: s.time("timeout", "time after which a connection fails without a segment from its peer"),
        connect_timeout: s.time("connect_timeout", "time after which an attempt to connect fails"),
        time_wait: s.time("time_wait", "time that the end that closed first waits for late segments"),
        initial_window: s.count("initial_window", 1..=1000, "initial congestion window in segments") as u32,
        congestion: match s.choice(
            "congestion",
            &["reno", "cubic"],
            "algorithm of the congestion window",
        ) {
            "cubic" => CongestionControl::Cubic,
            _ => CongestionControl::Reno,
        },
        sack: s.flag("sack", "whether selective acknowledgements are offered and used"),
        loss_probe: s.flag_or(
            "loss_probe",
            true,
            "whether a lost tail is probed after two round trips (RFC 8985), if the peer acknowledges selectively",
        ),
    }
}

fn read_messages(reader: &Reader<'_>) -> MessagesSpec {
    let s = reader.section("messages");
    MessagesSpec {
        unexpected: s.size(
            "unexpected",
            0..=1 << 34,
            "messages in the library's memory that arrived before their receives",
        ),
        match_: instructions(&s, "match", "the library's work for a message, at either end"),
    }
}

fn read_handlers(reader: &Reader<'_>) -> HandlersSpec {
    let s = reader.section("hpu");
    let hpu = read_hpu(reader);
    if hpu.pspin.is_some() {
        s.refuse("interface", "handlers of frames are not written for PsPIN", "leave hpu.interface out");
    }
    if hpu.scheduling == Scheduling::HomeCluster {
        s.refuse(
            "scheduling",
            "frames belong to no messages, and only messages have home clusters",
            "write hpu.scheduling = \"first-come\"",
        );
    }
    HandlersSpec {
        rules: s.count("rules", 1..=1024, "rules that choose handlers for frames") as usize,
        words: s.count("words", 1..=MOST_WORDS as u64, "words of a frame that a rule compares") as usize,
        match_: s.time("match", "comparing a frame with all rules"),
        headroom: s.size("headroom", 0..=1024, "bytes before a frame, for headers that handlers put there"),
        hpu: Arc::new(hpu),
    }
}
