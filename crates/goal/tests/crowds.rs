//! Many operations at one host need no more steps for each operation than a few.

use crate::schedules::{network, run};
use nicety_goal::generate::{Pattern, Shape, generate};
use nicety_goal::loggops::Rules;
use nicety_goal::{ANY, Builder, Kind, Op, Schedule};

const NET: [u64; 6] = [2500, 1500, 1000, 6, 0, 65535];

fn pattern(pattern: Pattern, ranks: u32) -> Schedule {
    let shape = Shape { ranks, size: 8, iterations: 1, compute_ns: 0, layers: 1 };
    generate(pattern, &shape, &mut |_| true).unwrap()
}

/// Returns the sum of events and searched queue entries, for each operation.
fn steps(schedule: &Schedule, rules: Rules) -> f64 {
    let run = run(schedule, &network(NET), rules);
    assert_eq!(run.counts.operations as usize, schedule.ops().len());
    run.counts.steps as f64 / run.counts.operations as f64
}

#[test]
fn of_an_alltoall_and_a_gather() {
    for rules in [Rules::Own, Rules::LogGopSim] {
        for (name, few, many) in [(Pattern::LinearAlltoall, 24, 200), (Pattern::Gather, 200, 6000)] {
            let (few, many) = (steps(&pattern(name, few), rules), steps(&pattern(name, many), rules));
            assert!(many < 1.5 * few && many < 10.0, "{name:?} by {rules:?}: {few} {many}");
        }
    }
}

/// Messages that arrive in the reverse order of their receives, with or without wildcards.
fn reversed(count: u32, receive: impl Fn(u32) -> (u32, u32), late: bool) -> Schedule {
    let mut builder = Builder::new();
    let mut before = None;
    for number in 0..count {
        let op = builder.push(Op::new(Kind::Send, 8, 1, number)).unwrap();
        if let Some(before) = before {
            builder.depend(before, op, false);
        }
        before = Some(op);
    }
    builder.end_rank();
    let wait = builder.push(Op::new(Kind::Calc, if late { 1 << 40 } else { 0 }, 0, 0)).unwrap();
    for number in (0..count).rev() {
        let (source, tag) = receive(number);
        let mut op = Op::new(Kind::Recv, 8, source, tag);
        op.cpu = 1;
        let op = builder.push(op).unwrap();
        builder.depend(wait, op, false);
    }
    builder.end_rank();
    builder.finish()
}

#[test]
fn of_receives_in_the_opposite_order_and_with_wildcards() {
    let kinds: [&dyn Fn(u32) -> (u32, u32); 4] =
        [&|tag| (0, tag), &|tag| (ANY, tag), &|tag| (if tag % 2 == 0 { 0 } else { ANY }, tag), &|_| (0, ANY)];
    for (number, kind) in kinds.into_iter().enumerate() {
        for late in [false, true] {
            let (few, many) = (reversed(50, kind, late), reversed(2000, kind, late));
            let (few, many) = (steps(&few, Rules::Own), steps(&many, Rules::Own));
            assert!(many < 2.0 * few && many < 20.0, "{number}, late {late}: {few} {many}");
        }
    }
}

#[test]
fn messages_may_wait_for_another_interface() {
    // Ten pairs of ranks. The sends have higher numbers than the receivers have operations. At the last pair, they are also above
    // the number of hosts.
    let mut builder = Builder::new();
    for rank in 0..20 {
        for _ in 0..if rank < 10 { 500 } else { 0 } {
            builder.push(Op::new(Kind::Calc, 0, 0, 0)).unwrap();
        }
        for _ in 0..30 {
            let kind = if rank < 10 { Kind::Send } else { Kind::Recv };
            let mut op = Op::new(kind, 1000, (rank + 10) % 20, 0);
            op.nic = 1;
            builder.push(op).unwrap();
        }
        builder.end_rank();
    }
    let schedule = builder.finish();
    let [own, other] =
        [Rules::Own, Rules::LogGopSim].map(|rules| run(&schedule, &network(NET), rules).finish_ps);
    assert_eq!(own, other);
    // A message takes the CPU of the receiver for longer than its latency.
    assert_eq!(own[19], (4000 + 30 * (1500 + 999 * 6)) * 1000);
}
