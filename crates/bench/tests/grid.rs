//! Benchmarks of programs on a grid of ranks: halo exchange and all-reduce, on cards of every design and on several topologies.

use nicety::options::{NetworkOptions, Threads};
use nicety::{Environment, Error, Log, Peers};
use nicety_bench::grid::{self, Benchmark, Report, Request};
use std::sync::Arc;

fn measure(request: &Request) -> Result<Report, Error> {
    measure_beside(request, None)
}

/// Measures a request in this process and, if `peers` is given, in the others.
fn measure_beside(request: &Request, peers: Option<Peers>) -> Result<Report, Error> {
    let (compiled, progress) = (nicety::Compiled::default(), |_, _| {});
    let log: Log = Arc::new(|line| panic!("nothing prints: {line}"));
    grid::run(
        request,
        &Environment { log, peers, progress: &progress, compiled: &compiled, ..Environment::default() },
    )
}

fn on(benchmark: Benchmark, nics: &[&str], grid: &str, sizes: &[u64]) -> Request {
    Request { grid: Some(grid.into()), ..Request::new(benchmark, nics, sizes) }
}

#[test]
fn threads_and_processes_change_nothing() {
    for (benchmark, nic, topology, flow) in [
        (Benchmark::Halo, "spin-discrete", "fat-tree:4", "credits"),
        (Benchmark::Allreduce, "qnix", "torus:3x4", "credits"),
        (Benchmark::Allreduce, "ethernet-100g", "star", "pfc"),
    ] {
        let request = Request {
            network: NetworkOptions {
                topology: Some(topology.into()),
                flow_control: Some(flow.into()),
                ..NetworkOptions::default()
            },
            iterations: 1,
            ..on(benchmark, &[nic], "3x4", &[4096])
        };
        let one = measure(&request).unwrap();
        assert_eq!(
            measure(&Request { threads: Threads { threads: 3 }, ..request.clone() }).unwrap(),
            one,
            "{nic}, {topology}"
        );
        std::thread::scope(|scope| {
            let peers = Peers::in_threads(3).into_iter();
            let run = |peers| scope.spawn(|| measure_beside(&request, Some(peers)).unwrap());
            let running: Vec<_> = peers.map(run).collect();
            let found = running.into_iter().map(|other| other.join().unwrap());
            assert!(found.into_iter().all(|other| other == one), "{nic}, {topology}");
        });
    }
    let wrong =
        Request { threads: Threads { threads: 0 }, ..on(Benchmark::Halo, &["spin-discrete"], "2", &[8]) };
    assert_eq!(measure(&wrong).unwrap_err().to_string(), "threads are 1 to 1024, not 0");
}

const BOTH: [Benchmark; 2] = [Benchmark::Halo, Benchmark::Allreduce];

#[test]
fn a_pair_by_hand() {
    let time = |benchmark| measure(&on(benchmark, &["spin-discrete"], "2", &[8])).unwrap().rows[0].time_ns;
    // A message of 8 B takes 693.685 ns from program to program (docs/timing.md). The dimension has two rings, and each has
    // a message. Two receives are posted first. The second message waits for the first at the matching unit and at the CPU.
    assert_eq!(time(Benchmark::Halo), 65.0 + 65.0 + 693.685 + 30.0 + 65.0);
    // One rank gets the only value, and returns the sum. Before that, it fetches a cache line and adds for one cycle.
    assert_eq!(time(Benchmark::Allreduce), 2.0 * 693.685 + 51.0 + 0.4);
}

