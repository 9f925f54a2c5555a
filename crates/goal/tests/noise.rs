//! Noise lengthens the work of CPUs, and changes nothing else.

use crate::schedules::{network, read};
use nicety_goal::loggops::{self, Noise};
use nicety_host::{Intervals, NoiseSpec, NoiseTrace, Regularity};
use nicety_kernel::Rng;
use nicety_types::{Duration, NodeId};
use std::sync::Arc;

/// Noise from 0 to 300 ns and from 1000 to 1200 ns, repeated every 1200 ns.
const TRACE: &str = "0 300\n1000 200\n";
const LENGTH: u64 = 1200;

fn recorded(rank: Option<u32>, seed: u64) -> Noise {
    Noise { intervals: Intervals::Recorded(Arc::new(NoiseTrace::parse(TRACE).unwrap())), rank, seed }
}

fn drawn(period_ns: u64, duration_ns: u64, seed: u64) -> Noise {
    let (period, duration) = (Duration::from_ns(period_ns), Duration::from_ns(duration_ns));
    let spec = NoiseSpec { period, duration, regularity: Regularity::Exponential };
    Noise { intervals: Intervals::Drawn(spec), rank: None, seed }
}

/// Returns the finish time of each host, in picoseconds.
fn finish(goal: &str, parameters: [u64; 6], noise: &Noise) -> Vec<u64> {
    let run = loggops::run_with_noise(&read(goal), &network(parameters), Some(noise), 1, &mut |_| true);
    run.unwrap().finish_ps
}

/// Returns the position in the trace at time zero, in picoseconds.
fn offset(seed: u64, rank: u32, cpu: u8) -> u64 {
    Rng::named(seed, NodeId(rank), &format!("noise on core {cpu}")).below(LENGTH * 1000)
}

/// Returns the end of work, in picoseconds. The function steps from edge to edge of the trace.
fn worked(offset: u64, now: u64, work: u64) -> u64 {
    let (mut now, mut left) = (now + offset, work);
    while left > 0 {
        let at = now % (LENGTH * 1000);
        let next = [300_000, 1_000_000, 1_200_000].into_iter().find(|edge| *edge > at).unwrap();
        let is_free = next == 1_000_000;
        let step = if is_free { (next - at).min(left) } else { next - at };
        now += step;
        left -= if is_free { step } else { 0 };
    }
    now - offset
}

#[test]
fn a_calculation_goes_on_behind_each_interval_of_noise() {
    // The work begins at an end of noise. 5000 ns of work meet seven times 500 ns of noise, and 100 ns of work are left.
    assert_eq!(worked(300_000, 0, 5_000_000), 5_000_000 + 7 * 500_000);
    for seed in 0..20 {
        let goal = "num_ranks 2\nrank 0 {\ncalc 5000\ncalc 700 cpu 1\n}\nrank 1 {\ncalc 40\n}";
        let done = finish(goal, [1000, 0, 0, 0, 0, 1000], &recorded(None, seed));
        let first = worked(offset(seed, 0, 0), 0, 5_000_000).max(worked(offset(seed, 0, 1), 0, 700_000));
        assert_eq!(done, [first, worked(offset(seed, 1, 0), 0, 40_000)], "seed {seed}");
    }
}

#[test]
fn overheads_of_messages_are_longer_and_the_network_is_not() {
    let goal = "num_ranks 2\nrank 0 {\nsend 11b to 1\n}\nrank 1 {\nrecv 11b from 0\n}";
    let net = [1000, 100, 50, 2, 30, 1000];
    for seed in 0..20 {
        // In nanoseconds: the sender's overhead is 100, and its bytes take 300 more. The message leaves after the overhead. The
        // receiver needs 400.
        let sent = |from: u64| worked(offset(seed, 0, 0), from, 100_000);
        let all = worked(offset(seed, 0, 0), sent(0), 300_000);
        let got = |arrived: u64| worked(offset(seed, 1, 0), arrived, 400_000);
        assert_eq!(finish(goal, net, &recorded(None, seed)), [all, got(sent(0) + 1_000_000)], "seed {seed}");
        // With noise on only one host, the work of the other host takes as long as without noise.
        assert_eq!(finish(goal, net, &recorded(Some(0), seed)), [all, sent(0) + 1_400_000]);
        assert_eq!(finish(goal, net, &recorded(Some(1), seed)), [400_000, got(1_100_000)]);
    }
}

#[test]
fn actions_without_cpu_time_meet_no_noise() {
    let goal =
        "num_ranks 2\nrank 0 {\na: calc 0\nb: send 1b to 1\nb requires a\n}\nrank 1 {\nrecv 1b from 0\n}";
    assert_eq!(finish(goal, [1000, 0, 0, 0, 0, 1000], &drawn(1000, 999, 1)), [0, 1_000_000]);
}

#[test]
fn noise_takes_its_share_and_its_seed_says_when() {
    let goal = "num_ranks 1\nrank 0 {\ncalc 900000000\n}";
    let ends: Vec<u64> = (0..5).map(|seed| finish(goal, [0; 6], &drawn(10_000, 1_000, seed))[0]).collect();
    for end in &ends {
        assert!(end.abs_diff(1_000_000_000_000) < 10_000_000_000, "{end}");
    }
    assert!(ends.windows(2).all(|pair| pair[0] != pair[1]), "{ends:?}");
}

#[test]
fn many_intervals_do_not_keep_a_run_from_being_interrupted() {
    // Each calculation meets two million intervals of noise. The whole run has far fewer operations than there are between two
    // calls of `go_on`.
    let goal = format!("num_ranks 1\nrank 0 {{\n{}}}", "calc 1000000\n".repeat(1000));
    let schedule = read(&goal);
    let (period, duration) = (Duration::from_ns(1), Duration::from_ps(500));
    let spec = NoiseSpec { period, duration, regularity: Regularity::Fixed };
    let noise = Noise { intervals: Intervals::Drawn(spec), rank: None, seed: 1 };
    let mut looks = 0;
    let mut stop = |_| {
        looks += 1;
        false
    };
    for latency in [1000, 0] {
        let network = network([latency, 0, 0, 0, 0, 0]);
        let run = loggops::run_with_noise(&schedule, &network, Some(&noise), 1, &mut stop);
        assert_eq!(run.unwrap_err(), loggops::Failure::Interrupted);
    }
    assert_eq!(looks, 2);
}
