//! Schedules on modelled cards.

use crate::schedules::{cases, matching, messages, read};
use nicety::{ClusterConfig, Error, Topology, cards as specs, faults};
use nicety_goal::cards::{self, Failure, Finished};
use nicety_goal::generate::{Pattern, Shape, generate};
use nicety_goal::{Kind, Schedule, Shares};
use proptest::prelude::*;
use std::sync::Arc;

/// Returns all shipped cards with a path to a host.
pub(crate) fn all() -> Vec<String> {
    let names = specs::shipped().unwrap().into_iter().map(|(name, _)| name);
    names.filter(|name| specs::load(name, &[]).unwrap().spec.design().name != "hxdp").collect()
}

fn config(nic: &str, ranks: u32) -> ClusterConfig {
    let card = specs::load(nic, &[]).unwrap();
    let topology = match ranks {
        1 => Topology::Alone,
        2 => Topology::Pair,
        _ => Topology::Star,
    };
    ClusterConfig { topology, ..ClusterConfig::new(ranks, card) }
}

fn run_on(schedule: Schedule, nic: &str) -> Result<Finished, Failure> {
    let config = config(nic, schedule.ranks());
    cards::run(&Arc::new(schedule), config, 1, &mut |_| true)
}

/// Returns the end of each rank's last operation on spin-discrete, in picoseconds.
fn finish(goal: &str) -> Vec<u64> {
    run_on(read(goal), "spin-discrete").unwrap().finish_ps
}

/// Returns the computation and communication times of each rank on spin-discrete.
fn shares(goal: &str) -> Vec<Shares> {
    let schedule = read(goal);
    run_on(schedule.clone(), "spin-discrete").unwrap().shares(&schedule)
}

#[test]
fn every_card_runs_every_pattern() {
    for nic in all() {
        for (name, pattern) in Pattern::ALL {
            let shape = Shape { ranks: 4, size: 9000, iterations: 1, compute_ns: 1000, layers: 2 };
            let schedule = generate(pattern, &shape, &mut |_| true).unwrap();
            let sends = schedule.ops().iter().filter(|op| op.kind == Kind::Send).count() as u64;
            let finished =
                run_on(schedule.clone(), &nic).unwrap_or_else(|error| panic!("{nic}, {name}: {error:?}"));
            assert_eq!(finished.counts.operations, schedule.ops().len() as u64);
            assert_eq!(finished.counts.messages, sends);
            let last = finished.finish_ps.iter().max().copied().unwrap();
            let path: u64 = finished.stages.iter().flatten().map(|(_, ps)| ps).sum();
            assert_eq!(path, last, "{nic}, {name}");
            for (own, end) in finished.shares(&schedule).iter().zip(&finished.finish_ps) {
                assert!(own.both <= own.computing.min(own.communicating), "{nic}, {name}");
                assert!(own.computing.max(own.communicating) <= *end, "{nic}, {name}");
            }
        }
    }
}

/// Short and long messages arrive before and after their receives, in both directions at once. They use a connection for the
/// first time and later.
#[test]
fn stages_account_for_all_of_a_run_on_every_card() {
    let ping = |bytes| {
        format!(
            "num_ranks 2\nrank 0 {{\nl1: recv {bytes}b from 1\nl2: send {bytes}b to 1\nl3: calc 1000\nl3 requires l1\n\
             l3 requires l2\n}}\nrank 1 {{\nl1: recv {bytes}b from 0\nl2: send {bytes}b to 0\nl2 requires l1\n}}\n"
        )
    };
    let late = |bytes| {
        format!(
            "num_ranks 3\nrank 0 {{\nl1: send {bytes}b to 1\nl2: recv 8b from 1\nl2 requires l1\n}}\nrank 1 {{\n\
             l1: calc 3000000\nl2: recv {bytes}b from 0\nl3: send 8b to 0\nl4: recv {bytes}b from 2\nl2 requires l1\n\
             l3 requires l2\nl4 requires l2\n}}\nrank 2 {{\nl1: send {bytes}b to 1\n}}\n"
        )
    };
    let both = |bytes| {
        let rank = |own: u32| {
            let peer = 1 - own;
            let ops: String = (0..6)
                .map(|tag| {
                    let (at, tagged) = (2 * tag + 1, format!("{bytes}b"));
                    let then = if tag > 1 { format!("l{at} requires l{}\n", at - 3) } else { String::new() };
                    format!(
                        "l{at}: send {tagged} to {peer} tag {tag}\nl{}: recv {tagged} from {peer} tag {tag}\n{then}",
                        at + 1
                    )
                })
                .collect();
            format!("rank {own} {{\n{ops}}}\n")
        };
        format!("num_ranks 2\n{}{}", rank(0), rank(1))
    };
    for nic in all() {
        for bytes in [8, 5000, 40_000] {
            for goal in [ping(bytes), late(bytes), both(bytes)] {
                let finished = run_on(read(&goal), &nic)
                    .unwrap_or_else(|error| panic!("{nic}, {bytes} B: {error:?}\n{goal}"));
                let last = finished.finish_ps.iter().max().copied().unwrap();
                let path: u64 = finished.stages.iter().flatten().map(|(_, ps)| ps).sum();
                assert_eq!(path, last, "{nic}, {bytes} B:\n{goal}");
            }
        }
    }
}