#[test]
fn values_are_right_on_every_card_and_topology() {
    for (grid, topology, hops) in [
        ("2", None, 1.0),
        ("2x2", None, 2.0),
        ("1x3", None, 2.0),
        ("3x2", None, 2.0),
        ("2x3x2", Some("fat-tree:4"), 0.0),
        ("2x3x2", Some("torus:2x3x2"), 1.0),
        ("6x2", Some("torus:2x3x2"), 0.0),
    ] {
        for benchmark in BOTH {
            let sizes = [8, 16, 4096, 40_000];
            let cards = &["spin-discrete", "qnix", "nfp-4000", "apenet-v5", "niagara2-niu"];
            let request = Request {
                network: NetworkOptions {
                    topology: topology.map(str::to_owned),
                    ..NetworkOptions::default()
                },
                iterations: 2,
                ..on(benchmark, cards, grid, &sizes)
            };
            let report = measure(&request).unwrap();
            assert_eq!((report.rows.len(), report.manifest.grid.as_str()), (20, grid));
            for row in &report.rows {
                assert!(row.verified && row.min_ns <= row.time_ns && row.time_ns <= row.max_ns);
                assert_eq!(row.sent_bytes_per_s, row.sent_bytes as f64 * 1e9 / row.time_ns);
                match topology {
                    _ if hops > 0.0 => assert_eq!(row.hops_mean, hops),
                    Some("torus:2x3x2") => assert!((1.0..3.0).contains(&row.hops_mean), "{row:?}"),
                    // Links on a route: 2 to the other host of the switch, 4 within the half of the tree, otherwise 6.
                    _ => assert!((3.0..6.0).contains(&row.hops_mean), "{row:?}"),
                }
            }
        }
    }
}

#[test]
fn a_rank_sends_its_faces_or_the_least_that_an_all_reduce_can() {
    let rows =
        |benchmark, grid, size| measure(&on(benchmark, &["spin-discrete"], grid, &[size])).unwrap().rows;
    for (grid, faces) in [("2", 2), ("5", 2), ("2x3", 4), ("1x3x2", 4), ("2x2x3", 6)] {
        let row = &rows(Benchmark::Halo, grid, 64)[0];
        assert_eq!((row.faces, row.sent_bytes), (Some(faces), 64 * faces));
        assert_eq!((row.algorithm_bytes_per_s, row.lower_bound_ns), (None, None));
    }
    for (grid, ranks) in [("2", 2), ("5", 5), ("3x2", 6), ("2x2x2", 8)] {
        let size = 120 * 8 * 8;
        let row = &rows(Benchmark::Allreduce, grid, size)[0];
        assert_eq!((row.nodes, u64::from(ranks) * row.sent_bytes), (ranks, 2 * u64::from(ranks - 1) * size));
        let bound = row.sent_bytes as f64 * 0.02;
        assert!((row.lower_bound_ns.unwrap() - bound).abs() < 1e-6 && bound < row.time_ns);
        assert_eq!((row.algorithm_bytes_per_s, row.faces), (Some(size as f64 * 1e9 / row.time_ns), None));
    }
}

#[test]
fn a_long_vector_comes_nearer_to_the_bound_of_the_link() {
    let row =
        |size| measure(&on(Benchmark::Allreduce, &["spin-integrated"], "4", &[size])).unwrap().rows.remove(0);
    let share = |row: grid::Row| row.lower_bound_ns.unwrap() / row.time_ns;
    let (short, long) = (share(row(1 << 10)), share(row(4 << 20)));
    // The rest of the time is additions. An addition waits for bytes to arrive, and the next message waits for the addition.
    assert!(short < 0.02 && (0.2..1.0).contains(&long), "{short} {long}");
}

#[test]
fn damaged_values_fail_the_run() {
    for benchmark in BOTH {
        let request = Request {
            network: NetworkOptions { faults: Some("corrupt=0.02".into()), ..NetworkOptions::default() },
            ..on(benchmark, &["spin-discrete"], "2x2", &[4096])
        };
        let errors: Vec<_> = (1..9)
            .map(|seed| NetworkOptions { seed, ..request.network.clone() })
            .filter_map(|network| measure(&Request { network, ..request.clone() }).err())
            .collect();
        assert!(errors.iter().all(|error| error.exit_status() == 1));
        // If no value depends on damaged bytes, only the network reports the damage.
        let named = |error: &Error| {
            let text = error.to_string();
            text.contains("is wrong from value")
                || (text.contains("damaged") && text.contains("not retransmitted"))
        };
        assert!(!errors.is_empty() && errors.iter().all(named), "{errors:?}");
    }
}

