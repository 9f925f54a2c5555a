//! The bus between host and card: its kinds, and the errors in its section.

use nicety_host::BusSpec;
use nicety_host::pci::PciSpec;
use nicety_host::pcie::{Addressing, Credits, Cut, Generation, PcieSpec};
use nicety_nic_spin::{DESIGN, SpinSpec};
use nicety_spec::{SHIPPED, Spec};
use nicety_types::Duration;

fn bus(card: &str, overrides: &[&str]) -> Result<BusSpec, String> {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|text| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())).unwrap())
        .collect();
    let spec = Spec::load(card, &overrides, SHIPPED).map_err(|errors| errors.to_string())?;
    let (card, _) = nicety_nic_core::read(&spec, &[DESIGN]).map_err(|errors| errors.to_string())?;
    let spec = card.of::<SpinSpec>().expect("a card with a Portals interface").clone();
    Ok(spec.bus)
}

fn pcie(card: &str, overrides: &[&str]) -> PcieSpec {
    match bus(card, &[&["bus.kind=pcie"], overrides].concat()).unwrap() {
        BusSpec::Pcie(spec) => spec,
        other => panic!("{other:?}"),
    }
}

/// Returns the error that these overrides cause.
fn refused(overrides: &[&str]) -> String {
    bus("spin-discrete", overrides).unwrap_err()
}

#[test]
fn a_card_is_plain_unless_it_says_otherwise() {
    assert!(matches!(bus("spin-discrete", &[]), Ok(BusSpec::Plain(_))));
    assert!(matches!(bus("spin-integrated", &["bus.kind=plain"]), Ok(BusSpec::Plain(_))));
}

#[test]
fn every_card_takes_pcie_without_another_word() {
    let spec = pcie("spin-discrete", &[]);
    assert_eq!((spec.generation, spec.lanes, spec.mps, spec.mrrs), (Generation::Gen4, 32, 256, 512));
    assert_eq!((spec.rcb, spec.tags, spec.addressing), (64, 256, Addressing::Bits64));
    assert_eq!([spec.latency_to_card, spec.latency_to_host], [Duration::from_ns(250); 2]);
    assert_eq!(spec.port_latency, Duration::from_ns(50));
    // The limit is (256 + 28) x 3 / 32 + 115 symbols of 0.5 ns.
    assert_eq!([spec.ack_delay, spec.update_delay], [Duration::from_ps(141 * 500); 2]);
    let spec = pcie("spin-integrated", &[]);
    assert_eq!([spec.latency_to_card, spec.latency_to_host], [Duration::from_ns(50); 2]);
}

#[test]
fn every_key_is_taken() {
    let spec = pcie(
        "spin-discrete",
        &[
            "bus.pcie.generation=3",
            "bus.pcie.lanes=8",
            "bus.pcie.mps=512 B",
            "bus.pcie.mrrs=4 KiB",
            "bus.pcie.rcb=128 B",
            "bus.pcie.completions=rcb",
            "bus.pcie.address_bits=32",
            "bus.pcie.ecrc=true",
            "bus.pcie.tags=32",
            "bus.pcie.latency_to_card=300 ns",
            "bus.pcie.latency_to_host=200 ns",
            "bus.pcie.port_latency=40 ns",
            "bus.pcie.read_latency=80 ns",
            "bus.pcie.ack_delay=1 ns",
            "bus.pcie.update_delay=2 ns",
            "bus.pcie.posted_headers=1",
            "bus.pcie.posted_data=32",
            "bus.pcie.non_posted_headers=2",
            "bus.pcie.completion_headers=3",
            "bus.pcie.completion_data=33",
            "bus.pcie.command=32 B",
            "bus.pcie.push_payload=64 B",
            "bus.pcie.event=128 B",
            "bus.pcie.counter=8 B",
        ],
    );
    assert_eq!(
        (spec.generation, spec.lanes, spec.mps, spec.mrrs, spec.rcb),
        (Generation::Gen3, 8, 512, 4096, 128)
    );
    assert_eq!(
        (spec.cut, spec.addressing, spec.ecrc, spec.tags),
        (Cut::Boundary, Addressing::Bits32, true, 32)
    );
    let ns = [spec.latency_to_card, spec.latency_to_host, spec.port_latency, spec.read_latency];
    assert_eq!(ns, [300, 200, 40, 80].map(Duration::from_ns));
    assert_eq!([spec.ack_delay, spec.update_delay], [1, 2].map(Duration::from_ns));
    assert_eq!(spec.posted, Credits { headers: 1, data: 32 });
    assert_eq!(spec.non_posted_headers, 2);
    assert_eq!(spec.completion, Credits { headers: 3, data: 33 });
    assert_eq!((spec.command, spec.push_payload, spec.event, spec.counter), (32, 64, 128, 8));
}

