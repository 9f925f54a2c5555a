//! Effective bandwidth by transfer size, against the tables in the documentation.

use crate::support::{at, gen3x8, message, on};
use nicety_host::pcie::{Generation, PcieSpec};
use nicety_types::{Duration, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Raw Gb/s of generation 3 x8: 8 GT/s x 8 x 128 / 130.
const RAW: f64 = 8.0 * 8.0 * 128.0 / 130.0;

/// Gb/s of writes of one size back to back, and that of the direction on which they are.
fn writes(spec: PcieSpec, bytes: u64, count: u64) -> f64 {
    let end = Rc::new(RefCell::new(Time::ZERO));
    let seen = end.clone();
    on(spec, move |_, bus| async move {
        for k in 0..count {
            *seen.borrow_mut() = bus.write(message(k), 0, bytes, at(0)).path.at();
        }
    });
    let ps = end.borrow().ps();
    (bytes * count * 8) as f64 * 1e3 / ps as f64
}

/// Gb/s of reads of one size, as many as the tags allow under way, from when the first completion leaves.
fn reads(spec: PcieSpec, bytes: u64, count: u64) -> f64 {
    let last = Rc::new(RefCell::new(Time::ZERO));
    let seen = last.clone();
    on(spec, move |sim, bus| async move {
        for k in 0..count {
            let (bus, seen) = (bus.clone(), seen.clone());
            sim.spawn_program(format!("read {k}"), async move {
                let tail = bus.read(message(k), 0, bytes, bytes, at(0)).await.packet(0).await.tail;
                let mut seen = seen.borrow_mut();
                *seen = tail.max(*seen);
            });
        }
    });
    let idle = 3_047 + spec.latency_to_host.ps() + spec.latency_to_card.ps();
    let ps = last.borrow().ps() - idle;
    (bytes * count * 8) as f64 * 1e3 / ps as f64
}

/// Bytes, bytes on the wire for a write, for the completions of a read, and Gb/s to three places: all by hand from
/// 24 bytes a write and 20 a completion.
const BY_HAND: [(u64, u64, f64, u64, f64); 7] = [
    (64, 88, 45.829, 84, 48.012),
    (128, 152, 53.066, 148, 54.500),
    (256, 280, 57.614, 276, 58.449),
    (512, 560, 57.614, 552, 58.449),
    (1024, 1120, 57.614, 1104, 58.449),
    (2048, 2240, 57.614, 2208, 58.449),
    (4096, 4480, 57.614, 4416, 58.449),
];

#[test]
fn the_table_follows_from_the_bytes_on_the_wire() {
    for (bytes, write, write_gbit, read, read_gbit) in BY_HAND {
        assert!((RAW * bytes as f64 / write as f64 - write_gbit).abs() < 0.0006, "write of {bytes} B");
        assert!((RAW * bytes as f64 / read as f64 - read_gbit).abs() < 0.0006, "read of {bytes} B");
    }
}

#[test]
fn writes_reach_the_table() {
    for (bytes, _, expected, ..) in BY_HAND {
        let found = writes(gen3x8(), bytes, 1000);
        // Each TLP's time is rounded up by less than a picosecond.
        assert!((found - expected).abs() < 0.002, "{bytes} B: {found} Gb/s, by hand {expected}");
    }
}

#[test]
fn reads_reach_the_table_less_what_their_requests_are_answered_with() {
    for (bytes, .., expected) in BY_HAND {
        let found = reads(gen3x8(), bytes, 2000);
        // The host's port sends an Ack and an UpdateFC, 16 bytes, every 203 ns or, when requests come further apart, a
        // little later.
        let dllps = 1.0 - 16.0 / 203.0 / (RAW / 8.0);
        assert!(
            found > expected * dllps - 0.05 && found < expected * (1.0 - 0.5 * (1.0 - dllps)),
            "{bytes} B: {found} Gb/s, by hand {expected} less {:.2} %",
            (1.0 - dllps) * 100.0
        );
    }
}

/// What the documentation's table says the model reaches, in the order of the sizes.
const READS_IN_THE_MODEL: [f64; 7] = [47.586, 54.024, 57.953, 57.957, 57.922, 57.905, 57.897];

#[test]
fn the_documentation_shows_what_the_model_reaches() {
    for ((bytes, ..), documented) in BY_HAND.into_iter().zip(READS_IN_THE_MODEL) {
        let found = reads(gen3x8(), bytes, 2000);
        assert!((found - documented).abs() < 0.0006, "{bytes} B: {found} Gb/s, documented {documented}");
    }
}

#[test]
fn few_tags_limit_reads_to_tags_a_round_trip() {
    let spec = PcieSpec { tags: 8, ..gen3x8() };
    // 8 x 512 bytes each 250 + 250 + 3.047 + 70.080 ns at least: 57.2 Gb/s is out of reach only as far as queueing adds.
    let found = reads(spec, 512, 2000);
    let trip_ns = 500.0 + 3.047 + 2.0 * 35.040;
    assert!(found < 8.0 * 512.0 * 8.0 / trip_ns, "{found} Gb/s");
    let two = reads(PcieSpec { tags: 2, ..spec }, 512, 2000);
    let expected = 2.0 * 512.0 * 8.0 / (trip_ns + 35.040);
    assert!((two - expected).abs() < 0.06 * expected, "{two} Gb/s with two tags, by hand {expected}");
}

#[test]
fn a_wider_link_with_larger_payload_is_faster() {
    let spec = PcieSpec {
        mps: 512,
        mrrs: 4096,
        push_payload: 512,
        ..PcieSpec::new(Generation::Gen4, 32, Duration::from_ns(250))
    };
    // 504.123 x 512 / 536.
    assert!((writes(spec, 4096, 1000) - 481.551).abs() < 0.1);
    let gen1 = PcieSpec::new(Generation::Gen1, 1, Duration::from_ns(250));
    // 2 x 256 / 280.
    assert!((writes(gen1, 4096, 100) - 1.829).abs() < 0.001);
}
