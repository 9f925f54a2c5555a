//! Schedules of patterns. All of them finish, and have the messages of their pattern.

use crate::schedules::{network, run};
use nicety_goal::generate::{Pattern, Shape, generate};
use nicety_goal::loggops::Rules;
use nicety_goal::{Info, Kind, Schedule, find_cycle};

fn made(pattern: Pattern, shape: Shape) -> Schedule {
    generate(pattern, &shape, &mut |_| true).unwrap()
}

fn shape(ranks: u32, size: u64) -> Shape {
    Shape { ranks, size, iterations: 1, compute_ns: 0, layers: 1 }
}

fn info(pattern: Pattern, shape: Shape) -> Info {
    Info::of("", &made(pattern, shape), &mut |_| true).unwrap()
}

/// Returns the finish time of the last host if only the latency takes time. This is the number of messages in the longest chain.
fn rounds(pattern: Pattern, ranks: u32) -> u64 {
    let run = run(&made(pattern, shape(ranks, 64)), &network([1, 0, 0, 0, 0, 1 << 30]), Rules::Own);
    run.finish_ps.into_iter().max().unwrap() / 1000
}

#[test]
fn every_pattern_finishes_with_any_number_of_ranks() {
    for (name, pattern) in Pattern::ALL {
        for ranks in (1..=9).chain([12, 16, 31, 64]) {
            for iterations in [1, 3] {
                let shape = Shape { ranks, size: 1000, iterations, compute_ns: 77, layers: 3 };
                let schedule = made(pattern, shape);
                assert_eq!(find_cycle(&schedule), None);
                for eager in [100, 1 << 20] {
                    let done = run(&schedule, &network([2500, 1500, 1000, 6, 0, eager]), Rules::Own);
                    assert_eq!(done.counts.operations as usize, schedule.ops().len(), "{name} of {ranks}");
                }
                let about = shape.operations(pattern) as f64;
                let there = schedule.ops().len() as f64;
                assert!(
                    ranks < 12 || (0.4..2.6).contains(&(there / about)),
                    "{name} of {ranks}: {there} {about}"
                );
            }
        }
    }
}

#[test]
fn they_take_the_rounds_that_they_should() {
    for (pattern, ranks, expected) in [
        (Pattern::BinomialBroadcast, 16, 4),
        (Pattern::BinomialBroadcast, 11, 3),
        (Pattern::BinomialReduce, 16, 4),
        (Pattern::Dissemination, 16, 4),
        (Pattern::Dissemination, 17, 5),
        (Pattern::RecursiveDoubling, 16, 4),
        (Pattern::RecursiveDoubling, 20, 5),
        (Pattern::RingAllreduce, 8, 14),
        (Pattern::LinearAlltoall, 8, 1),
        (Pattern::PairwiseAlltoall, 8, 7),
        (Pattern::Gather, 8, 1),
        (Pattern::Scatter, 8, 1),
        (Pattern::Halo2d, 12, 1),
        (Pattern::Halo3d, 12, 1),
        (Pattern::Pipeline, 8, 7),
    ] {
        // A host without events that move its clock ends at 0, so a receive has to take time.
        let schedule = made(pattern, shape(ranks, 64));
        let done = run(&schedule, &network([1000, 1, 0, 0, 0, 1 << 30]), Rules::Own);
        let last = done.finish_ps.into_iter().max().unwrap() / 1_000_000;
        assert_eq!(last, expected, "{pattern:?} of {ranks}");
    }
    assert_eq!(rounds(Pattern::Pipeline, 1), 0);
}

#[test]
fn they_move_the_bytes_that_they_should() {
    let bytes = |pattern, ranks, size| info(pattern, shape(ranks, size)).bytes;
    assert_eq!(bytes(Pattern::BinomialBroadcast, 13, 100), 12 * 100);
    assert_eq!(bytes(Pattern::BinomialReduce, 13, 100), 12 * 100);
    // Each part goes around the ring twice, minus one step each time.
    assert_eq!(bytes(Pattern::RingAllreduce, 7, 1000), 2 * 6 * 1000);
    assert_eq!(bytes(Pattern::LinearAlltoall, 9, 10), 9 * 8 * 10);
    assert_eq!(bytes(Pattern::PairwiseAlltoall, 9, 10), 9 * 8 * 10);
    // A grid of 3 x 4 ranks has 8 + 9 edges. A grid of 2 x 2 x 3 ranks has 6 + 6 + 8 edges.
    assert_eq!(bytes(Pattern::Halo2d, 12, 10), 2 * 17 * 10);
    assert_eq!(bytes(Pattern::Halo3d, 12, 10), 2 * 20 * 10);
    assert_eq!(bytes(Pattern::DataParallel, 4, 1001), 2 * 3 * 1001);
    // A layer exchanges three quarters of each rank's tokens four times. The gradients are added to these bytes.
    assert_eq!(bytes(Pattern::MixtureOfExperts, 4, 1000), 4 * 4 * 750 + 2 * 3 * 1000);
}

#[test]
fn the_ring_passes_on_what_it_got() {
    let schedule = made(Pattern::RingAllreduce, shape(5, 13));
    for (rank, next) in [(0, 1), (3, 4), (4, 0)] {
        let sizes = |rank: u32, kind: Kind| {
            schedule.rank(rank).ops.iter().filter(|op| op.kind == kind).map(|op| op.size).collect::<Vec<_>>()
        };
        assert_eq!(sizes(rank, Kind::Send), sizes(next, Kind::Recv));
        assert_eq!(sizes(rank, Kind::Recv)[..7], sizes(rank, Kind::Send)[1..]);
    }
}

#[test]
fn gradients_are_summed_while_the_next_layer_computes() {
    let step = Shape { ranks: 8, size: 8 << 20, iterations: 1, compute_ns: 10_000_000, layers: 4 };
    let parameters = network([1000, 100, 100, 1, 0, 1 << 30]);
    let done = run(&made(Pattern::DataParallel, step), &parameters, Rules::Own);
    let last = done.finish_ps.into_iter().max().unwrap() / 1000;
    // The forward and backward passes take 120 ms. The ring of a layer has 14 steps of 256 KiB, and takes 3.7 ms. Only the last
    // layer's ring is not hidden.
    let step_ns = 1000 + 2 * 100 + (1 << 18) - 1;
    assert_eq!(last, 120_000_000 + 14 * step_ns);
}

#[test]
fn a_schedule_is_described() {
    let goal = "num_ranks 3\nrank 0 {\na: calc 5\nb: send 10b to 1 nic 2\nb requires a\nc: recv 3b from -1\nc irequires b\n\
                d: send 7b to 2\ne: send 1b to 0\n}\nrank 1 {\n}\nrank 2 {\ncalc 8 cpu 4\n}";
    let info = Info::of("x", &crate::schedules::read(goal), &mut |_| true).unwrap();
    let expected = Info {
        file: "x".to_owned(),
        ranks: 3,
        operations: 6,
        sends: 3,
        recvs: 1,
        calcs: 2,
        bytes: 18,
        calc_ns: 13,
        dependencies: 2,
        depth: 3,
        degree: 2,
        rank_operations: 5,
        cpus: 5,
        nics: 3,
    };
    assert_eq!(info, expected);
}
