//! A card on PCI Express in place of its own bus. Times are computed by hand, and every byte is checked on links of any width.

use nicety::{Environment, Error};
use nicety_bench::{Report, Request, run};
use std::sync::Arc;

fn latency(nic: &str, mode: &str, sizes: &[u64], overrides: &[&str]) -> Result<Report, Error> {
    let request = serde_json::json!({
        "benchmark": "latency",
        "nics": [nic],
        "modes": [mode],
        "sizes": sizes,
        "iterations": 3,
        "overrides": overrides,
    });
    let environment =
        Environment { log: Arc::new(|line| panic!("nothing prints: {line}")), ..Environment::default() };
    run(&Request::from_json(&request.to_string())?, &environment)
}

fn stages(report: &Report) -> Vec<(&str, f64)> {
    report.rows[0].stages.as_ref().unwrap().iter().map(|s| (s.stage, s.ns)).collect()
}

#[test]
fn a_put_of_8_bytes_by_hand() {
    // PCI Express of generation 4 with 32 lanes: 15.869140625 ps per byte. The push has 64 + 8 bytes in one TLP of 96 bytes:
    // 1.524 ns. The deposit is a TLP of 32 bytes, 0.508 ns. The counter follows as a TLP of 40 bytes, 0.635 ns.
    let report = latency("spin-discrete", "rdma", &[8], &["bus.kind=pcie"]).unwrap();
    assert_eq!(
        stages(&report),
        [
            ("post", 65.0),
            ("bus", 251.524),
            ("link", 33.56),
            ("match", 30.0),
            ("deposit", 251.143),
            ("notice", 65.0)
        ]
    );
    assert_eq!(report.rows[0].latency_ns, Some(696.227));
    assert_eq!(report.rows[0].min_ns, report.rows[0].max_ns);
}

#[test]
fn a_narrow_link_is_the_slowest_of_the_chain() {
    // PCI Express of generation 3 with 8 lanes: 126.953125 ps per byte. The push has 4160 bytes in 16 TLPs of 280 bytes and
    // one of 88. They take 35.547 x 16 + 11.172 = 579.924 ns, which hides the 81.92 ns of the network link. The deposit is
    // 16 TLPs of 280 bytes, 568.752 ns, and the counter a TLP of 40 bytes, 5.079 ns.
    let narrow = ["bus.kind=pcie", "bus.pcie.generation=3", "bus.pcie.lanes=8"];
    let report = latency("spin-discrete", "rdma", &[4096], &narrow).unwrap();
    assert_eq!(
        stages(&report),
        [
            ("post", 65.0),
            ("bus", 829.924),
            ("link", 33.4),
            ("match", 30.0),
            ("deposit", 823.831),
            ("notice", 65.0)
        ]
    );
}

#[test]
fn every_byte_arrives_however_few_tags_and_credits_there_are() {
    let starved = [
        "bus.kind=pcie",
        "bus.pcie.generation=1",
        "bus.pcie.lanes=1",
        "bus.pcie.tags=1",
        "bus.pcie.posted_headers=1",
        "bus.pcie.posted_data=16",
        "bus.pcie.non_posted_headers=1",
        "bus.pcie.completion_headers=1",
        "bus.pcie.completion_data=16",
        "bus.pcie.push_payload=64 B",
        "bus.pcie.completions=rcb",
        "bus.pcie.ecrc=true",
    ];
    let sizes = [0, 1, 8, 4096, 4097, 65_536];
    for nic in ["spin-discrete", "spin-integrated"] {
        for mode in ["rdma", "portals4"] {
            let starved = latency(nic, mode, &sizes, &starved).unwrap();
            let wide = latency(nic, mode, &sizes, &["bus.kind=pcie"]).unwrap();
            for (slow, fast) in starved.rows.iter().zip(&wide.rows) {
                assert!(slow.verified && fast.verified);
                assert!(slow.latency_ns > fast.latency_ns, "{slow:?} {fast:?}");
                for row in [slow, fast] {
                    let sum: f64 = row.stages.as_ref().unwrap().iter().map(|s| s.ns).sum();
                    assert!((sum - row.latency_ns.unwrap()).abs() < 1e-6, "{row:?}");
                }
            }
        }
    }
}

#[test]
fn plain_is_what_a_card_has_without_a_word() {
    let sizes = [8, 4097, 65_536];
    let silent = latency("spin-discrete", "portals4", &sizes, &[]).unwrap();
    let plain = latency("spin-discrete", "portals4", &sizes, &["bus.kind=plain"]).unwrap();
    assert_eq!(silent.rows, plain.rows);
}

#[test]
fn impossible_buses_are_refused() {
    let error =
        latency("spin-discrete", "rdma", &[8], &["bus.kind=pcie", "bus.pcie.generation=6"]).unwrap_err();
    assert!(error.to_string().contains("generation 6 is not modelled: it sends flits"), "{error}");
}
