//! The section of the bus in a card's spec.

use super::access::{read_access, read_iommu, read_remote, read_root, refuse_access};
use nicety_host::pci::PciSpec;
use nicety_host::pcie::{Addressing, Credits, Cut, Generation, PcieSpec, UNSCALED};
use nicety_host::{BusSpec, PlainSpec};
use nicety_spec::{Reader, Section};
use nicety_types::Duration;

/// Reads `[bus]`, and `[bus.pcie]` or `[bus.pci]` if the bus is of that kind or the section is present. All keys of
/// `[bus.pcie]` and `[bus.pci]` are optional. Also reads the sections of the access over PCI Express, if present.
pub fn read(reader: &Reader<'_>) -> BusSpec {
    let s = reader.section("bus");
    let latency = s.time("latency", "one crossing between host and card, either way");
    let read_gap = || {
        s.gap(
            "gap",
            "time per byte on a plain bus, in each direction; other kinds of bus have rates of their own",
        )
    };
    // The gap is required only for the plain bus.
    let early = (s.has("gap") || !s.has("kind")).then(read_gap);
    let written = s.has("kind");
    let kind = s.choice_or(
        "kind",
        &["plain", "pcie", "pci"],
        "plain",
        "the model of the bus: latency and gap, PCI Express TLPs, or PCI transactions",
    );
    let (e, p) = (reader.section("bus.pcie"), reader.section("bus.pci"));
    let pcie = read_where(&e, &KEYS, kind == "pcie", written, "PCI Express", || read_pcie(&e, latency));
    let (root, access) = (read_root(reader), read_access(reader));
    let (remote, iommu) = (read_remote(reader), read_iommu(reader));
    let pcie = pcie.map(|pcie| PcieSpec { remote, iommu, root, access, ..pcie });
    if pcie.is_none() && !written {
        refuse_access(reader, |s, key| refuse_kind(s, key, "PCI Express", "pcie"));
    }
    let pci = read_where(&p, &PCI_KEYS, kind == "pci", written, "PCI", || read_pci(&p, latency));
    match (kind, pcie, pci) {
        ("pcie", Some(pcie), _) => BusSpec::Pcie(pcie),
        ("pci", _, Some(pci)) => BusSpec::Pci(pci),
        _ => BusSpec::Plain(PlainSpec { latency, gap: early.unwrap_or_else(read_gap) }),
    }
}

/// Reads a section of one kind of bus, if the bus is of that kind or the section is present. A section of another kind
/// is refused, unless the spec sets the key `kind` (`written`).
fn read_where<T>(
    s: &Section<'_>,
    keys: &[&str],
    chosen: bool,
    written: bool,
    what: &str,
    read: impl FnOnce() -> T,
) -> Option<T> {
    let present = keys.iter().find(|key| s.has(key));
    if !chosen && present.is_none() {
        return None;
    }
    if let Some(key) = present.filter(|_| !chosen && !written) {
        refuse_kind(s, key, what, s.path().trim_start_matches("bus."));
    }
    Some(read())
}

/// Refuses a key of another kind of bus than the plain one.
fn refuse_kind(s: &Section<'_>, key: &str, what: &str, kind: &str) {
    let help = format!("write kind = \"{kind}\" under [bus], or --set bus.kind={kind}");
    s.refuse(key, &format!("this key is for {what}, but the bus is a plain one"), &help);
}

const PCI_KEYS: [&str; 9] =
    ["clock", "width", "wait", "arbitration", "combine", "burst", "command", "event", "counter"];

fn read_pci(s: &Section<'_>, latency: Duration) -> PciSpec {
    let bits = s.count_or("width", 8..=1024, 64, "bits of a data phase");
    if bits != 32 && bits != 64 {
        s.refuse("width", &format!("no PCI bus has {bits} bits"), "write 32 or 64");
    }
    let spec = PciSpec {
        clock: s.frequency_or("clock", "66.666667 MHz", "the bus's clock"),
        width: if bits == 32 { 4 } else { 8 },
        wait: s.count_or(
            "wait",
            0..=1024,
            12,
            "clocks of a transaction in which neither address nor data moves",
        ),
        arbitration: s.count_or(
            "arbitration",
            0..=1024,
            2,
            "clocks of arbitration before a transaction on an idle bus",
        ),
        combine: s.size_or("combine", 4..=4096, "32 B", "a write-combining buffer of the host"),
        burst: s.size_or("burst", 4..=4096, "128 B", "the longest burst of the card"),
        latency,
        command: s.size_or(
            "command",
            0..=4096,
            "64 B",
            "bytes of a command that the host pushes, before any payload",
        ),
        event: s.size_or("event", 4..=4096, "64 B", "an event that the card writes to the host"),
        counter: s.size_or("counter", 4..=4096, "16 B", "a counter that the card writes to the host"),
    };
    for problem in spec.problems() {
        s.refuse(problem.key, &problem.message, problem.help);
    }
    spec
}

