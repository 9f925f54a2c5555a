//! Benchmarks of sockets: throughput below the limit of the wire, costs that add up, sweeps, and invalid requests.

use nicety::options::NetworkOptions;
use nicety::{Environment, Error, Log};
use nicety_bench::sockets::{
    self, Direction, ExchangeRequest, ExchangeRow, Report, StreamRequest, StreamRow,
};
use std::sync::Arc;

fn in_environment<T>(run: impl FnOnce(&Environment<'_>) -> Result<T, Error>) -> Result<T, Error> {
    let compiled = nicety::Compiled::default();
    let log: Log = Arc::new(|line| panic!("nothing prints: {line}"));
    run(&Environment { log, compiled: &compiled, ..Environment::default() })
}

fn stream(request: &StreamRequest) -> Result<Report<StreamRow>, Error> {
    in_environment(|environment| sockets::run_streams(request, environment))
}

fn exchange(request: &ExchangeRequest) -> Result<Report<ExchangeRow>, Error> {
    in_environment(|environment| sockets::run_exchanges(request, environment))
}

fn short(nic: &str) -> StreamRequest {
    StreamRequest {
        warmup: "2ms".into(),
        duration: "3ms".into(),
        connections: Some(vec![4]),
        ..StreamRequest::new(&[nic])
    }
}

#[test]
fn a_stream_gets_what_the_wire_has_and_its_costs_add_up() {
    // A frame with 1460 bytes of payload has 1538 bytes on the wire, including preamble and gap. The factor 1.03 allows for
    // bytes that arrived before the measured time, and that the program reads during it.
    let most = 10e9 * 1460.0 / 1538.0 * 1.03;
    for direction in [Direction::Receive, Direction::Transmit] {
        // With one cycle per instruction, the CPUs keep up with the wire.
        let overrides = vec!["threads.cycles_per_instruction=1".to_owned()];
        let report = stream(&StreamRequest { direction, overrides, ..short("niagara2-niu") }).unwrap();
        let row = &report.rows[0];
        assert!(row.verified && (3e9..most).contains(&row.bandwidth_bits_per_s), "{row:?}");
        let usage = &row.usage;
        let sum: f64 = usage.breakdown.iter().map(|group| group.ns_per_packet).sum();
        assert!((sum - usage.cpu_ns_per_packet).abs() < 1e-6 * sum, "{row:?}");
        let busy = usage.cpu_ns_per_packet * usage.packets as f64;
        assert!((busy / (64.0 * 3e6) - usage.cpu_utilisation).abs() < 1e-9);
        assert_eq!((row.cpus, usage.retransmissions, usage.dropped), (64, 0, 0));
        // Every frame with payload counts as a packet. Few other frames arrive.
        let frames = row.bandwidth_bits_per_s * 3e-3 / 8.0 / 1460.0;
        if direction == Direction::Receive {
            assert!((0.9..1.1).contains(&(usage.packets as f64 / frames)), "{row:?}");
        }
    }
}

#[test]
fn fewer_cpus_have_more_to_do() {
    let request = StreamRequest {
        cpus: Some(vec![2]),
        connections: None,
        warmup: "20ms".into(),
        ..short("niagara2-neptune")
    };
    let report = stream(&request).unwrap();
    let [few] = &report.rows[..] else { panic!("one row") };
    let all = &stream(&StreamRequest { cpus: None, ..request.clone() }).unwrap().rows[0];
    assert_eq!((few.cpus, all.cpus), (2, 64));
    assert!(few.usage.cpu_utilisation > 0.9 && few.usage.cpu_utilisation < 1.05, "{few:?}");
    assert!(few.bandwidth_bits_per_s < all.bandwidth_bits_per_s / 2.0);
}

#[test]
fn losses_are_sent_again() {
    let request = StreamRequest {
        network: NetworkOptions { faults: Some("loss=1e-2".into()), ..NetworkOptions::default() },
        ..short("niagara2-niu")
    };
    let lossy = stream(&request).unwrap();
    assert!(lossy.rows[0].usage.retransmissions > 0 && lossy.rows[0].verified, "{lossy:?}");
    assert_eq!(stream(&request).unwrap(), lossy);
    assert_ne!(
        stream(&StreamRequest { network: NetworkOptions { seed: 2, ..request.network.clone() }, ..request })
            .unwrap()
            .rows,
        lossy.rows
    );
}

#[test]
fn requests_have_replies() {
    let request = ExchangeRequest {
        warmup: "1ms".into(),
        duration: "4ms".into(),
        size: 100,
        reply: 2000,
        ..ExchangeRequest::new(&["niagara2-neptune"], &[1, 4])
    };
    let report = exchange(&request).unwrap();
    let [one, four] = &report.rows[..] else { panic!("two rows") };
    assert!(one.verified && one.requests > 3, "{one:?}");
    assert!((one.requests_per_s - one.requests as f64 / 4e-3).abs() < 1e-6);
    // A connection has one request in flight, so the number of requests is the measured time divided by the latency.
    assert!((one.requests as f64 * one.latency_ns / 4e6 - 1.0).abs() < 0.3, "{one:?}");
    assert!(four.requests > 3 * one.requests && four.min_ns <= four.p50_ns && four.p50_ns <= four.max_ns);
    let busy = one.usage.cpu_ns_per_packet * one.usage.packets as f64;
    assert!((busy / one.requests as f64 - one.cpu_ns_per_request).abs() < 1e-6 * busy);
    let thinking = exchange(&ExchangeRequest { think: Some("1ms".into()), ..request }).unwrap();
    assert!(thinking.rows[0].requests < one.requests, "{:?}", thinking.rows[0]);
    assert_eq!(thinking.rows[0].think_ns, 1e6);
}

#[test]
fn impossible_measurements_are_refused() {
    let base = || short("niagara2-niu");
    for (request, why) in [
        (StreamRequest { nics: vec!["spin-discrete".into()], ..base() }, "has no sockets"),
        (StreamRequest { peer: Some("qnix".into()), ..base() }, "qnix"),
        (StreamRequest { connections: Some(vec![0]), ..base() }, "--connections is 1 to 10000, not 0"),
        (StreamRequest { connections: Some(vec![]), ..base() }, "--connections: no number named"),
        (StreamRequest { io_sizes: Some(vec![1 << 25]), ..base() }, "--io-sizes is 1 to 16777216"),
        (StreamRequest { cpus: Some(vec![65]), ..base() }, "--cpus 65: expected a whole number from 1 to 64"),
        (StreamRequest { duration: "0 ns".into(), ..base() }, "nothing would be measured"),
        (StreamRequest { warmup: "soon".into(), ..base() }, "--warmup: "),
        (
            StreamRequest {
                network: NetworkOptions { topology: Some("torus:4".into()), ..NetworkOptions::default() },
                ..base()
            },
            "write --topology torus:2x1x1",
        ),
        (
            StreamRequest {
                network: NetworkOptions { faults: Some("loss=2".into()), ..NetworkOptions::default() },
                ..base()
            },
            "loss",
        ),
    ] {
        let error = stream(&request).unwrap_err();
        assert!(error.exit_status() == 2 && error.to_string().contains(why), "{error}");
    }
    let base = || ExchangeRequest::new(&["niagara2-niu"], &[1]);
    for (request, why) in [
        (ExchangeRequest { nics: vec!["nfp-4000".into()], ..base() }, "has no sockets"),
        (ExchangeRequest { size: 0, ..base() }, "--size is 1 to 16777216, not 0"),
        (ExchangeRequest { reply: 0, ..base() }, "--reply is 1 to 16777216, not 0"),
        (ExchangeRequest { think: Some("long".into()), ..base() }, "--think: "),
        (
            ExchangeRequest { duration: "1ns".into(), warmup: "0 ns".into(), ..base() },
            "no reply came in the measured time",
        ),
    ] {
        let error = exchange(&request).unwrap_err();
        assert!(error.exit_status() == 2 && error.to_string().contains(why), "{error}");
    }
}

#[test]
fn a_connection_that_times_out_fails_the_run() {
    let request = StreamRequest {
        network: NetworkOptions {
            faults: Some("fail=hosts.0 -> hosts.1@1ms".into()),
            ..NetworkOptions::default()
        },
        ..short("niagara2-niu")
    };
    let error = stream(&StreamRequest { overrides: vec!["tcp.timeout=20ms".into()], ..request }).unwrap_err();
    assert!(error.exit_status() == 1 && matches!(error, Error::Program(_)), "{error:?}");
    assert!(error.to_string().starts_with("niagara2-niu, 4 connections, 65536 B a call: "), "{error}");
}
