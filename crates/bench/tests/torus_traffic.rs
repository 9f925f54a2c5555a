//! The benchmark of a torus: what a packet takes by hand, what patterns saturate at, and what is refused.

use nicety::{Environment, Error, Log};
use nicety_bench::torus::{self, Report, Request};
use std::sync::Arc;

fn measure(request: &Request) -> Result<Report, Error> {
    let (compiled, progress) = (nicety::Compiled::default(), |_, _| {});
    let log: Log = Arc::new(|line| panic!("nothing prints: {line}"));
    torus::run(request, &Environment { compiled: &compiled, log, interrupt: None, progress: &progress })
}

#[test]
fn look() {
    let text = std::env::var("REQ").unwrap();
    let r = measure(&Request::from_json(&text).unwrap()).unwrap();
    for row in r.rows {
        println!(
            "{} {:.2} {:.4} lat {:.0} min {:.0} p99 {:.0} max {:.0} hops {:.3} n {} und {}",
            row.pattern,
            row.offered_fraction,
            row.accepted_fraction,
            row.latency_ns,
            row.min_ns,
            row.p99_ns,
            row.max_ns,
            row.hops_mean,
            row.packets,
            row.undelivered_packets
        );
    }
    println!("{:?}", r.saturation);
}
