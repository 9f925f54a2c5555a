//! Schedules that several tests use.

use nicety_goal::loggops::{Finished, Parameters, Rules};
use nicety_goal::{ANY, Builder, Kind, Op, Schedule, binary, loggops, text};
use nicety_types::{Duration, Gap};
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns parameters. L, o, g are in nanoseconds, G and O in nanoseconds per byte, and S in bytes.
pub fn network([l, o, g, gap, overhead, s]: [u64; 6]) -> Parameters {
    Parameters {
        latency: Duration::from_ns(l),
        overhead: Duration::from_ns(o),
        gap: Duration::from_ns(g),
        gap_per_byte: Gap::new(gap * 1000, 1),
        overhead_per_byte: Gap::new(overhead * 1000, 1),
        eager_bytes: s,
    }
}

pub fn read(goal: &str) -> Schedule {
    text::read(goal.as_bytes(), text::DuplicateLabels::Unique, &mut |_| true).unwrap()
}

pub fn written(schedule: &Schedule) -> String {
    let mut made = Vec::new();
    text::write(schedule, &mut made).unwrap();
    String::from_utf8(made).unwrap()
}

pub fn packed(schedule: &Schedule) -> Vec<u8> {
    let mut made = Vec::new();
    binary::write(schedule, &mut made).unwrap();
    made
}

pub fn run(schedule: &Schedule, parameters: &Parameters, rules: Rules) -> Finished {
    loggops::run(schedule, parameters, rules, &mut |_| true).unwrap()
}

/// Returns the finish time of each host, in nanoseconds.
pub fn finish(goal: &str, parameters: [u64; 6], rules: Rules) -> Vec<u64> {
    let run = run(&read(goal), &network(parameters), rules);
    run.finish_ps.iter().map(|ps| ps / 1000).collect()
}

/// Returns the configuration of a test that runs n / 256 of the usual number of cases.
pub fn cases(n: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: (n * usual.cases / 256).max(1), ..usual }
}

fn any_op(ranks: u32) -> impl Strategy<Value = Op> {
    let tag = prop_oneof![4 => 0..5_u32, 1 => any::<u32>().prop_map(|tag| tag.min(ANY - 1)), 1 => Just(ANY)];
    let size = prop_oneof![4 => 0..100_u64, 1 => any::<u64>()];
    let kind = prop_oneof![Just(Kind::Send), Just(Kind::Recv), Just(Kind::Calc)];
    let place = prop_oneof![3 => Just((0, 0)), 1 => any::<(u8, u8)>()];
    (kind, size, 0..=ranks, tag, place).prop_map(move |(kind, size, peer, tag, (cpu, nic))| {
        let mut op = match kind {
            Kind::Calc => Op::new(kind, size, 0, 0),
            Kind::Recv if peer == ranks => Op::new(kind, size, ANY, tag),
            _ => Op::new(kind, size, peer % ranks, tag),
        };
        op.cpu = cpu;
        op.nic = if kind == Kind::Calc { 0 } else { nic };
        op
    })
}

/// Returns any schedule, which need not be able to finish.
pub fn any_schedule() -> impl Strategy<Value = Schedule> {
    (1..4_u32)
        .prop_flat_map(|ranks| {
            let rank = (vec(any_op(ranks), 0..8), vec(any::<(u8, u8, bool)>(), 0..12));
            vec(rank, ranks as usize)
        })
        .prop_map(|ranks| {
            let mut builder = Builder::new();
            for (ops, dependencies) in ranks {
                let count = ops.len() as u32;
                for op in ops {
                    builder.push(op).unwrap();
                }
                for (first, then, on_start) in dependencies {
                    if count > 0 {
                        builder.depend(u32::from(first) % count, u32::from(then) % count, on_start);
                    }
                }
                builder.end_rank();
            }
            builder.finish()
        })
}

/// A message of a random schedule.
#[derive(Clone, Debug)]
pub struct Message {
    from: u32,
    to: u32,
    tag: u32,
    bytes: u64,
    /// The CPU of its send, and the CPU of its receive.
    cpus: (u8, u8),
    /// Whether its send waits for the previous operation of the source.
    waits: bool,
    /// The time in nanoseconds that its receiver computes before it posts the receive.
    delay: u64,
}

