//! The worked examples of the timing contract (ARCHITECTURE.md), exact to the picosecond, and the order of modes in the paper.

use nicety::{Environment, Error};
use nicety_bench::{Benchmark, Report, Request, run};
use std::sync::Arc;

fn request(nic: &str, mode: &str, sizes: &[u64]) -> Request {
    Request {
        modes: Some(vec![mode.into()]),
        iterations: Some(3),
        ..Request::new(Benchmark::Latency, &[nic], sizes)
    }
}

fn measure(request: &Request) -> Result<Report, Error> {
    run(
        request,
        &Environment { log: Arc::new(|line| panic!("nothing prints: {line}")), ..Environment::default() },
    )
}

/// Returns the time of a round trip in picoseconds, which is twice the latency.
fn round_trip_ps(report: &Report) -> f64 {
    report.rows[0].latency_ns.unwrap() * 2_000.0
}

fn stages(report: &Report) -> Vec<(&str, f64)> {
    report.rows[0].stages.as_ref().unwrap().iter().map(|s| (s.stage, s.ns)).collect()
}

#[test]
fn rdma_of_8_bytes() {
    let report = measure(&request("spin-discrete", "rdma", &[8])).unwrap();
    assert_eq!(round_trip_ps(&report), 2.0 * 693_685.0);
    assert_eq!(
        stages(&report),
        [
            ("post", 65.0),
            ("bus", 250.0),
            ("link", 33.56),
            ("match", 30.0),
            ("deposit", 250.125),
            ("notice", 65.0)
        ]
    );
}

#[test]
fn rdma_of_64_kib() {
    let report = measure(&request("spin-discrete", "rdma", &[65_536])).unwrap();
    assert_eq!(round_trip_ps(&report), 2.0 * 2_040_018.0);
    assert_eq!(
        stages(&report),
        [
            ("post", 65.0),
            ("bus", 250.0),
            ("link", 1344.12),
            ("match", 2.0),
            ("deposit", 313.898),
            ("notice", 65.0)
        ]
    );
}

#[test]
fn a_triggered_put_answers_8_bytes() {
    let report = measure(&request("spin-discrete", "portals4", &[8])).unwrap();
    assert_eq!(round_trip_ps(&report), 1_257_370.0);
}

#[test]
fn stages_add_up_to_the_latency() {
    for nic in ["spin-discrete", "spin-integrated"] {
        for mode in ["rdma", "portals4"] {
            let report = measure(&request(nic, mode, &[1, 8, 4096, 4097, 1 << 20])).unwrap();
            for row in &report.rows {
                let sum: f64 = row.stages.as_ref().unwrap().iter().map(|s| s.ns).sum();
                assert!((sum - row.latency_ns.unwrap()).abs() < 1e-6, "{row:?}");
                assert_eq!(row.min_ns, row.max_ns, "nothing varies here: {row:?}");
            }
        }
    }
}
