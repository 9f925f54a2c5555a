//! The spec of a Portals 4 card with packet handlers.

use nicety_fabric::{LinkSpec, RouterSpec, SwitchSpec};
use nicety_host::{BusSpec, HostSpec};
use nicety_nic_core::parts::transport::TransportSpec;
use nicety_nic_core::{NodeSpec, read_node, read_ports, read_transport};
use nicety_nic_processors::{HpuSpec, read_hpu};
use nicety_portals::{Features, Limits};
use nicety_spec::Reader;
use nicety_types::Duration;
use std::sync::Arc;

/// The specification of a Portals 4 card with packet handlers.
#[derive(Clone, Debug)]
pub struct SpinSpec {
    /// The specification of the host.
    pub host: HostSpec,
    /// The specification of the bus between host and card.
    pub bus: BusSpec,
    /// The specification of the link.
    pub link: LinkSpec,
    /// Number of ports of the card. Each port has a link as described by `link`.
    pub ports: u32,
    /// The specification of the switches, for topologies with switches.
    pub switch: SwitchSpec,
    /// Minimum time between the starts of two messages: the parameter g of the LogGP models.
    pub send_gap: Duration,
    /// Maximum number of handlers' messages in the send queue.
    pub send_queue: u64,
    /// Maximum payload of a packet, in bytes.
    pub packet_payload: u64,
    /// Time to match the first packet of a message.
    pub match_first: Duration,
    /// Time to match each further packet.
    pub match_further: Duration,
    /// Time to serve a command of the host.
    pub match_command: Duration,
    /// Time to compute an atomic operation, between the read and the write of host memory.
    pub atomic: Duration,
    /// Maximum number of arrived operations in progress that need a reply.
    pub replies: u32,
    /// The limits of the Portals interface.
    pub limits: Limits,
    /// The protocol of `send` and `recv`.
    pub messages: MessagesSpec,
    /// The specification of reliable transport.
    pub transport: TransportSpec,
    /// The specification of the handler cores.
    pub hpu: Arc<HpuSpec>,
    /// The specification of a host's router on a torus, if the card contains the router.
    pub router: Option<RouterSpec>,
    /// One-way latency to or from the job launcher.
    pub barrier: Duration,
}

/// The protocol of messages that may arrive before their receives are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagesSpec {
    /// Maximum length of an eager message in bytes. An eager message waits for its receive in a buffer of the receiver.
    pub eager: u64,
    /// Number of these buffers.
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
    let send_gap = s.time("gap", "minimum time between the starts of two messages: g");
    let send_queue = s.count("queue", 1..=1 << 20, "messages of handlers that may wait to be sent");
    let s = reader.section("packet");
    let packet_payload = s.size("payload", 8..=65_536, "maximum payload of a packet");
    let s = reader.section("match");
    let match_first = s.time("first", "time to match a header packet, by a search of the lists");
    let match_further = s.time("further", "time to match each further packet of a message");
    let match_command = s.time("command", "time to serve a command of the host");
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
        operations: limit("operations", "unfinished operations of the host and of handlers"),
        atomic_bytes: s.size("atomic", 8..=1 << 20, "maximum number of bytes of an atomic"),
        fetch_atomic_bytes: s.size(
            "fetch_atomic",
            8..=1 << 20,
            "maximum number of bytes of a fetch-and-atomic or swap",
        ),
        features: Features::all(),
        ..Limits::default()
    };
    let replies =
        limit("replies", "arrived gets, fetch-and-atomics and swaps with a reply that is not yet sent");
    let s = reader.section("atomic");
    let atomic = s.time(
        "compute",
        "time to compute an atomic operation, between the read and the write of host memory",
    );
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

fn read_messages(reader: &Reader<'_>) -> MessagesSpec {
    let s = reader.section("messages");
    let eager = s.size_or(
        "eager",
        0..=1 << 30,
        "2 KiB",
        "the longest eager message, which waits for its receive in a buffer of the receiver",
    );
    let buffers =
        s.count_or("buffers", 1..=4096, 32, "buffers for messages that arrive before their receives") as u32;
    let buffer = s.size_or("buffer", 64..=1 << 30, "2 MiB", "bytes of each buffer for such messages");
    if buffer < eager {
        s.refuse(
            "buffer",
            "a buffer holds at least one message of messages.eager",
            "raise messages.buffer, or lower messages.eager",
        );
    }
    MessagesSpec { eager, buffers, buffer }
}
