//! Effective bandwidth by transfer size, compared with the tables in the documentation.

use crate::support::{at, gen3x8, message, now, on};
use nicety_host::pcie::{Generation, PcieSpec};
use nicety_types::{Duration, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Raw rate of generation 3 x8 in Gb/s: 8 GT/s x 8 x 128 / 130.
const RAW: f64 = 8.0 * 8.0 * 128.0 / 130.0;

/// Returns the payload rate of back-to-back writes of one size, in Gb/s.
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

/// Returns the payload rate of reads of one size, in Gb/s, counted from the departure of the first completion. The tags
/// limit the number of reads in flight.
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

/// For each transfer: its size in bytes, the bytes on the wire and the rate of a write, then those of a read's
/// completions. Rates are in Gb/s to three decimals. They are computed by hand from 24 bytes of overhead per write and
/// 20 bytes per completion.
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

/// The share of the bandwidth that ordered sets leave: they take one block of 375.
const ORDERED: f64 = 374.0 / 375.0;

/// Returns the number of transfers of a size in a stream of 8 MiB. This takes at least a millisecond, which is long
/// enough for the table.
fn long(bytes: u64) -> u64 {
    (8 << 20) / bytes
}

#[test]
fn writes_reach_the_table_less_ordered_sets() {
    for (bytes, _, expected, ..) in BY_HAND {
        let found = writes(gen3x8(), bytes, long(bytes));
        // The time of each TLP is rounded up by less than a picosecond. One ordered set changes the rate by 0.001 %.
        let expected = expected * ORDERED;
        assert!((found - expected).abs() < 0.002, "{bytes} B: {found} Gb/s, by hand {expected}");
    }
}

#[test]
fn reads_reach_the_table_less_their_acks_and_credits() {
    for (bytes, .., expected) in BY_HAND {
        let expected = expected * ORDERED;
        let found = reads(gen3x8(), bytes, long(bytes));
        // The host's port sends an Ack and an UpdateFC, 16 bytes together, every 203 ns. If requests are less frequent,
        // the interval is a little longer.
        let dllps = 1.0 - 16.0 / 203.0 / (RAW / 8.0);
        assert!(
            found > expected * dllps - 0.05 && found < expected * (1.0 - 0.5 * (1.0 - dllps)),
            "{bytes} B: {found} Gb/s, by hand {expected} less {:.2} %",
            (1.0 - dllps) * 100.0
        );
    }
}

/// The rates of writes and reads in the model, in Gb/s, as in the documentation's table.
const IN_THE_MODEL: [[f64; 2]; 7] = [
    [45.707, 47.404],
    [52.924, 53.823],
    [57.461, 57.738],
    [57.461, 57.743],
    [57.461, 57.743],
    [57.461, 57.743],
    [57.461, 57.743],
];

#[test]
fn the_documentation_shows_what_the_model_reaches() {
    let reached = BY_HAND.map(|(bytes, ..)| {
        let (write, read) = (writes(gen3x8(), bytes, long(bytes)), reads(gen3x8(), bytes, long(bytes)));
        [write, read].map(|rate| (rate * 1e3).round() / 1e3)
    });
    assert_eq!(reached, IN_THE_MODEL);
}

#[test]
fn the_published_model_charges_dllps_as_on_one_lane() {
    // pcie-bench takes 8 of every 203 symbol times for the 8 bytes of an Ack, in the direction of the data. It takes
    // the same for an UpdateFC. This leaves 57.88 Gb/s for TLPs. On eight lanes, 8 bytes take one symbol time. This
    // leaves 62.2 Gb/s.
    let published = RAW * (1.0 - 2.0 * 8.0 / 203.0 - 4.0 / 1538.0);
    assert!((published - 57.88).abs() < 0.01, "{published}");
    assert!((published * 256.0 / 280.0 - 52.9).abs() < 0.05);
    assert!((published * 512.0 / 552.0 - 53.7).abs() < 0.05);
    let striped = RAW * (1.0 - 2.0 * 8.0 / (8.0 * 203.0) - 1.0 / 375.0);
    assert!((striped - 62.23).abs() < 0.01, "{striped}");
    // With equal traffic in the other direction, this model has the Acks and UpdateFCs in the direction of the data
    // too.
    let found = both_ways(4096, 2000);
    let expected = striped * 256.0 / 280.0;
    assert!((found - expected).abs() < 0.005 * expected, "{found} Gb/s, by hand {expected}");
}

#[test]
fn dllps_for_each_request_cost_reads_two_percent_more() {
    let eager = PcieSpec { ack_delay: Duration::ZERO, update_delay: Duration::ZERO, ..gen3x8() };
    // For each request, an Ack and an UpdateFC of 8 bytes each go between the 552 bytes of its completions.
    let expected = RAW * 512.0 / (552.0 + 16.0) * ORDERED;
    let found = reads(eager, 4096, long(4096));
    assert!((found - expected).abs() < 0.02, "{found} Gb/s, by hand {expected}");
    assert!((expected - 56.65).abs() < 0.005);
}

/// Returns the payload rate of writes in each direction, in Gb/s, with equal traffic in the other direction.
fn both_ways(bytes: u64, count: u64) -> f64 {
    let end = Rc::new(RefCell::new(Time::ZERO));
    let seen = end.clone();
    let spec = PcieSpec { command: 0, ..gen3x8() };
    on(spec, move |sim, bus| async move {
        for k in 0..count {
            // Each direction sends one burst at a time, so that Acks go between bursts.
            bus.push(message(k), bytes, bytes, now(&sim));
            let written = bus.write(message(k), 0, bytes, now(&sim)).path.at();
            *seen.borrow_mut() = written;
            sim.until(written).await;
        }
    });
    let ps = end.borrow().ps();
    (bytes * count * 8) as f64 * 1e3 / ps as f64
}

#[test]
fn few_tags_limit_reads_to_tags_a_round_trip() {
    let spec = PcieSpec { tags: 8, ..gen3x8() };
    // With 8 tags, 8 reads of 512 bytes take at least 250 + 250 + 3.047 + 70.080 ns. Only queueing keeps the rate below
    // 57.2 Gb/s.
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
    // The rate is 504.123 x 512 / 536 Gb/s, minus the share of ordered sets.
    assert!((writes(spec, 4096, 10_000) - 481.551 * ORDERED).abs() < 0.1);
    let gen1 = PcieSpec::new(Generation::Gen1, 1, Duration::from_ns(250));
    // The rate is 2 x 256 / 280 Gb/s, minus 4 symbols of every 1538 for ordered sets.
    assert!((writes(gen1, 4096, 1000) - 1.829 * 1534.0 / 1538.0).abs() < 0.001);
}
