//! The sections of a card's spec that do not depend on the design: the host, the network, the job launcher.

use nicety_fabric::{BitErrorRate, LinkProtocol, LinkSpec, Medium, Resend, RouterSpec, SwitchSpec};
use nicety_host::HostSpec;
use nicety_spec::{Ratio, Reader, Section};
use nicety_types::Duration;

/// Maximum number of ports of a card.
const MOST_PORTS: u64 = 64;

/// The specifications of a card's host and network.
#[derive(Clone, Copy, Debug)]
pub struct NodeSpec {
    /// The host.
    pub host: HostSpec,
    /// The link.
    pub link: LinkSpec,
    /// Number of ports of the card. Each port has a link as described by `link`. A network of hosts is connected to one
    /// port.
    pub ports: u32,
    /// The specification of the switches, for topologies with switches.
    pub switch: SwitchSpec,
    /// The specification of a host's router on a torus. `None` if the spec has no keys for it. The router then has the
    /// values of the switch.
    pub router: Option<RouterSpec>,
    /// One-way latency to or from the job launcher.
    pub barrier: Duration,
}

/// Reads the sections `host`, `buffer`, `link`, `switch`, `router` and `barrier`.
pub fn read_node(reader: &Reader<'_>) -> NodeSpec {
    let host = read_host(&reader.section("host"));
    let s = reader.section("buffer");
    let buffer = s.count("packets", 1..=1 << 20, "packets that the card's packet buffer holds") as u32;
    let s = reader.section("link");
    let link = LinkSpec {
        latency: positive_time(&s, "latency", "flight time of a link; at least 1 ps"),
        gap: s.gap("gap", "time per byte on the link: G"),
        header: s.size("header", 0..=4096, "header and framing bytes of a packet on the link"),
        buffer,
        channels: 1,
        protocol: read_protocol(&s),
    };
    let s = reader.section("switch");
    let switch = SwitchSpec {
        latency: s
            .time("latency", "time of a packet's head through a switch; the topology pair has no switch"),
        ports: s.count("ports", 2..=1024, "ports of a switch; the topology pair has no switch") as u32,
        buffer: s.count("buffer", 1..=1 << 16, "incoming packets that each port of a switch holds") as u32,
    };
    let router = read_router(&reader.section("router"), &switch);
    let axes = ["x", "y", "z"].map(|axis| read_medium(&reader.section("link").section(axis), &link));
    let router = match axes {
        [Medium::LINK, Medium::LINK, Medium::LINK] => router,
        _ => Some(RouterSpec { axes, ..router.unwrap_or(RouterSpec::like(&switch)) }),
    };
    let s = reader.section("barrier");
    let barrier =
        positive_time(&s, "latency", "one-way time to or from the job launcher, which carries out barriers");
    NodeSpec { host, link, ports: 1, switch, router, barrier }
}

/// Reads the number of ports of a card, 1 by default.
pub fn read_ports(reader: &Reader<'_>) -> u32 {
    let s = reader.section("link");
    let doc = "ports of the card, each with a link of this kind; a network of hosts uses one port";
    if s.has("ports") { s.count("ports", 1..=MOST_PORTS, doc) as u32 } else { 1 }
}

/// Reads the optional keys of the link's protocol: word stuffing, checksum and resends.
fn read_protocol(s: &Section<'_>) -> LinkProtocol {
    let mut protocol = LinkProtocol::NONE;
    if s.has("stuffing") || s.has("stuffing_every") {
        protocol.stuffing = s.size(
            "stuffing",
            1..=4096,
            "bytes of a control word that the link stuffs into the stream of packets",
        );
        let doc = "bytes of packets between control words";
        protocol.stuffing_every = s.size("stuffing_every", 1..=1 << 20, doc);
    }
    let keys = ["retries", "retry_timeout", "bit_error_rate"];
    if !keys.iter().any(|key| s.has(key)) {
        return protocol;
    }
    let retries =
        s.count("retries", 0..=1000, "number of times that the link resends a damaged or lost packet") as u32;
    let timeout = s.time(
        "retry_timeout",
        "time from a packet's last byte until the link resends it, if no answer arrives",
    );
    let latency = s.time("latency", "flight time of a link; at least 1 ps");
    if s.has("retry_timeout") && timeout < latency + latency {
        let help = "write a time of at least twice link.latency, for example \"2 us\"";
        s.refuse("retry_timeout", "an answer takes twice the link's latency", help);
    }
    let bit_errors = if s.has("bit_error_rate") { read_bit_errors(s) } else { BitErrorRate::ZERO };
    LinkProtocol { resend: Some(Resend { retries, timeout, bit_errors }), ..protocol }
}