/// Returns random messages between `ranks` ranks. Messages with the same tag have the same size, so no receive is too short.
pub fn messages(
    ranks: u32,
    sizes: &'static [u64],
    delays: impl Strategy<Value = u64>,
) -> impl Strategy<Value = Vec<Message>> {
    let ends = (0..ranks, 0..ranks, 0..sizes.len());
    let message = (ends, (0..3_u8, 0..3_u8), any::<bool>(), delays).prop_map(
        move |((from, to, tag), cpus, waits, delay)| {
            let (tag, bytes) = (tag as u32, sizes[tag]);
            Message { from, to, tag, bytes, cpus, waits, delay }
        },
    );
    vec(message, 0..24)
}

/// Returns a schedule in which all messages are received. Sends wait only for earlier sends, and for earlier receives that are
/// posted at once, so the schedule can finish. If a receive is delayed, a later receive may be posted first and take its message.
pub fn matching(ranks: u32, messages: &[Message], any_source: bool) -> Schedule {
    let mut builder = Builder::new();
    for rank in 0..ranks {
        let mut before = None;
        for Message { from, to, tag, bytes, cpus, waits, delay } in messages {
            if *to == rank {
                let source = if any_source { ANY } else { *from };
                let receive = builder.push(Op::new(Kind::Recv, *bytes, source, *tag).on_cpu(cpus.1)).unwrap();
                if *delay > 0 {
                    // The calculation has a CPU of its own, so it delays no other receive.
                    let calc = builder.push(Op::new(Kind::Calc, *delay, 0, 0).on_cpu(3)).unwrap();
                    builder.depend(calc, receive, false);
                } else {
                    before = Some(receive);
                }
            }
            if *from == rank {
                let send = builder.push(Op::new(Kind::Send, *bytes, *to, *tag).on_cpu(cpus.0)).unwrap();
                // A send does not wait for the receive of its own message.
                if let Some(before) = before.filter(|_| *waits && to != from) {
                    builder.depend(before, send, false);
                }
                before = Some(send);
            }
        }
        builder.end_rank();
    }
    builder.finish()
}

/// A message or a calculation: source, target, size and tag. Then come the distances to the operations on which its ends depend,
/// and whether they depend on starts.
pub type Step = (u32, u32, u64, u32, [u8; 2], bool);

/// An operation, and the operations of its rank on which it depends. For each of these, whether it depends on the start.
type Placed = (Op, Vec<(usize, bool)>);

/// Returns a schedule that can finish. Every message has a receive, and no operation depends on a later one. Each rank begins
/// with a calculation of a different length.
pub fn finishing(ranks: u32, steps: &[Step], one_tag: bool) -> Schedule {
    let mut ops: Vec<Vec<Placed>> = (0..u64::from(ranks))
        .map(|rank| vec![(Op::new(Kind::Calc, 1_000_003 + rank * 777_777_777, 0, 0), Vec::new())])
        .collect();
    for (number, (source, target, size, calc, back, on_start)) in (1..).zip(steps) {
        let tag = if one_tag { 0 } else { number };
        let sides =
            [(Kind::Send, *source % ranks, *target % ranks), (Kind::Recv, *target % ranks, *source % ranks)];
        for ((kind, rank, peer), back) in sides.into_iter().zip(back) {
            let own = &mut ops[rank as usize];
            let first = own.len() - 1 - usize::from(*back) % own.len().min(3);
            // A message that waits for the start of its own receive would be valid, but is omitted here.
            own.push((Op::new(kind, *size, peer, tag), vec![(first, *on_start && kind == Kind::Send)]));
            let last = own.len() - 1;
            own.push((
                Op::new(Kind::Calc, u64::from(*calc) * 7919 + u64::from(number), 0, 0),
                vec![(last, false)],
            ));
        }
    }
    let mut builder = Builder::new();
    for rank in ops {
        for (op, _) in &rank {
            builder.push(*op).unwrap();
        }
        for (then, (_, firsts)) in rank.iter().enumerate() {
            for (first, on_start) in firsts {
                builder.depend(*first as u32, then as u32, *on_start);
            }
        }
        builder.end_rank();
    }
    builder.finish()
}