#[test]
fn threads_change_nothing() {
    for nic in all() {
        for pattern in [Pattern::LinearAlltoall, Pattern::RingAllreduce] {
            let shape = Shape { ranks: 5, size: 9000, iterations: 1, compute_ns: 1000, layers: 2 };
            let schedule = Arc::new(generate(pattern, &shape, &mut |_| true).unwrap());
            let run = |threads| cards::run(&schedule, config(&nic, 5), threads, &mut |_| true).unwrap();
            let one = run(1);
            for threads in [2, 9] {
                assert_eq!(run(threads), one, "{nic}, {pattern:?}, {threads} threads");
            }
        }
    }
}

#[test]
fn threads_change_nothing_on_any_network() {
    let shape = Shape { ranks: 24, size: 9000, iterations: 1, compute_ns: 1000, layers: 1 };
    let schedule = Arc::new(generate(Pattern::PairwiseAlltoall, &shape, &mut |_| true).unwrap());
    let all = [
        ("spin-discrete", "star", None),
        ("spin-discrete", "fat-tree:4", Some("10us,1us")),
        ("spin-integrated", "torus:4x3x2", None),
        ("spin-discrete", "ring:5", None),
        ("apenet-v5", "torus:4x3x2", None),
        ("qnix", "torus:6x4", None),
        ("ethernet-100g", "fat-tree:8", None),
        ("nfp-4000", "star", None),
    ];
    for (nic, topology, noise) in all {
        let topology = topology.parse().unwrap();
        let noise = noise.map(|noise| noise.parse().unwrap());
        let card = specs::load(nic, &[]).unwrap();
        let config = ClusterConfig { topology, noise, ..ClusterConfig::new(24, card) };
        let run = |threads| cards::run(&schedule, config.clone(), threads, &mut |_| true);
        let one = run(1).unwrap_or_else(|error| panic!("{nic}, {topology}: {error:?}"));
        for threads in [2, 3] {
            assert_eq!(run(threads).unwrap(), one, "{nic}, {topology}, {threads} threads");
        }
    }
}

#[test]
fn failures_in_threads_are_those_of_one() {
    let lossy =
        |plan: &str| ClusterConfig { faults: faults::parse(plan).unwrap(), ..config("spin-discrete", 5) };
    let unmatched = "num_ranks 5\nrank 0 {\nsend 8b to 1\nrecv 9b from 3\n}\nrank 1 {\nrecv 8b from 0\n}\n\
                     rank 2 {\n}\nrank 3 {\nsend 70000b to 2\n}\nrank 4 {\n}";
    let shape = Shape { ranks: 5, size: 9000, iterations: 1, compute_ns: 1000, layers: 1 };
    let alltoall = generate(Pattern::LinearAlltoall, &shape, &mut |_| true).unwrap();
    for (schedule, plan) in [(read(unmatched), "loss=0"), (alltoall, "fail=hosts.3@1us")] {
        let schedule = Arc::new(schedule);
        let run = |threads| cards::run(&schedule, lossy(plan), threads, &mut |_| true).unwrap_err();
        assert_eq!(run(3), run(1), "{plan}");
    }
    // After an interrupt all threads end.
    let shape = Shape { ranks: 32, size: 100_000, iterations: 20, compute_ns: 1000, layers: 1 };
    let long = Arc::new(generate(Pattern::LinearAlltoall, &shape, &mut |_| true).unwrap());
    let stopped = cards::run(&long, config("spin-discrete", 32), 3, &mut |_| false).unwrap_err();
    assert_eq!(stopped, Failure::Run(Error::Interrupted));
}