#[test]
fn impossible_values_are_refused_with_a_remedy() {
    let flits = refused(&["bus.kind=pcie", "bus.pcie.generation=6"]);
    assert!(flits.contains("generation 6 is not modelled: it sends flits"), "{flits}");
    assert!(flits.contains("write 1 to 5"), "{flits}");
    let lanes = refused(&["bus.kind=pcie", "bus.pcie.lanes=6"]);
    assert!(lanes.contains("a link has no 6 lanes"), "{lanes}");
    assert!(lanes.contains("write 1, 2, 4, 8, 12, 16 or 32"), "{lanes}");
    let mps = refused(&["bus.kind=pcie", "bus.pcie.mps=300 B"]);
    assert!(mps.contains("300 B is not among the sizes"), "{mps}");
    assert_eq!(mps.matches("error:").count(), 1, "one slip is one error: {mps}");
    let bits = refused(&["bus.kind=pcie", "bus.pcie.address_bits=48"]);
    assert!(bits.contains("write 32 or 64"), "{bits}");
    let kind = refused(&["bus.kind=pcix"]);
    assert!(kind.contains("pcie"), "{kind}");
    let key = refused(&["bus.kind=pcie", "bus.pcie.lane=8"]);
    assert!(key.contains("unknown key") && key.contains("bus.pcie.lanes"), "{key}");
}

fn pci(overrides: &[&str]) -> PciSpec {
    match bus("spin-discrete", &[&["bus.kind=pci"], overrides].concat()).unwrap() {
        BusSpec::Pci(spec) => spec,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_card_takes_pci_too() {
    let spec = pci(&[]);
    assert_eq!((spec.clock.hz(), spec.width, spec.wait, spec.arbitration), (66_666_667, 8, 12, 2));
    assert_eq!((spec.combine, spec.burst), (32, 128));
    assert_eq!((spec.command, spec.event, spec.counter), (64, 64, 16));
    assert_eq!(spec.latency, Duration::from_ns(250));
    let spec = pci(&[
        "bus.pci.clock=33 MHz",
        "bus.pci.width=32",
        "bus.pci.wait=3",
        "bus.pci.arbitration=4",
        "bus.pci.combine=64 B",
        "bus.pci.burst=256 B",
        "bus.pci.command=16 B",
        "bus.pci.event=24 B",
        "bus.pci.counter=8 B",
    ]);
    assert_eq!((spec.clock.hz(), spec.width, spec.wait, spec.arbitration), (33_000_000, 4, 3, 4));
    assert_eq!((spec.combine, spec.burst), (64, 256));
    assert_eq!((spec.command, spec.event, spec.counter), (16, 24, 8));
}

#[test]
fn impossible_pci_buses_are_refused() {
    for (text, expected) in [
        ("bus.pci.width=16", ["no PCI bus has 16 bits", "write 32 or 64"]),
        ("bus.pci.burst=100 B", ["a burst is not 100 B", "write a power of two"]),
        ("bus.pci.combine=4 B", ["a burst is not 4 B", "a data phase (width) at least"]),
        ("bus.pci.bursts=64 B", ["unknown key", "bus.pci.burst"]),
    ] {
        let error = refused(&["bus.kind=pci", text]);
        assert!(expected.iter().all(|part| error.contains(part)), "{text}: {error}");
        assert_eq!(error.matches("error:").count(), 1, "one slip is one error: {error}");
    }
    let slip = refused(&["bus.pci.burst=64 B"]);
    assert!(slip.contains("this key is for PCI, but the bus is a plain one"), "{slip}");
    assert!(slip.contains("--set bus.kind=pci"), "{slip}");
    assert!(matches!(bus("spin-discrete", &["bus.kind=pcie", "bus.pci.burst=64 B"]), Ok(BusSpec::Pcie(_))));
}

#[test]
fn a_word_about_pcie_on_a_plain_bus_is_a_slip() {
    let slip = refused(&["bus.pcie.lanes=8"]);
    assert!(slip.contains("the bus is a plain one") && slip.contains("--set bus.kind=pcie"), "{slip}");
    // A spec that names the kind of bus may also have sections of other kinds, to compare kinds.
    assert!(matches!(bus("spin-discrete", &["bus.kind=plain", "bus.pcie.lanes=8"]), Ok(BusSpec::Plain(_))));
}