#[test]
fn noise_holds_up_everybody() {
    for benchmark in BOTH {
        let quiet = on(benchmark, &["spin-discrete"], "2x2", &[8]);
        let noise = Some("20us,2us,rank=1".into());
        let request = Request { iterations: 100, ..quiet.clone() };
        let (quiet, noisy) = (measure(&quiet).unwrap(), measure(&Request { noise, ..request }).unwrap());
        assert!(noisy.rows[0].time_ns > quiet.rows[0].time_ns && noisy.rows[0].max_ns > noisy.rows[0].p50_ns);
    }
}

#[test]
fn a_grid_follows_from_what_is_given() {
    let shape = |nodes, topology: Option<&str>| {
        let request = Request {
            nodes,
            network: NetworkOptions { topology: topology.map(str::to_owned), ..NetworkOptions::default() },
            ..on(Benchmark::Halo, &["qnix"], "", &[8])
        };
        let manifest = measure(&Request { grid: None, ..request }).unwrap().manifest;
        (manifest.grid, manifest.topology)
    };
    let of = |grid: &str, topology: &str| (grid.to_owned(), topology.to_owned());
    assert_eq!(shape(None, None), of("2x2x2", "star"));
    assert_eq!(shape(Some(2), None), of("2", "pair"));
    assert_eq!(shape(None, Some("pair")), of("2", "pair"));
    assert_eq!(shape(None, Some("torus:4x2")), of("4x2", "torus:4x2"));
    assert_eq!(shape(Some(6), Some("torus")), of("3x2", "torus"));
    assert_eq!(shape(None, Some("torus:1x2x2")), of("1x2x2", "torus:1x2x2"));
    assert_eq!(shape(Some(12), Some("fat-tree:4")), of("3x2x2", "fat-tree:4"));
}

#[test]
fn requests_that_cannot_be_are_refused() {
    let good = on(Benchmark::Halo, &["spin-discrete"], "2x2", &[8]);
    let with = |change: &dyn Fn(&mut Request)| {
        let mut request = good.clone();
        change(&mut request);
        request
    };
    for (request, expected) in [
        (with(&|r| r.sizes = vec![]), "no size named"),
        (with(&|r| r.sizes = vec![0]), "--sizes 0: write a multiple of 8 bytes"),
        (with(&|r| r.sizes = vec![8, 12]), "--sizes 12: write a multiple of 8"),
        (with(&|r| r.sizes = vec![(1 << 30) + 8]), "up to 1Gi"),
        (with(&|r| r.nodes = Some(5)), "--grid 2x2 has 4 ranks, but --nodes is 5"),
        (with(&|r| r.grid = Some("1".into())), "a single rank has no neighbour"),
        (with(&|r| (r.grid, r.nodes) = (None, Some(1))), "--nodes 1: a grid has 2"),
        (
            with(&|r| r.network.topology = Some("pair".into())),
            "--grid 2x2 has 4 ranks: a pair has 2 nodes, not 4",
        ),
        (with(&|r| r.grid = Some("40".into())), "a star of 40 nodes needs a switch of 40 ports"),
        (with(&|r| r.network.topology = Some("rink".into())), "no topology 'rink'"),
        (
            with(&|r| r.network.topology = Some("torus:4x4".into())),
            "--grid 2x2 has 4 ranks: torus:4x4 has 16 nodes, not 4",
        ),
        (
            with(&|r| (r.grid, r.nodes, r.network.topology) = (None, Some(5), Some("torus:4x4".into()))),
            "16 nodes, not 5",
        ),
        (
            with(&|r| (r.grid, r.network.topology) = (None, Some("torus:1".into()))),
            "a single rank has no neighbour",
        ),
        (with(&|r| r.iterations = 0), "--iterations is 1 to 10000, not 0"),
        (with(&|r| r.warmup = 10_001), "--warmup is 0 to 10000, not 10001"),
        (with(&|r| r.nics = vec![]), "no card named"),
        (with(&|r| r.noise = Some("no".into())), "noise"),
        (with(&|r| r.network.faults = Some("loss=2".into())), "loss"),
    ] {
        let error = measure(&request).unwrap_err();
        assert!(error.exit_status() == 2 && error.to_string().contains(expected), "{expected}: {error}");
    }
}