const PING_PONG: &str = "num_ranks 2\nrank 0 {\nsend 8b to 1\nrecv 8b from 1\n}\n\
                         rank 1 {\nr: recv 8b from 0\ns: send 8b to 0\ns requires r\n}";

#[test]
fn a_ping_pong_takes_two_latencies() {
    // In nanoseconds: post 65, bus 250, link 0.160 + 33.4, match 30, deposit and event 0.125 + 250, notice 65. Their sum is
    // 693.685.
    let finished = run_on(read(PING_PONG), "spin-discrete").unwrap();
    assert_eq!(finished.finish_ps[0], 2 * 693_685);
    let named: Vec<(&str, u64)> =
        finished.stages.unwrap().iter().map(|(stage, ps)| (stage.name(), *ps)).collect();
    let hand =
        [("post", 130), ("bus", 500), ("match", 60), ("notice", 130)].map(|(name, ns)| (name, ns * 1000));
    assert!(hand.iter().all(|stage| named.contains(stage)), "{named:?}");
    assert_eq!(named.iter().map(|(_, ps)| ps).sum::<u64>(), 2 * 693_685);
    // The bus of the integrated card takes 50 ns.
    assert_eq!(run_on(read(PING_PONG), "spin-integrated").unwrap().finish_ps[0], 587_228);
}

#[test]
fn calculations_take_turns_on_a_cpu() {
    assert_eq!(finish("num_ranks 1\nrank 0 {\ncalc 100\ncalc 50\n}"), [150_000]);
    assert_eq!(finish("num_ranks 1\nrank 0 {\ncalc 100\ncalc 50 cpu 1\n}"), [100_000]);
    // The host has eight cores. Calculations on eight CPUs take all cores, and the ninth calculation waits.
    let nine: String = (0..9).map(|cpu| format!("calc 100 cpu {cpu}\n")).collect();
    assert_eq!(finish(&format!("num_ranks 1\nrank 0 {{\n{nine}}}")), [200_000]);
    assert_eq!(finish("num_ranks 2\nrank 0 {\na: calc 0\nb: calc 0\nb requires a\n}\nrank 1 {\n}"), [0, 0]);
}

#[test]
fn a_message_waits_for_the_calculation_on_its_cpu() {
    let goal = |cpu: u8| {
        format!(
            "num_ranks 2\nrank 0 {{\nw: calc 10\na: calc 2000\ns: send 8b to 1 cpu {cpu}\na requires w\ns irequires a\n}}\n\
             rank 1 {{\nrecv 8b from 0\n}}"
        )
    };
    assert_eq!(finish(&goal(0))[1], (10 + 2000) * 1000 + 693_685);
    assert_eq!(finish(&goal(1))[1], 10 * 1000 + 693_685);
}

#[test]
fn a_start_is_earlier_than_an_end() {
    let goal = |verb: &str| format!("num_ranks 1\nrank 0 {{\na: calc 500\nb: calc 5 cpu 1\nb {verb} a\n}}");
    assert_eq!(finish(&goal("requires")), [505_000]);
    assert_eq!(finish(&goal("irequires")), [500_000]);
}

