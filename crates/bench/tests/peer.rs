//! Benchmarks of a card with peers that have a different card.

use nicety::{Compiled, Environment, Error};
use nicety_bench::{Benchmark, Report, Request, plan, run};

fn measured(request: &Request) -> Result<Report, Error> {
    let compiled = Compiled::new();
    run(request, &Environment { compiled: &compiled, ..Environment::default() })
}

fn request(benchmark: Benchmark, nic: &str, peer: &str, modes: &[&str], sizes: &[u64]) -> Request {
    Request {
        peer: Some(peer.to_owned()),
        modes: Some(modes.iter().map(|mode| mode.to_string()).collect()),
        iterations: Some(2),
        ..Request::new(benchmark, &[nic], sizes)
    }
}

#[test]
fn a_peer_answers_in_its_own_time() {
    let request =
        request(Benchmark::Latency, "spin-discrete", "spin-integrated", &["rdma", "portals4"], &[8]);
    let report = measured(&request).unwrap();
    let latencies: Vec<_> = report.rows.iter().map(|row| row.latency_ns.unwrap()).collect();
    // Half of post, bus, link, match, deposit with event, and notice, summed over both directions. They are computed in
    // tests/mixed.rs of nicety.
    assert_eq!(latencies[0], (493.614 + 493.685) / 2.0);
    // The peer's card answers by a put. After the deposit it fetches the put's bytes over its own bus (8 B x 6.7 ps/B). The
    // request and the bytes each take one bus latency.
    let there = 65.0 + 250.0 + 33.56 + 30.0 + 0.054 + 100.0;
    let back = 33.56 + 30.0 + 250.125 + 65.0;
    let off = latencies[1] - (there + back) / 2.0;
    assert!((0.0..=0.0011).contains(&off), "{} is off by {off}", latencies[1]);
    let peer = report.manifest.peer.unwrap();
    assert_eq!(peer.nic, "spin-integrated");
    assert_ne!(peer.card.spec_hash, report.manifest.specs["spin-discrete"].spec_hash);
    assert_eq!(report.manifest.specs.len(), 1);
    assert!(report.rows.iter().all(|row| row.verified && row.nic == "spin-discrete"));
}

#[test]
fn changes_are_of_the_card_and_not_of_its_peer() {
    let request = request(Benchmark::Latency, "spin-discrete", "spin-discrete", &["rdma"], &[8]);
    let slower = Request { overrides: vec!["bus.latency=350 ns".into()], ..request.clone() };
    let latency = |request| measured(request).unwrap().rows[0].latency_ns.unwrap();
    // A round trip crosses the bus of the measured card twice.
    assert_eq!(latency(&slower) - latency(&request), 100.0);
}

#[test]
fn streams_and_incasts_have_peers() {
    for (benchmark, pattern) in [
        (Benchmark::Bandwidth, "pair"),
        (Benchmark::Bandwidth, "bidirectional"),
        (Benchmark::MessageRate, "incast:3"),
    ] {
        for (nic, peer, mode) in [("spin-discrete", "spin-integrated", "rdma"), ("qnix", "qnix", "auto")] {
            let request = request(benchmark, nic, peer, &[mode], &[64, 5000]);
            let report = measured(&Request { pattern: pattern.to_owned(), ..request }).unwrap();
            assert!(report.rows.iter().all(|row| row.verified), "{pattern}");
        }
    }
}

#[test]
fn handlers_are_compiled_for_the_cards_that_run_them() {
    let keys = |pattern: &str| {
        let request =
            request(Benchmark::Latency, "spin-discrete", "spin-integrated", &["rdma", "spin-stream"], &[8]);
        let plan = plan(&Request { pattern: pattern.to_owned(), ..request }).unwrap();
        plan.compile.into_iter().map(|planned| planned.key).collect::<Vec<_>>()
    };
    assert_eq!(keys("pair"), ["peer spin-integrated/spin-stream"]);
    assert_eq!(keys("bidirectional"), ["spin-discrete/spin-stream", "peer spin-integrated/spin-stream"]);
}

#[test]
fn a_peer_that_does_not_understand_the_card_is_refused() {
    let refusal = |nic, peer| measured(&request(Benchmark::Latency, nic, peer, &["auto"], &[8])).unwrap_err();
    let Error::Input(text) = refusal("qnix", "nfp-4000") else { panic!("no wrong input") };
    assert!(
        text.starts_with(
            "with --peer: rank 0 has card qnix, which sends QNIX packets, and rank 1 has nfp-4000, which"
        ),
        "{text}"
    );
    assert!(matches!(refusal("qnix", "no-such-card"), Error::Input(_)));
}
