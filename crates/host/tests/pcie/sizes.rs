//! Rates, bytes on the wire, and the limits of a spec.

use crate::support::gen3x8;
use nicety_host::pcie::{Addressing, Credits, Generation, LANES, PcieSpec};
use nicety_types::{Duration, Gap};

#[test]
fn raw_rates_are_those_of_the_standard() {
    // Rate per lane in Mb/s: 2500 x 8/10, 5000 x 8/10, 8000 x 128/130, then two and four times this rate.
    for (generation, mbit) in
        Generation::ALL.into_iter().zip([2000.0, 4000.0, 7876.923, 15_753.846, 31_507.692])
    {
        for lanes in LANES {
            let found = generation.gap(lanes).bytes_per_s() * 8.0 / 1e6 / f64::from(lanes);
            assert!((found - mbit).abs() < 0.001, "{generation:?} x{lanes}: {found} Mb/s a lane");
        }
    }
    assert_eq!(gen3x8().gap(), Gap::new(65_000, 512));
    assert!((gen3x8().gap().bytes_per_s() * 8.0 / 1e9 - 63.015).abs() < 0.001);
    assert_eq!(Generation::Gen1.gap(1).cover(1), Duration::from_ps(4_000));
    assert_eq!(Generation::Gen2.gap(4).cover(2), Duration::from_ps(1_000));
    assert_eq!(Generation::from_number(6), None);
}

#[test]
fn a_tlp_has_header_framing_and_digest() {
    let spec = gen3x8();
    // A write has an STP token of 4 bytes, a header of 16 bytes, the payload, and an LCRC of 4 bytes.
    assert_eq!([spec.write_bytes(256), spec.request_bytes(), spec.completion_bytes(256)], [280, 24, 276]);
    let short = PcieSpec { addressing: Addressing::Bits32, ..spec };
    assert_eq!([short.write_bytes(256), short.request_bytes(), short.completion_bytes(256)], [276, 20, 276]);
    let checked = PcieSpec { ecrc: true, ..spec };
    assert_eq!(
        [checked.write_bytes(256), checked.request_bytes(), checked.completion_bytes(256)],
        [284, 28, 280]
    );
}

#[test]
fn acks_are_due_when_the_tables_of_the_specification_say() {
    // The Ack Latency Limits at 2.5 GT/s, in symbol times of 4 ns, for x1 to x32 (Data Link Layer).
    let table: [(u64, [u64; 7]); 6] = [
        (128, [237, 128, 73, 67, 58, 48, 33]),
        (256, [416, 217, 118, 107, 90, 72, 45]),
        (512, [559, 289, 154, 86, 109, 86, 52]),
        (1024, [1071, 545, 282, 150, 194, 150, 84]),
        (2048, [2095, 1057, 538, 278, 365, 278, 148]),
        (4096, [4143, 2081, 1050, 534, 706, 534, 276]),
    ];
    for (mps, row) in table {
        for (lanes, symbols) in LANES.into_iter().zip(row) {
            let limit = Generation::Gen1.latency_limit(lanes, mps);
            assert_eq!(limit, Duration::from_ns(4 * symbols), "x{lanes}, MPS {mps} B");
        }
    }
    assert_eq!(Generation::Gen2.latency_limit(1, 128), Duration::from_ns(2 * 288));
    assert_eq!(Generation::Gen3.latency_limit(8, 256), Duration::from_ns(203));
    // The formula at higher rates, with symbol times of 0.5 ns and 0.25 ns.
    assert_eq!(Generation::Gen4.latency_limit(16, 256), Duration::from_ps(500 * 168));
    assert_eq!(Generation::Gen4.latency_limit(1, 4096), Duration::from_ps(500 * 4239));
    assert_eq!(Generation::Gen5.latency_limit(16, 128), Duration::from_ps(250 * 144));
}

/// Returns the keys of a spec's problems.
fn refused(spec: PcieSpec) -> Vec<&'static str> {
    spec.problems().iter().map(|problem| problem.key).collect()
}

#[test]
fn a_link_is_refused_where_the_specification_has_none_such() {
    let good = gen3x8();
    assert!(refused(good).is_empty());
    assert_eq!(refused(PcieSpec { lanes: 3, ..good }), ["lanes"]);
    assert_eq!(refused(PcieSpec { mps: 384, ..good }), ["mps"]);
    assert_eq!(refused(PcieSpec { mrrs: 64, ..good }), ["mrrs"]);
    assert_eq!(refused(PcieSpec { mrrs: 8192, ..good }), ["mrrs"]);
    assert_eq!(refused(PcieSpec { rcb: 96, ..good }), ["rcb"]);
    assert_eq!(refused(PcieSpec { tags: 0, ..good }), ["tags"]);
    assert_eq!(refused(PcieSpec { tags: 257, ..good }), ["tags"]);
    assert!(refused(PcieSpec { tags: 768, generation: Generation::Gen4, ..good }).is_empty());
    assert_eq!(refused(PcieSpec { port_latency: Duration::from_ns(251), ..good }), ["port_latency"]);
    assert_eq!(refused(PcieSpec { push_payload: 512, ..good }), ["push_payload"]);
    assert_eq!(refused(PcieSpec { push_payload: 96, ..good }), ["push_payload"]);
    // A TLP of 256 bytes takes 16 credits. Without scaling, the maximum is 127 header credits and 2047 data credits.
    let posted = |headers, data| PcieSpec { posted: Credits { headers, data }, ..good };
    assert_eq!(refused(posted(1, 15)), ["posted_data"]);
    assert!(refused(posted(1, 16)).is_empty());
    assert_eq!(refused(posted(128, 2048)), ["posted_headers", "posted_data"]);
    assert!(refused(PcieSpec { generation: Generation::Gen4, ..posted(128, 2048) }).is_empty());
    assert_eq!(refused(PcieSpec { non_posted_headers: 128, ..good }), ["non_posted_headers"]);
    let completion = Credits { headers: 128, data: 1 };
    assert_eq!(refused(PcieSpec { completion, ..good }), ["completion_headers", "completion_data"]);
    let problem = &PcieSpec { lanes: 3, ..good }.problems()[0];
    assert_eq!(problem.message, "a link has no 3 lanes");
    assert_eq!(problem.help, "write 1, 2, 4, 8, 12, 16 or 32");
}