#[test]
fn communication_is_hidden_where_a_message_is_under_way() {
    // The receive is posted at 0 ns. Its message is sent at 1000 ns, and is in flight from then on.
    let goal = |calc: &str| {
        format!(
            "num_ranks 2\nrank 0 {{\na: calc 1000\ns: send 8b to 1\ns requires a\n}}\nrank 1 {{\nrecv 8b from 0\n{calc}\n}}"
        )
    };
    let [sender, receiver] = shares(&goal(""))[..] else { panic!("two ranks") };
    assert_eq!(receiver, Shares { computing: 0, communicating: 693_685, both: 0 });
    assert_eq!((sender.computing, sender.both), (1_000_000, 0));
    assert_eq!(shares(&goal("calc 900 cpu 1"))[1].both, 0);
    let hidden = Shares { computing: 1_500_000, communicating: 693_685, both: 500_000 };
    assert_eq!(shares(&goal("calc 1500 cpu 1"))[1], hidden);
    // The receive takes a message with any source and any tag. The send of its message is known nevertheless.
    assert_eq!(shares(&goal("").replace("from 0", "from -1 tag -1"))[1].communicating, 693_685);
}

/// Returns the unfinished part of a schedule on spin-discrete.
fn left(goal: &str) -> String {
    let schedule = read(goal);
    match run_on(schedule.clone(), "spin-discrete") {
        Err(Failure::Stuck(stuck, _)) => stuck.describe(&schedule),
        other => panic!("{other:?}"),
    }
}

#[test]
fn unexecuted_operations_are_named() {
    // A short message is sent even without a receive.
    assert_eq!(
        left(
            "num_ranks 2\nrank 0 {\nsend 8b to 1\nsend 8b to 1\nsend 8b to 1 tag 3\n}\nrank 1 {\nrecv 8b from 0\n}"
        ),
        "the schedule cannot finish: 2 messages without a receive, 0 receives without a message, 0 operations blocked by them\n\
         rank 0: operation 1 (line 4: send 8b to 1): no receive took it\n\
         rank 0: operation 2 (line 5: send 8b to 1 tag 3): no receive took it"
    );
    assert_eq!(
        left(
            "num_ranks 2\nrank 0 {\nr: recv 8b from 1 tag 7\nc: calc 5\nc requires r\n}\nrank 1 {\nsend 8b to 0\n}"
        ),
        "the schedule cannot finish: 1 message without a receive, 1 receive without a message, 1 operation blocked by them\n\
         rank 0: operation 0 (line 3: recv 8b from 1 tag 7): no message came\n\
         rank 1: operation 0 (line 8: send 8b to 0): no receive took it"
    );
    // Long messages wait for receives that depend on other such messages.
    let long = "r: recv 100000b from P\ns: send 100000b to P\nr requires s\n";
    let both = format!(
        "num_ranks 2\nrank 0 {{\n{}}}\nrank 1 {{\n{}}}",
        long.replace('P', "1").replace("r requires s\n", "") + "r requires s\n",
        long.replace('P', "0")
    );
    assert!(left(&both).contains(
        "2 messages without a receive, 0 receives without a message, 2 operations blocked by them"
    ));
}

#[test]
fn a_run_that_fails_says_where() {
    let said =
        |goal: &str, config: ClusterConfig| match cards::run(&Arc::new(read(goal)), config, 1, &mut |_| true)
        {
            Err(Failure::Run(error)) => error,
            other => panic!("{other:?}"),
        };
    let cut = "num_ranks 2\nrank 0 {\nsend 16b to 1\n}\nrank 1 {\nrecv 8b from 0\n}";
    let Error::Program(text) = said(cut, config("spin-discrete", 2)) else { panic!("a program's error") };
    assert!(
        text.starts_with("rank 1: operation 0 (line 6: recv 8b from 0): a message of 16 bytes"),
        "{text}"
    );
    let cycle = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}";
    assert!(matches!(run_on(read(cycle), "qnix"), Err(Failure::Cycle(_))));
    // A card with retransmission gives up. A card without it waits, and the note gives the reason.
    let lossy =
        |card| ClusterConfig { faults: faults::parse("loss=1").unwrap(), ..ClusterConfig::new(2, card) };
    let reliable = specs::load("spin-discrete", &["transport.reliable=true".to_owned()]).unwrap();
    assert!(matches!(said(PING_PONG, lossy(reliable)), Error::Undelivered(_)));
    let plain = specs::load("spin-discrete", &[]).unwrap();
    let lost = cards::run(&Arc::new(read(PING_PONG)), lossy(plain), 1, &mut |_| true);
    let Err(Failure::Stuck(_, notes)) = lost else { panic!("{lost:?}") };
    assert!(notes.starts_with("\n  note: of the packets, the network lost 1;"), "{notes}");
    let long =
        format!("num_ranks 2\nrank 0 {{\nsend {0}b to 1\n}}\nrank 1 {{\nrecv {0}b from 0\n}}", 1_u64 << 50);
    assert!(said(&long, config("spin-discrete", 2)).to_string().contains("raise host.memory in the spec"));
    let endless = format!("num_ranks 1\nrank 0 {{\ncalc {}\n}}", u64::MAX);
    assert!(said(&endless, config("spin-discrete", 1)).to_string().contains("operation 0 (line 3: calc "));
}