/// Reads the section of routers. Missing keys have the values of the switch.
fn read_router(s: &Section<'_>, switch: &SwitchSpec) -> Option<RouterSpec> {
    if !["latency", "buffer", "entry", "gap"].iter().any(|key| s.has(key)) {
        return None;
    }
    let places = |key, doc| s.has(key).then(|| s.count(key, 1..=1 << 16, doc) as u32);
    let latency = s.has("latency").then(|| s.time("latency", "time of a packet's head through a router"));
    let buffer = places("buffer", "packets that each virtual channel of each input holds");
    let buffer = buffer.unwrap_or(switch.buffer);
    let entry = places("entry", "packets of its own card that a router holds");
    Some(RouterSpec {
        latency: latency.unwrap_or(switch.latency),
        buffer,
        entry: entry.unwrap_or(RouterSpec::usual_entry(buffer)),
        gap: s.has("gap").then(|| s.gap("gap", "time per byte between card and router")),
        axes: [Medium::LINK; 3],
    })
}

/// Reads the section of the links of a torus axis. Missing keys have the values of `link`.
fn read_medium(s: &Section<'_>, link: &LinkSpec) -> Medium {
    let key = "bit_error_rate";
    let bit_errors = s.has(key).then(|| read_bit_errors(s));
    if bit_errors.is_some() && link.protocol.resend.is_none() {
        let help = "write link.retries and link.retry_timeout as well";
        s.refuse(key, "this link has no checksum and does not resend", help);
    }
    Medium {
        latency: s
            .has("latency")
            .then(|| positive_time(s, "latency", "flight time of the links of this torus axis")),
        gap: s.has("gap").then(|| s.gap("gap", "time per byte on the links of this torus axis")),
        bit_errors,
    }
}

fn read_bit_errors(s: &Section<'_>) -> BitErrorRate {
    let rate = s.ratio(
        "bit_error_rate",
        Ratio::ZERO..=Ratio::ONE,
        "the fraction of bits on a link that have an error",
    );
    BitErrorRate::new(rate.numerator(), rate.denominator())
}

fn read_host(s: &Section<'_>) -> HostSpec {
    HostSpec {
        cores: s.count("cores", 1..=1024, "CPU cores") as usize,
        clock: s.frequency("clock", "clock of the CPU cores"),
        post: s.time("post", "CPU time to post an operation: o"),
        notice: s.time("notice", "CPU time to notice an event: o"),
        memory: s.size("memory", 1 << 20..=1 << 44, "bytes of host memory"),
        memory_latency: s.time("memory_latency", "time until a CPU core has a cache line from host memory"),
        memory_gap: s.gap("memory_gap", "time per byte of host memory"),
        cache: s.size("cache", 0..=1 << 32, "the cache that all CPU cores share"),
        line: s.size_or("line", 8..=4096, "64 B", "a line of the CPU cores' cache"),
        line_fills: s.count_or("line_fills", 1..=1024, 10, "lines that a CPU core may be fetching at a time"),
    }
}

/// Reads a time that must be above zero, because shards of the simulation use it as lookahead.
fn positive_time(section: &Section<'_>, key: &str, doc: &str) -> Duration {
    let time = section.time(key, doc);
    if time.is_zero() {
        section.refuse(
            key,
            "a wire takes at least 1 ps",
            "write a latency above zero, for example \"33.4 ns\"",
        );
    }
    time
}
