//! The benchmark of a torus: the time of a packet computed by hand, the saturation of patterns, and invalid requests.

use nicety::{Environment, Error, Log};
use nicety_bench::torus::{self, Report, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn in_environment(
    request: &Request,
    interrupt: Option<Arc<AtomicBool>>,
    progress: &dyn Fn(usize, usize),
) -> Result<Report, Error> {
    let compiled = nicety::Compiled::default();
    let log: Log = Arc::new(|line| panic!("nothing prints: {line}"));
    torus::run(
        request,
        &Environment { log, interrupt, progress, compiled: &compiled, ..Environment::default() },
    )
}

fn measure(request: &Request) -> Result<Report, Error> {
    in_environment(request, None, &|_, _| {})
}

fn on(topology: &str, pattern: &str, load: &str) -> Request {
    Request {
        topology: topology.into(),
        patterns: vec![pattern.into()],
        load: load.into(),
        ..Request::new(&["spin-discrete"])
    }
}

#[test]
fn a_packet_by_hand() {
    // A packet passes two routers of 50 ns each and a link of 33.4 ns. Its 4096 bytes take 20 ps each. Each link between card
    // and router adds 1 ps. At a load of a thousandth, the packet meets no other packet.
    let request = Request { duration: Some("2ms".into()), ..on("torus:3", "neighbour", "0.001") };
    let report = measure(&request).unwrap();
    let row = &report.rows[0];
    let alone = 2.0 * 50.0 + 33.4 + 81.92 + 0.002;
    assert!((row.p50_ns - alone).abs() < 1e-9 && row.min_ns == row.p50_ns, "{row:?}");
    assert_eq!((row.hops_mean, row.undelivered_packets), (1.0, 0));
    // Each of three nodes sends a packet every 81.92 us, for 2 ms.
    assert!((50..100).contains(&row.packets), "{row:?}");
    // The destination is three nodes further in each of three dimensions: the route has 10 routers and 9 links.
    let far = &measure(&on("torus:8x8x8", "tornado", "0.01")).unwrap().rows[0];
    assert!((far.min_ns - (10.0 * 50.0 + 9.0 * 33.4 + 81.92 + 0.002)).abs() < 1e-9, "{far:?}");
    assert_eq!(far.hops_mean, 9.0);
    // On the longest route, the destination is four nodes further in each dimension.
    let longest = measure(&on("torus:8x8x8", "uniform", "0.01")).unwrap();
    let (saturation, row) = (&longest.saturation[0], &longest.rows[0]);
    assert!((saturation.zero_load_latency_ns - (13.0 * 50.0 + 12.0 * 33.4 + 81.92 + 0.002)).abs() < 1e-9);
    assert!(!row.saturated && row.p50_ns < saturation.zero_load_latency_ns, "{row:?}");
}

#[test]
fn a_slow_card_is_measured_for_longer() {
    let at = |request: Request| measure(&Request { nics: vec!["qnix".into()], ..request }).unwrap();
    let report = at(on("torus:4x4x4", "uniform", "0.1"));
    // 4128 bytes take 5 ns each, 7 routers 100 ns each, and 6 links 200 ns each.
    let alone = 4128.0 * 5.0 + 7.0 * 100.0 + 6.0 * 200.0 + 0.002;
    let of = |report: &Report| (report.manifest.warmup_ns, report.manifest.duration_ns);
    assert!((of(&report).0 - 2.0 * alone).abs() < 1e-9, "{:?}", of(&report));
    assert!((of(&report).1 - 10.0 * 4128.0 * 5.0).abs() < 1e-9);
    assert!(!report.rows[0].saturated && report.saturation[0].measured_saturation_fraction.is_none());
    let short = Request {
        warmup: Some("1us".into()),
        duration: Some("1us".into()),
        ..on("torus:4x4", "uniform", "1")
    };
    assert_eq!(of(&at(short)), (1000.0, 1000.0));
}

#[test]
fn credits_limit_short_packets() {
    // A packet of 64 bytes takes 1.28 ns at 20 ps per byte. A card's own packets have 8 places in the router. A packet holds
    // a place for 50 ns in the router and 1.28 ns on the way out. The link and the credit add 2 ps.
    let report = measure(&Request { packet: 64, ..on("torus:4x4x4", "uniform", "0.1,0.5") }).unwrap();
    let of = report.saturation[0].buffer_limit_fraction.unwrap();
    assert!((of - 8.0 * 1.28 / 51.282).abs() < 1e-9, "{of}");
    let measured = report.saturation[0].measured_saturation_fraction.unwrap();
    assert!((measured - of).abs() < 0.005, "{measured} against {of}");
    // With 1000 of these places, the places of links are the limit: twice 32. A packet holds each for a round trip at 33.4 ns
    // as well.
    let links = Request {
        packet: 64,
        overrides: vec!["router.entry=1000".into()],
        ..on("torus:8", "tornado", "0.5")
    };
    let report = measure(&links).unwrap();
    let (of, loads) =
        (report.saturation[0].buffer_limit_fraction.unwrap(), report.saturation[0].channel_load_max);
    assert!((of - 2.0 * 32.0 * 1.28 / 118.08 / 3.0).abs() < 1e-9, "{of}");
    assert_eq!(loads, Some(3.0));
    assert!(report.rows[0].accepted_fraction <= of, "{report:?}");
    let long = measure(&on("torus:4x4x4", "uniform", "0.1")).unwrap();
    assert_eq!(long.saturation[0].buffer_limit_fraction, None);
}

#[test]
fn an_offered_load_is_accepted_below_saturation() {
    for (topology, pattern, load) in [
        ("torus:4x4x4", "uniform", "0.3"),
        ("torus:4x4x4", "alltoall", "0.5"),
        ("torus:8x8", "tornado", "0.2"),
        ("torus:4x4", "transpose", "0.3"),
        ("torus:8x2", "bit-complement", "0.3"),
        ("torus:5x3x1", "neighbour", "0.7"),
    ] {
        let report =
            measure(&Request { duration: Some("60us".into()), ..on(topology, pattern, load) }).unwrap();
        let row = &report.rows[0];
        assert!((row.accepted_fraction / row.offered_fraction - 1.0).abs() < 0.06, "{row:?}");
        let saturation = &report.saturation[0];
        assert!(saturation.saturation_fraction > Some(row.offered_fraction), "{saturation:?}");
        assert_eq!(saturation.measured_saturation_fraction, None);
        assert!(row.min_ns <= row.p50_ns && row.p50_ns <= row.p99_ns && row.p99_ns <= row.max_ns);
        let nodes = f64::from(report.manifest.nodes);
        let senders = if pattern == "transpose" { nodes - 4.0 } else { nodes };
        let bytes = row.accepted_fraction * senders * 50e9;
        assert!((row.accepted_bytes_per_s / bytes - 1.0).abs() < 1e-9, "{row:?}");
    }
}

#[test]
fn traffic_saturates_where_the_first_link_is_full() {
    // Tornado in a ring of 8: every link carries the packets of three nodes. Uniform in a ring of 16: the load is about 2.
    for (topology, pattern, expected, within) in
        [("torus:8", "tornado", 1.0 / 3.0, 0.05), ("torus:16", "uniform", 0.469, 0.15)]
    {
        let report = measure(&on(topology, pattern, "0.1,1.0")).unwrap();
        let saturation = &report.saturation[0];
        assert!((saturation.saturation_fraction.unwrap() - expected).abs() < 0.001, "{saturation:?}");
        let measured = saturation.measured_saturation_fraction.unwrap();
        assert!((measured / expected - 1.0).abs() < within, "{saturation:?}");
        let [slow, fast] = &report.rows[..] else { panic!("two loads") };
        assert!(slow.latency_ns * 5.0 < fast.latency_ns && fast.accepted_fraction == measured);
    }
}

#[test]
fn a_seed_gives_one_report_and_another_another() {
    let request = Request { duration: Some("5us".into()), ..on("torus:3x3", "uniform", "0.2:0.4:0.2") };
    let [first, again] = [(), ()].map(|()| measure(&request).unwrap());
    assert_eq!(first, again);
    assert_eq!(first.rows.len(), 2);
    assert_ne!(measure(&Request { seed: 2, ..request }).unwrap().rows, first.rows);
}

#[test]
fn progress_goes_up_and_an_interrupt_ends_a_long_run() {
    let (interrupt, seen) = (Arc::new(AtomicBool::new(false)), std::cell::Cell::new(0));
    let long = Request { duration: Some("1ms".into()), ..on("torus:8x8x8", "uniform", "0.5") };
    let error = in_environment(&long, Some(interrupt.clone()), &|done, total| {
        assert_eq!(total, 100);
        assert!(done >= seen.get());
        seen.set(done);
        if done > 0 {
            interrupt.store(true, Ordering::Relaxed);
        }
    });
    assert!(matches!(error, Err(Error::Interrupted)));
    assert!((1..100).contains(&seen.get()));
}

#[test]
fn any_cards_link_and_router_will_do() {
    let request = Request {
        nics: ["spin-discrete", "qnix", "nfp-4000"].map(str::to_owned).to_vec(),
        duration: Some("3ms".into()),
        packet: 1024,
        ..on("torus:2x2", "uniform", "0.01")
    };
    let report = measure(&request).unwrap();
    assert_eq!(report.rows.iter().map(|row| row.nic.as_str()).collect::<Vec<_>>(), request.nics);
    // The links have 50 GB/s, 200 MB/s and 1.25 GB/s, and the packets have each card's own headers.
    let latencies: Vec<f64> = report.rows.iter().map(|row| row.min_ns).collect();
    assert!(latencies[0] < latencies[2] && latencies[2] < latencies[1], "{latencies:?}");
}

#[test]
fn requests_that_cannot_be_are_refused() {
    let good = on("torus:4x4", "uniform", "0.1");
    let with = |change: &dyn Fn(&mut Request)| {
        let mut request = good.clone();
        change(&mut request);
        request
    };
    for (request, expected) in [
        (with(&|r| r.nics = vec![]), "no card named"),
        (with(&|r| r.topology = "star".into()), "--topology star: this is no torus; write for example"),
        (
            with(&|r| r.topology = "torus".into()),
            "the number of nodes is missing; write for example --topology torus:8x8x8",
        ),
        (with(&|r| r.topology = "torus:0x4".into()), "a dimension has 1 node at least"),
        (with(&|r| r.topology = "torus:1024x1024".into()), "1048576 nodes; the maximum is 131072"),
        (with(&|r| r.topology = "torus:1".into()), "a single node has nobody to send to"),
        (with(&|r| r.patterns = vec![]), "no pattern named"),
        (with(&|r| r.patterns = vec!["uniform".into(), "star".into()]), "no pattern 'star'"),
        (with(&|r| (r.topology, r.patterns) = ("torus:4x2".into(), vec!["transpose".into()])), "torus:8x8x8"),
        (with(&|r| r.load = "1.5".into()), "a load or a step is at most 1, the full rate of the link"),
        (with(&|r| r.packet = 0), "--packet is 1 to 1048576, not 0"),
        (with(&|r| r.duration = Some("20".into())), "--duration: "),
        (with(&|r| r.duration = Some("0 ns".into())), "nothing would be measured"),
        (with(&|r| r.warmup = Some("soon".into())), "--warmup: "),
        (with(&|r| r.duration = Some("10 s".into())), "write a shorter --duration"),
        (
            with(&|r| (r.duration, r.load) = (Some("1ns".into()), "0.001".into())),
            "no packet came in the measured time",
        ),
    ] {
        let error = measure(&request).unwrap_err();
        assert!(error.exit_status() == 2 && error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_lost_packet_ends_the_run_with_an_error() {
    // Bit errors damage every packet. The link sends a packet twice and then gives up.
    let overrides = ["link.bit_error_rate=0.01", "link.retries=1"].map(str::to_owned).to_vec();
    let nics = vec!["apenet-v5".to_owned()];
    let error = measure(&Request { nics, overrides, ..on("torus:2x2x1", "uniform", "0.1") }).unwrap_err();
    let Error::Undelivered(text) = error else { panic!("{error}") };
    assert!(
        text.contains("packets were not delivered and not retransmitted; the first lost packet: message 0"),
        "{text}"
    );
    assert!(text.contains("damaged each time that the link sent it"), "{text}");
}