#[test]
fn a_run_can_be_stopped() {
    let shape = Shape { ranks: 16, size: 1 << 22, iterations: 1, compute_ns: 0, layers: 1 };
    let schedule = Arc::new(generate(Pattern::LinearAlltoall, &shape, &mut |_| true).unwrap());
    let mut asked = Vec::new();
    let stopped = cards::run(&schedule, config("spin-discrete", 16), 1, &mut |done| {
        asked.push(done);
        asked.len() < 3
    });
    assert_eq!(stopped.unwrap_err(), Failure::Run(Error::Interrupted));
    assert!(asked.len() == 3 && asked.is_sorted());
}

#[test]
fn messages_of_one_tag_are_received_in_their_order() {
    // Short and long messages. If a match is wrong, a message is longer than its receive.
    let sizes = [8, 100_000, 3000, 0, 40_000, 8, 100_000, 500];
    let ends = |what: &str| {
        sizes
            .map(|size| format!("{what} {size}b {} 0 tag 5\n", if what == "send" { "to" } else { "from" }))
            .concat()
    };
    let goal = format!(
        "num_ranks 2\nrank 0 {{\n{}}}\nrank 1 {{\n{}}}",
        ends("recv").replace("from 0", "from 1"),
        ends("send")
    );
    let schedule = read(&goal);
    for nic in all() {
        let finished = run_on(schedule.clone(), &nic).unwrap_or_else(|error| panic!("{nic}: {error:?}"));
        assert_eq!(finished.counts.messages, 8);
    }
}

#[test]
fn receives_that_begin_at_once_take_messages_in_the_order_of_their_posts() {
    // Both receives wait for the CPU: `b` from 100 ns on, and `a` from 200 ns on.
    let goal = |a: u64, b: u64| {
        format!(
            "num_ranks 2\nrank 0 {{\nsend {b}b to 1\nsend {a}b to 1\n}}\nrank 1 {{\nc: calc 10000\na: recv {a}b from 0\n\
             b: recv {b}b from 0\nx: calc 100 cpu 1\ny: calc 200 cpu 1\nb requires x\na requires y\n}}"
        )
    };
    assert!(run_on(read(&goal(10, 100)), "spin-discrete").is_ok());
    // Here `b` is too short for the first message.
    let short = goal(100, 10).replace("send 10b", "send 50b");
    assert!(matches!(run_on(read(&short), "spin-discrete"), Err(Failure::Run(Error::Program(_)))));
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn schedules_that_match_end_the_same_way_each_time(
        (ranks, messages) in
            (1..5_u32).prop_flat_map(|ranks| (Just(ranks), messages(ranks, &[0, 100, 40_000], Just(0)))),
        card in any::<prop::sample::Index>(),
        any_source in any::<bool>(),
    ) {
        let schedule = matching(ranks, &messages, any_source);
        let cards = all();
        let nic = card.get(&cards);
        let [first, second] = [(), ()].map(|()| run_on(schedule.clone(), nic).unwrap());
        prop_assert_eq!(first.counts.operations, schedule.ops().len() as u64);
        prop_assert_eq!(first.counts.messages * 2, first.counts.operations);
        prop_assert_eq!(&first.finish_ps, &second.finish_ps);
        prop_assert_eq!(first.spans, second.spans);
        prop_assert_eq!(first.counts, second.counts);
    }
}
