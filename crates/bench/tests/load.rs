//! Traffic patterns, background noise, percentiles, and the host memory traffic of a benchmark.

use nicety::options::NetworkOptions;
use nicety::{Cluster, ClusterConfig, Duration, Environment, Error, Noise, Run, Time, Topology, cards};
use nicety_bench::{Benchmark, HostMemory, Report, Request, Row, run};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const NIC: &str = "spin-discrete";

fn measure(request: &Request) -> Result<Report, Error> {
    run(
        request,
        &Environment { log: Arc::new(|line| panic!("nothing prints: {line}")), ..Environment::default() },
    )
}

fn request(benchmark: Benchmark, mode: &str, size: u64) -> Request {
    Request { modes: Some(vec![mode.into()]), ..Request::new(benchmark, &[NIC], &[size]) }
}

fn patterned(benchmark: Benchmark, mode: &str, size: u64, pattern: &str) -> Request {
    Request { pattern: pattern.into(), ..request(benchmark, mode, size) }
}

fn row(request: &Request) -> Row {
    let mut rows = measure(request).unwrap().rows;
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

const BENCHMARKS: [Benchmark; 3] = [Benchmark::Latency, Benchmark::Bandwidth, Benchmark::MessageRate];
const MODES: [&str; 2] = ["rdma", "portals4"];

#[test]
fn an_incast_of_one_is_a_pair() {
    for benchmark in BENCHMARKS {
        for mode in MODES {
            for size in [8, 5000] {
                for topology in ["pair", "star"] {
                    let on = |pattern| Request {
                        network: NetworkOptions {
                            topology: Some(topology.into()),
                            ..NetworkOptions::default()
                        },
                        ..patterned(benchmark, mode, size, pattern)
                    };
                    let (pair, incast) = (row(&on("pair")), row(&on("incast:1")));
                    assert_eq!(incast.flows.as_ref().unwrap().len(), 1);
                    assert_eq!(incast.fairness, Some(1.0));
                    assert_eq!(pair, Row { flows: None, fairness: None, ..incast });
                }
            }
        }
    }
}

#[test]
fn both_ways_at_once_disturb_each_other_nowhere_but_on_the_bus_and_the_cpu() {
    for mode in MODES {
        // Messages of 8 bytes in opposite directions do not contend.
        let pair = row(&request(Benchmark::Latency, mode, 8));
        let both = row(&patterned(Benchmark::Latency, mode, 8, "bidirectional"));
        assert_eq!(both.latency_ns, pair.latency_ns);
        let flows = both.flows.unwrap();
        assert_eq!(
            [(flows[0].source, flows[0].target), (flows[1].source, flows[1].target)],
            [(0, 1), (1, 0)]
        );
        assert!(flows.iter().all(|flow| flow.latency_ns == pair.latency_ns));
        // Links and buses are full duplex, so the throughput doubles.
        let bandwidth = |pattern| row(&patterned(Benchmark::Bandwidth, mode, 1 << 16, pattern));
        let (pair, both) = (bandwidth("pair"), bandwidth("bidirectional"));
        assert!(pair.window.is_some_and(|messages| messages > 1) && pair.window == both.window);
        let ratio = both.bandwidth_bytes_per_s.unwrap() / pair.bandwidth_bytes_per_s.unwrap();
        assert!((1.95..=2.0).contains(&ratio), "{mode}: {ratio}");
        let ways: f64 = both.flows.unwrap().iter().map(|flow| flow.bandwidth_bytes_per_s.unwrap()).sum();
        assert!((ways / both.bandwidth_bytes_per_s.unwrap() - 1.0).abs() < 1e-9);
        // In mode rdma, posting and polling share a CPU.
        let rate =
            |pattern| row(&patterned(Benchmark::MessageRate, mode, 8, pattern)).messages_per_s.unwrap();
        let ratio = rate("bidirectional") / rate("pair");
        match mode {
            "rdma" => assert!((1.0..1.3).contains(&ratio), "{ratio}"),
            _ => assert!((1.95..=2.0).contains(&ratio), "{ratio}"),
        }
    }
}

#[test]
fn an_incast_shares_the_receiver_s_link() {
    let pair = row(&request(Benchmark::Bandwidth, "portals4", 1 << 16)).bandwidth_bytes_per_s.unwrap();
    for senders in [2, 4, 7] {
        let incast = row(&patterned(Benchmark::Bandwidth, "portals4", 1 << 16, &format!("incast:{senders}")));
        let total = incast.bandwidth_bytes_per_s.unwrap();
        // A link has 20 ps per byte, or 50 GB/s. The windows of several senders keep the link full for longer.
        assert!(total > pair && total <= 50e9, "{senders}: {total}");
        let flows = incast.flows.unwrap();
        assert_eq!(flows.len(), senders);
        let rates: Vec<f64> = flows.iter().map(|flow| flow.bandwidth_bytes_per_s.unwrap()).collect();
        let (low, high) = rates.iter().fold((f64::MAX, 0f64), |(l, h), &r| (l.min(r), h.max(r)));
        assert_eq!(incast.fairness, Some(low / high));
        assert!(high < 1.1 * total / senders as f64, "{senders}: one gets {high} of {total}");
    }
    // Of several simultaneous pings, one ping waits in the mean for half of the others.
    let latency = |pattern: &str| row(&patterned(Benchmark::Latency, "rdma", 8, pattern));
    let (alone, four) = (latency("incast:1"), latency("incast:4"));
    assert_eq!(four.min_ns, alone.min_ns, "the first of them does not wait");
    assert!(four.latency_ns > alone.latency_ns && four.max_ns > four.p50_ns);
    assert!(four.fairness.unwrap() < 1.0);
}

#[test]
fn breakdowns_add_up_in_every_pattern() {
    for pattern in ["pair", "bidirectional", "incast:3"] {
        for mode in MODES {
            for overrides in [vec![], vec!["bus.kind=pcie".to_string()]] {
                for noise in [None, Some("2us,300ns".to_string())] {
                    let request = Request {
                        overrides: overrides.clone(),
                        noise: noise.clone(),
                        ..patterned(Benchmark::Latency, mode, 9000, pattern)
                    };
                    let row = row(&request);
                    let stages = row.stages.unwrap();
                    let sum: f64 = stages.iter().map(|stage| stage.ns).sum();
                    assert!((sum - row.latency_ns.unwrap()).abs() < 1e-6, "{pattern}, {mode}, {noise:?}");
                    assert_eq!(stages.iter().any(|stage| stage.stage == "noise"), noise.is_some());
                }
            }
        }
    }
}

#[test]
fn every_measured_byte_is_counted_and_no_other() {
    let node = |node, read_bytes, written_bytes| HostMemory { node, read_bytes, written_bytes };
    for mode in MODES {
        for size in [0, 8, 5000, 70_000] {
            for (warmup, iterations) in [(0, 1), (0, 3), (1, 1), (3, 2), (1, 70)] {
                let counted = |benchmark, pattern: &str| {
                    let (warmup, iterations, window) = (Some(warmup), Some(iterations), Some(4));
                    let window = window.filter(|_| benchmark != Benchmark::Latency);
                    row(&Request { warmup, iterations, window, ..patterned(benchmark, mode, size, pattern) })
                        .host_memory
                };
                let bytes = size * iterations;
                assert_eq!(
                    counted(Benchmark::Latency, "pair"),
                    [node(0, bytes, bytes), node(1, bytes, bytes)]
                );
                let both = [node(0, 2 * bytes, 2 * bytes), node(1, 2 * bytes, 2 * bytes)];
                assert_eq!(counted(Benchmark::Latency, "bidirectional"), both);
                let incast = [node(0, bytes, bytes), node(1, bytes, bytes), node(2, 2 * bytes, 2 * bytes)];
                assert_eq!(counted(Benchmark::Latency, "incast:2"), incast);
                let windows = 4 * bytes;
                assert_eq!(counted(Benchmark::Bandwidth, "pair"), [node(0, windows, 0), node(1, 0, windows)]);
                let incast = [node(0, windows, 0), node(1, windows, 0), node(2, 0, 2 * windows)];
                assert_eq!(counted(Benchmark::MessageRate, "incast:2"), incast);
            }
        }
    }
}

fn noisy(mode: &str, noise: Option<&str>, seed: u64) -> Row {
    row(&Request {
        noise: noise.map(str::to_owned),
        iterations: Some(300),
        network: NetworkOptions { seed, ..NetworkOptions::default() },
        ..request(Benchmark::Latency, mode, 8)
    })
}

#[test]
fn noise_at_the_far_end_delays_rdma_and_not_the_card() {
    for seed in 0..20 {
        for noise in ["10us,1us,rank=1", "10us,1us,fixed,rank=1"] {
            let (quiet, loud) = (noisy("rdma", None, seed), noisy("rdma", Some(noise), seed));
            assert!(loud.latency_ns > quiet.latency_ns, "seed {seed}, {noise}");
            assert_eq!(loud.min_ns, quiet.min_ns);
            // Noise lasts 1 us, and delays a round trip by one interval, or by two if notice and post each meet one. The
            // latency is half of a round trip.
            assert!(loud.max_ns <= quiet.max_ns + 1000.0, "seed {seed}, {noise}: {}", loud.max_ns);
            assert!(loud.p50_ns <= loud.p99_ns && loud.p99_ns <= loud.p999_ns && loud.p999_ns <= loud.max_ns);
            assert_eq!(noisy("portals4", Some(noise), seed), noisy("portals4", None, seed));
        }
        // Noise on rank 0 delays its round trips, even if the card of rank 1 answers.
        let noise = Some("10us,1us,rank=0");
        assert!(noisy("portals4", noise, seed).latency_ns > noisy("portals4", None, seed).latency_ns);
    }
}

#[test]
fn noise_depends_on_the_seed_and_nothing_else() {
    let noise = Some("10us,1us");
    assert_eq!(noisy("rdma", noise, 1), noisy("rdma", noise, 1));
    assert_ne!(noisy("rdma", noise, 1).latency_ns, noisy("rdma", noise, 2).latency_ns);
    assert_ne!(noisy("rdma", noise, 1).latency_ns, noisy("rdma", Some("10us,1us,fixed"), 1).latency_ns);
}

/// Runs four hosts that compute and send in a ring. Returns the run, and the time at which each host finished.
fn ring(noise: Option<&str>, shards: usize) -> (Run, Vec<Time>) {
    let config = ClusterConfig {
        topology: Topology::Star,
        noise: noise.map(|text| text.parse::<Noise>().unwrap()),
        shards,
        ..ClusterConfig::new(4, cards::load(NIC, &[]).unwrap())
    };
    let mut cluster = Cluster::new(config).unwrap();
    let done = Rc::new(RefCell::new(vec![Time::ZERO; 4]));
    for rank in 0..4 {
        let done = done.clone();
        cluster.program(rank, move |host| async move {
            let (out, back) = (host.alloc(5000)?, host.alloc(5000)?);
            for round in 0..5 {
                host.barrier().await;
                if host.rank() == round % 4 {
                    // The computation is long enough for the receive to be posted in spite of noise.
                    host.compute(Duration::from_us(20)).await;
                    host.send(&out, (host.rank() + 1) % 4, round.into()).await?;
                } else if host.rank() == (round + 1) % 4 {
                    host.recv(&back, None, Some(round.into())).await?;
                }
            }
            host.compute(Duration::from_us(100)).await;
            done.borrow_mut()[rank as usize] = host.now();
            Ok(())
        });
    }
    let run = cluster.run().unwrap();
    let done = done.borrow().clone();
    (run, done)
}

#[test]
fn noise_is_the_same_in_any_number_of_shards_and_ends_with_the_programs() {
    for noise in ["700ns,100ns", "700ns,100ns,fixed", "5us,4us,rank=2"] {
        let (run, done) = ring(Some(noise), 1);
        assert!(run.end > ring(None, 1).0.end);
        // After the last program, only credits are in flight, and noise has ended.
        assert_eq!(run.end, *done.iter().max().unwrap());
        for shards in 2..=5 {
            assert_eq!(ring(Some(noise), shards), (run.clone(), done.clone()), "{noise}, {shards} shards");
        }
    }
}

#[test]
fn fixed_noise_takes_what_it_says() {
    let config = ClusterConfig {
        noise: Some("100us,1us,fixed".parse().unwrap()),
        ..ClusterConfig::new(2, cards::load(NIC, &[]).unwrap())
    };
    let mut cluster = Cluster::new(config).unwrap();
    cluster.program(0, |host| async move {
        host.restart_path();
        host.compute(Duration::from_us(990)).await;
        let path = host.path();
        assert_eq!(path.at(), host.now());
        let noise = host.now().ps() - 990_000_000;
        // In each of ten periods, noise leaves 99 us for the computation. The phase determines the noise in the last period.
        assert!((9_000_000..=11_000_000).contains(&noise), "{noise} ps");
        Ok(())
    });
    cluster.run().unwrap();
}

#[test]
fn impossible_requests_are_refused() {
    let error = |request: Request| measure(&request).unwrap_err().to_string();
    let base = || request(Benchmark::Latency, "rdma", 8);
    let pair = Request {
        network: NetworkOptions { topology: Some("pair".into()), ..NetworkOptions::default() },
        pattern: "incast:4".into(),
        ..base()
    };
    assert_eq!(
        error(pair),
        "--pattern incast:4 takes 5 nodes, but --topology pair has 2; write --topology star"
    );
    let wide = error(Request { pattern: "incast:99".into(), ..base() });
    assert!(
        wide.contains("--pattern incast:99 takes 100 nodes") && wide.contains("switch.ports=100"),
        "{wide}"
    );
    let far = error(Request { noise: Some("1ms,25us,rank=2".into()), ..base() });
    assert!(far.contains("noise on rank 2: the cluster has ranks 0 to 1"), "{far}");
    assert!(error(Request { noise: Some("1ms".into()), ..base() }).contains("PERIOD,DURATION"));
    let deep = Request { window: Some(65_536), ..patterned(Benchmark::MessageRate, "rdma", 8, "incast:9") };
    let deep = error(deep);
    assert!(deep.contains("589824 events") && deep.contains("limits.event_queue_depth"), "{deep}");
    assert!(error(Request { pattern: "ring".into(), ..base() }).contains("no such pattern"));
    assert!(
        error(Request {
            network: NetworkOptions { topology: Some("rink".into()), ..NetworkOptions::default() },
            ..base()
        })
        .contains("pair, star")
    );
}

#[test]
fn a_report_says_under_what_circumstances() {
    let request = Request {
        noise: Some("10us,1us".into()),
        pattern: "incast:2".into(),
        ..request(Benchmark::Latency, "rdma", 8)
    };
    let manifest = measure(&request).unwrap().manifest;
    assert_eq!((manifest.pattern.as_str(), manifest.topology.as_str()), ("incast:2", "star"));
    assert_eq!(manifest.noise.as_deref(), Some("10us,1us"));
}
