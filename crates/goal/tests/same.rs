//! Nicety's own rules and LogGOPSim's give the same results where they agree. Both keep the invariants of every run.

use crate::schedules::{Step, cases, finishing, network, run};
use nicety_goal::Schedule;
use nicety_goal::loggops::{self, Failure, Parameters, Rules};
use nicety_types::{Duration, Gap};
use proptest::collection::vec;
use proptest::prelude::*;

fn steps(sizes: std::ops::Range<u64>) -> impl Strategy<Value = Vec<Step>> {
    vec((0..6_u32, 0..6_u32, sizes, 0..5_000_u32, any::<[u8; 2]>(), any::<bool>()), 0..60)
}

/// The finish times of hosts, and the numbers of operations and messages; or the unfinished part.
type Outcome = Result<(Vec<u64>, u64, u64), (Vec<(u32, u32)>, Vec<(u32, u32)>)>;

fn outcome(schedule: &Schedule, network: &Parameters, rules: Rules) -> Outcome {
    match loggops::run(schedule, network, rules, &mut |_| true) {
        Ok(run) => Ok((run.finish_ps, run.counts.operations, run.counts.messages)),
        Err(Failure::Stuck(stuck)) => Err((stuck.sends, stuck.receives)),
        Err(other) => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(cases(128))]

    /// Hosts have one CPU and interface, messages are short, and no two events occur at one instant. So nicety's corrections have
    /// no effect.
    #[test]
    fn of_short_messages_between_hosts_with_one_cpu(
        ranks in 2..7_u32,
        steps in steps(1..5000),
        one_tag in any::<bool>(),
    ) {
        let schedule = finishing(ranks, &steps, one_tag);
        let network = network([2503, 1501, 1009, 7, 3, 5000]);
        let [own, other] = [Rules::Own, Rules::LogGopSim].map(|rules| outcome(&schedule, &network, rules));
        prop_assert_eq!(&own, &other);
        // With one tag, a receive may take the message of another receive. That receive may then wait for ever.
        if let Ok((_, operations, messages)) = own {
            prop_assert_eq!((operations, messages), (schedule.ops().len() as u64, steps.len() as u64));
        } else {
            prop_assert!(one_tag);
        }
    }

    /// Windows do not change results. If the latency is 0, one heap orders all events; if it is a picosecond, windows are a
    /// picosecond long. So the times of hosts differ by at most one picosecond for each message. That picosecond could change the
    /// order of two events at one instant. To exclude such pairs, times have no common multiples, and messages have at least two
    /// bytes: their last byte arrives after the send has ended.
    #[test]
    fn windows_and_one_heap_are_the_same(ranks in 2..7_u32, steps in steps(2..5000), one_tag in any::<bool>()) {
        let schedule = finishing(ranks, &steps, one_tag);
        let zero = Parameters {
            overhead: Duration::from_ps(1_501_317),
            gap: Duration::from_ps(1_009_113),
            gap_per_byte: Gap::new(7_013, 1),
            overhead_per_byte: Gap::new(3_001, 1),
            ..network([0, 0, 0, 0, 0, 5000])
        };
        let short = Parameters { latency: Duration::from_ps(1), ..zero };
        let (heap, windows) = (outcome(&schedule, &zero, Rules::Own), outcome(&schedule, &short, Rules::Own));
        if let (Ok((heap, ..)), Ok((windows, ..))) = (heap, windows) {
            for (a, b) in heap.iter().zip(&windows) {
                prop_assert!(a <= b && b - a <= steps.len() as u64, "{a} {b}");
            }
        } else {
            prop_assert!(one_tag);
        }
    }

    /// Long messages take their senders at least as much time as by LogGOPSim's rules.
    #[test]
    fn of_long_messages_too_all_is_done(ranks in 2..7_u32, steps in steps(1..9000)) {
        // No rank sends to itself, because such a receive may wait for the end of its own send.
        let steps: Vec<Step> = steps
            .into_iter()
            .map(|step| {
                let source = step.0 % ranks;
                (source, (source + 1 + step.1 % (ranks - 1)) % ranks, step.2, step.3, step.4, step.5)
            })
            .collect();
        let schedule = finishing(ranks, &steps, false);
        let network = network([2503, 1501, 1009, 7, 3, 5000]);
        let own = run(&schedule, &network, Rules::Own);
        prop_assert_eq!(own.counts.operations as usize, schedule.ops().len());
        prop_assert_eq!(own.counts.messages as usize, steps.len());
    }
}
