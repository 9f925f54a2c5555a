//! Schedules run by several processes. In these tests, the processes are threads.

use crate::schedules::{any_schedule, network, read};
use nicety::{ClusterConfig, Environment, Error, Peers, Spread, Topology, cards as specs, faults};
use nicety_goal::Schedule;
use nicety_goal::cards::{self, Failure};
use nicety_goal::generate::{Pattern, Shape, generate};
use nicety_goal::loggops::{self, Finished, Rules};
use nicety_goal::requests::{self, RunRequest};
use proptest::prelude::*;
use std::sync::Arc;
use std::thread;

const NET: [u64; 6] = [2500, 1500, 1000, 6, 0, 65_535];

/// Runs `act` in each of `count` processes, and returns all results.
fn each<T: Send>(count: usize, act: impl Fn(&Peers) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let act = &act;
        let running: Vec<_> =
            Peers::in_threads(count).into_iter().map(|peers| scope.spawn(move || act(&peers))).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

fn made(pattern: Pattern, ranks: u32) -> Arc<Schedule> {
    let shape = Shape { ranks, size: 9000, iterations: 1, compute_ns: 1000, layers: 2 };
    Arc::new(generate(pattern, &shape, &mut |_| true).unwrap())
}

fn by_loggops(schedule: &Schedule, peers: &Peers) -> Result<Option<Finished>, Error> {
    loggops::run_in_processes(schedule, &network(NET), None, peers, &mut |_| true)
}

#[test]
fn processes_change_nothing_on_any_card() {
    for nic in crate::cards::all() {
        let schedule = made(Pattern::LinearAlltoall, 5);
        let card = specs::load(&nic, &[]).unwrap();
        let config = ClusterConfig { topology: Topology::Star, ..ClusterConfig::new(5, card) };
        let one = cards::run(&schedule, config.clone(), 1, &mut |_| true).unwrap();
        for count in [2, 4, 7] {
            let found = each(count, |peers| {
                let spread = Spread { threads: 1, peers: Some(peers.clone()) };
                cards::run_by(&schedule, config.clone(), None, &spread, &mut |_| true).unwrap()
            });
            assert!(found.iter().all(|other| *other == one), "{nic}, {count} processes");
        }
    }
}

#[test]
fn processes_change_nothing_on_any_network() {
    let schedule = made(Pattern::PairwiseAlltoall, 24);
    let all = [
        ("spin-discrete", "fat-tree:4", Some("10us,1us"), "credits"),
        ("spin-integrated", "torus:4x3x2", None, "credits"),
        ("spin-discrete", "ring:5", None, "credits"),
        ("apenet-v5", "torus:4x3x2", None, "credits"),
        ("ethernet-100g", "fat-tree:8", None, "pfc"),
    ];
    for (nic, topology, noise, flow) in all {
        let config = ClusterConfig {
            topology: topology.parse().unwrap(),
            noise: noise.map(|noise| noise.parse().unwrap()),
            flow_control: nicety::flow::parse(flow).unwrap(),
            ..ClusterConfig::new(24, specs::load(nic, &[]).unwrap())
        };
        let one = cards::run(&schedule, config.clone(), 1, &mut |_| true).unwrap();
        let found = each(3, |peers| {
            let spread = Spread { threads: 1, peers: Some(peers.clone()) };
            cards::run_by(&schedule, config.clone(), None, &spread, &mut |_| true).unwrap()
        });
        assert!(found.iter().all(|other| *other == one), "{nic}, {topology}");
    }
}

#[test]
fn failures_are_told_alike_in_all_processes() {
    let unmatched = read(
        "num_ranks 5\nrank 0 {\nsend 8b to 1\nrecv 9b from 3\n}\nrank 1 {\nrecv 8b from 0\n}\nrank 2 {\n}\n\
         rank 3 {\nsend 70000b to 2\n}\nrank 4 {\n}",
    );
    let config = |plan| ClusterConfig {
        topology: Topology::Star,
        faults: faults::parse(plan).unwrap(),
        ..ClusterConfig::new(5, specs::load("spin-discrete", &[]).unwrap())
    };
    let alltoall = made(Pattern::LinearAlltoall, 5);
    for (schedule, plan) in [(Arc::new(unmatched.clone()), "loss=0"), (alltoall, "fail=hosts.3@1us")] {
        let one = cards::run(&schedule, config(plan), 1, &mut |_| true).unwrap_err();
        let found = each(3, |peers| {
            let spread = Spread { threads: 1, peers: Some(peers.clone()) };
            cards::run_by(&schedule, config(plan), None, &spread, &mut |_| true).unwrap_err()
        });
        assert!(found.iter().all(|other| *other == one), "{plan}: {found:?}");
    }
    // The processes leave two cases to the caller: unmatched operations, and an end beyond the largest time. The caller runs
    // these schedules as a whole.
    let endless = read("num_ranks 2\nrank 0 {\n}\nrank 1 {\ncalc 18446744073709551615\n}");
    assert_eq!(each(5, |peers| by_loggops(&unmatched, peers)), [(); 5].map(|()| Ok(None)));
    assert_eq!(each(2, |peers| by_loggops(&endless, peers)), [(); 2].map(|()| Ok(None)));
    // The result is the same with fewer hosts than processes.
    assert_eq!(each(3, |peers| by_loggops(&endless, peers)), [(); 3].map(|()| Ok(None)));
}

#[test]
fn one_that_is_stopped_stops_all() {
    let shape = Shape { ranks: 32, size: 100_000, iterations: 20, compute_ns: 1000, layers: 1 };
    let schedule = Arc::new(generate(Pattern::LinearAlltoall, &shape, &mut |_| true).unwrap());
    let config = ClusterConfig {
        topology: Topology::Star,
        ..ClusterConfig::new(32, specs::load("spin-discrete", &[]).unwrap())
    };
    let stopped = each(3, |peers| {
        let spread = Spread { threads: 1, peers: Some(peers.clone()) };
        let mut go_on = |_| peers.number() != 1;
        cards::run_by(&schedule, config.clone(), None, &spread, &mut go_on).unwrap_err()
    });
    assert!(stopped.iter().all(|other| *other == Failure::Run(Error::Interrupted)), "{stopped:?}");
}

#[test]
fn a_request_is_spread_over_the_processes() {
    let path = std::env::temp_dir().join(format!("nicety-processes-{}.goal", std::process::id()));
    std::fs::write(&path, crate::schedules::written(&made(Pattern::RecursiveDoubling, 8))).unwrap();
    let run = |peers: Option<Peers>, more: &str| {
        let request = format!("{{\"file\": {:?}{more}}}", path.to_str().unwrap());
        let environment = Environment { peers, ..Environment::default() };
        RunRequest::from_json(&request).and_then(|request| requests::run(&request, &environment))
    };
    for more in
        ["", ", \"compat\": \"loggopsim\"", ", \"nic\": \"spin-discrete\"", ", \"noise\": \"10us,1us\""]
    {
        let one = run(None, more).unwrap();
        assert!(each(4, |peers| run(Some(peers.clone()), more).unwrap()).iter().all(|other| *other == one));
    }
    let refused = each(2, |peers| run(Some(peers.clone()), ", \"threads\": 2").unwrap_err());
    assert!(
        refused
            .iter()
            .all(|error| error.to_string().starts_with("--threads: not possible in several processes"))
    );
    std::fs::remove_file(path).unwrap();
}

proptest! {
    #[test]
    fn processes_change_nothing_by_loggops(schedule in any_schedule(), count in 2..4_usize) {
        let one = loggops::run(&schedule, &network(NET), Rules::Own, &mut |_| true);
        for other in each(count, |peers| by_loggops(&schedule, peers)) {
            match other.unwrap() {
                Some(finished) => {
                    let one = one.clone().unwrap();
                    prop_assert_eq!((&one.finish_ps, one.counts.messages), (&finished.finish_ps, finished.counts.messages));
                }
                // The run failed, or there are fewer hosts than processes.
                None => prop_assert!(one.is_err() || (schedule.ranks() as usize) < count),
            }
        }
    }
}