const KEYS: [&str; 24] = [
    "generation",
    "lanes",
    "mps",
    "mrrs",
    "rcb",
    "completions",
    "address_bits",
    "ecrc",
    "tags",
    "latency_to_card",
    "latency_to_host",
    "port_latency",
    "read_latency",
    "ack_delay",
    "update_delay",
    "posted_headers",
    "posted_data",
    "non_posted_headers",
    "completion_headers",
    "completion_data",
    "command",
    "push_payload",
    "event",
    "counter",
];

fn read_pcie(s: &Section<'_>, latency: Duration) -> PcieSpec {
    let number = s.count_or("generation", 1..=6, 4, "PCI Express generation");
    let generation = Generation::from_number(number).unwrap_or_else(|| {
        let message = "generation 6 is not modelled: it sends flits, with other headers and credits";
        s.refuse("generation", message, "write 1 to 5; 5 on twice the lanes has the raw rate of 6");
        Generation::Gen5
    });
    let lanes = s.count_or("lanes", 1..=32, 32, "lanes of the link") as u32;
    // An invalid number of lanes is refused below. Here the delays need any number.
    let mut spec = PcieSpec::new(generation, lanes, latency);
    spec.mps = s.size_or("mps", 128..=4096, "256 B", "Max_Payload_Size: maximum payload of a TLP");
    spec.mrrs =
        s.size_or("mrrs", 128..=4096, "512 B", "Max_Read_Request_Size: maximum size of a read request");
    spec.rcb = s.size_or("rcb", 64..=128, "64 B", "Read Completion Boundary of the root complex");
    let cut = s.choice_or("completions", &["mps", "rcb"], "mps", "where the root complex cuts completions");
    spec.cut = if cut == "rcb" { Cut::Boundary } else { Cut::Payload };
    let bits = s.count_or("address_bits", 32..=64, 64, "bits of an address: headers of 3 or 4 doublewords");
    spec.addressing = if bits == 32 { Addressing::Bits32 } else { Addressing::Bits64 };
    if bits != 32 && bits != 64 {
        s.refuse("address_bits", &format!("addresses have no {bits} bits"), "write 32 or 64");
    }
    spec.ecrc = s.flag_or("ecrc", false, "an end-to-end CRC in every TLP");
    spec.tags = s.count_or("tags", 1..=768, 256, "read requests that the card may have in flight");

    let ps = |duration: Duration| format!("{} ps", duration.ps());
    let crossing = ps(latency);
    spec.latency_to_card = s.time_or("latency_to_card", &crossing, "one crossing from host to card");
    spec.latency_to_host = s.time_or("latency_to_host", &crossing, "one crossing from card to host");
    let shortest = spec.latency_to_card.min(spec.latency_to_host).min(Duration::from_ns(50));
    let doc = "the first part of a crossing, up to the arrival of a TLP in the far end's buffer";
    spec.port_latency = s.time_or("port_latency", &ps(shortest), doc);
    let doc = "time from a read request at the host to its first completion, without the crossings";
    spec.read_latency = s.time_or("read_latency", "0 ns", doc);
    let limit = ps(generation.latency_limit(lanes, spec.mps));
    spec.ack_delay = s.time_or("ack_delay", &limit, "time from a TLP in the buffer to its Ack");
    spec.update_delay = s.time_or("update_delay", &limit, "time from room in the buffer to its UpdateFC");

    let headers = |key, default, doc| s.count_or(key, 0..=1 << 16, default, doc);
    let data = |key, default, doc| s.count_or(key, 0..=1 << 16, default, doc);
    spec.posted = Credits {
        headers: headers("posted_headers", UNSCALED.headers, "credits for posted writes; 0 is no limit"),
        data: data("posted_data", UNSCALED.data, "credits of 16 B for their payload; 0 is no limit"),
    };
    let doc = "credits for read requests; 0 is no limit";
    spec.non_posted_headers = headers("non_posted_headers", UNSCALED.headers, doc);
    spec.completion = Credits {
        headers: headers("completion_headers", 0, "credits for completions; 0 is no limit"),
        data: data("completion_data", 0, "credits of 16 B for their payload; 0 is no limit"),
    };

    spec.command =
        s.size_or("command", 0..=4096, "64 B", "bytes of a command that the host pushes, before any payload");
    let most = format!("{} B", 1_u64 << spec.mps.ilog2());
    spec.push_payload =
        s.size_or("push_payload", 4..=4096, &most, "maximum payload of a TLP that the host pushes");
    spec.event = s.size_or("event", 4..=4096, "64 B", "an event that the card writes to the host");
    spec.counter = s.size_or("counter", 4..=4096, "16 B", "a counter that the card writes to the host");
    for problem in spec.problems() {
        s.refuse(problem.key, &problem.message, &problem.help);
    }
    spec
}
