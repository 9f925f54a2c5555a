//! Measures operations per second of CPU time, and memory per operation. It reads text and binary files, and runs schedules on a
//! LogGOPS network. It prints lines of the form `name  value  unit`.
//!
//! Runs are compared with a baseline: a simulator of forty lines, as the literature describes it. The baseline keeps all events
//! in one heap. If an event finds its CPU busy, it returns to the heap. A message searches a list for its receive. The baseline's
//! simulated times must equal those of LogGOPSim's rules. Figures are medians of interleaved runs.

use cpu_time::ThreadTime;
use nicety_goal::generate::{Pattern, Shape, generate};
use nicety_goal::loggops::{self, Parameters, Rules};
use nicety_goal::{ANY, Kind, Schedule, binary, text};
use nicety_types::{Duration, Gap};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const ROUNDS: usize = 5;
/// The parameters L, o and g in nanoseconds, and G in nanoseconds per byte.
const NET: [u64; 4] = [2500, 1500, 1000, 6];

fn parameters() -> Parameters {
    Parameters {
        latency: Duration::from_ns(NET[0]),
        overhead: Duration::from_ns(NET[1]),
        gap: Duration::from_ns(NET[2]),
        gap_per_byte: Gap::new(NET[3] * 1000, 1),
        overhead_per_byte: Gap::ZERO,
        eager_bytes: 65_535,
    }
}

/// Time, sequence number, host, operation, and for a message the sender.
type Event = Reverse<(u64, u64, u32, u32, Option<u32>)>;

/// Returns the finish time of each host. All messages are short, and each host has one CPU and one interface.
fn simple(schedule: &Schedule) -> Vec<u64> {
    let [latency, o, g, per_byte] = NET;
    let hosts = schedule.ranks() as usize;
    let (mut cpu, mut sending, mut receiving) = (vec![0; hosts], vec![0; hosts], vec![0; hosts]);
    let mut posted: Vec<VecDeque<(u32, u32, u32)>> = vec![VecDeque::new(); hosts];
    let mut unexpected = posted.clone();
    let mut left: Vec<u32> = schedule.ops().iter().map(|op| op.dependencies).collect();
    let mut queue: BinaryHeap<Event> = BinaryHeap::new();
    let mut sequence = 0;
    let mut freed = Vec::new();
    for host in 0..schedule.ranks() {
        let ops = schedule.rank(host).ops;
        freed.extend(
            (0..ops.len() as u32).filter(|op| ops[*op as usize].dependencies == 0).map(|op| (host, op)),
        );
        insert(schedule, &mut freed, &mut sequence, &cpu, &sending, &mut queue);
    }
    while let Some(Reverse((time, number, host, op, sender))) = queue.pop() {
        let h = host as usize;
        let rank = schedule.rank(sender.unwrap_or(host));
        let at = rank.ops[op as usize];
        let bytes = at.size.wrapping_sub(1).wrapping_mul(per_byte);
        let mut done = None;
        let free = match (sender, at.kind) {
            (Some(_), _) => cpu[h].max(receiving[h]),
            (None, Kind::Send) => cpu[h].max(sending[h]),
            (None, Kind::Calc) => cpu[h],
            (None, Kind::Recv) => 0,
        };
        if free > time {
            queue.push(Reverse((free, number, host, op, sender)));
            continue;
        }
        match (sender, at.kind) {
            (Some(from), _) => {
                (cpu[h], receiving[h]) = (time + o + bytes, time + g + bytes);
                let fits = |(source, tag, _): &(u32, u32, u32)| {
                    (*source == from || *source == ANY) && (*tag == at.tag || *tag == ANY)
                };
                match posted[h].iter().position(fits) {
                    Some(found) => done = posted[h].remove(found).map(|(.., op)| op),
                    None => unexpected[h].push_back((from, at.tag, op)),
                }
            }
            (None, Kind::Recv) => {
                let fits = |(source, tag, _): &(u32, u32, u32)| {
                    (*source == at.peer || at.peer == ANY) && (*tag == at.tag || at.tag == ANY)
                };
                match unexpected[h].iter().position(fits) {
                    Some(found) => done = unexpected[h].remove(found).map(|_| op),
                    None => posted[h].push_back((at.peer, at.tag, op)),
                }
            }
            (None, Kind::Calc) => {
                cpu[h] = time + at.size;
                done = Some(op);
            }
            (None, Kind::Send) => {
                (cpu[h], sending[h]) = (time + o, time + g + bytes);
                sequence += 1;
                queue.push(Reverse((time + o + latency, sequence, at.peer, op, Some(host))));
                done = Some(op);
            }
        }
        if let Some(op) = done {
            let first = schedule.first_op(host);
            for dependent in schedule.rank(host).dependents(op as usize) {
                let left = &mut left[first + dependent.op() as usize];
                *left -= 1;
                if *left == 0 {
                    freed.push((host, dependent.op()));
                }
            }
            insert(schedule, &mut freed, &mut sequence, &cpu, &sending, &mut queue);
        }
    }
    cpu
}

fn insert(
    schedule: &Schedule,
    freed: &mut Vec<(u32, u32)>,
    sequence: &mut u64,
    cpu: &[u64],
    sending: &[u64],
    queue: &mut BinaryHeap<Event>,
) {
    freed.sort_by_key(|(host, op)| schedule.rank(*host).ops[*op as usize].kind);
    for (host, op) in freed.drain(..) {
        *sequence += 1;
        let h = host as usize;
        let is_send = schedule.rank(host).ops[op as usize].kind == Kind::Send;
        let time = if is_send { cpu[h].max(sending[h]) } else { cpu[h] };
        queue.push(Reverse((time, *sequence, host, op, None)));
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the result of `act`, and the operations per second of CPU time.
fn timed<R>(operations: usize, act: impl FnOnce() -> R) -> (R, f64) {
    let start = ThreadTime::now();
    let made = act();
    (made, operations as f64 / start.elapsed().as_secs_f64())
}

fn made(pattern: Pattern, ranks: u32) -> Schedule {
    let shape = Shape { ranks, size: 1, iterations: 1, compute_ns: 0, layers: 1 };
    generate(pattern, &shape, &mut |_| true).expect("nothing stops it")
}

fn runs(name: &str, schedule: &Schedule, baseline: bool) {
    let operations = schedule.ops().len();
    let run =
        |rules| loggops::run(schedule, &parameters(), rules, &mut |_| true).expect("it finishes").finish_ps;
    let (mut own, mut compat, mut plain, mut ratio) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        own.push(timed(operations, || run(Rules::Own)).1);
        let (times, speed) = timed(operations, || run(Rules::LogGopSim));
        compat.push(speed);
        if baseline {
            let (others, speed) = timed(operations, || simple(schedule));
            assert!(
                times.iter().zip(&others).all(|(ps, ns)| *ps == ns * 1000),
                "the baseline has other times"
            );
            plain.push(speed);
            ratio.push(own[own.len() - 1] / speed);
        }
    }
    println!("{name}_operations_per_s  {:.0}  operations/s", median(own));
    println!("{name}_compat_operations_per_s  {:.0}  operations/s", median(compat));
    if baseline {
        println!("{name}_simple_operations_per_s  {:.0}  operations/s", median(plain));
        println!("{name}_ratio  {:.2}  1", median(ratio));
    }
}

/// Returns the peak memory of this process in bytes.
fn peak_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kb = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(kb.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
}

fn main() {
    let dissemination = made(Pattern::Dissemination, 65_536);
    let operations = dissemination.ops().len();
    let (mut goal, mut packed) = (Vec::new(), Vec::new());
    text::write(&dissemination, &mut goal).expect("memory");
    binary::write(&dissemination, &mut packed).expect("memory");
    drop(dissemination);
    let before = peak_bytes();
    let schedule = binary::read(&packed[..], &mut |_| true).expect("as it was written");
    loggops::run(&schedule, &parameters(), Rules::Own, &mut |_| true).expect("it finishes");
    if let (Some(before), Some(after)) = (before, peak_bytes()) {
        // This is a lower bound: memory that the process already held and reused is missing.
        println!(
            "dissemination_memory  {:.0}  bytes/operation",
            (after - before).max(0.0) / operations as f64
        );
    }
    let (mut from_text, mut from_binary) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let read = || text::read(&goal[..], text::DuplicateLabels::Unique, &mut |_| true);
        from_text.push(timed(operations, read).1);
        from_binary.push(timed(operations, || binary::read(&packed[..], &mut |_| true)).1);
    }
    println!("read_text  {:.0}  operations/s", median(from_text));
    println!("read_binary  {:.0}  operations/s", median(from_binary));
    runs("dissemination", &schedule, true);
    drop(schedule);
    runs("alltoall_512", &made(Pattern::LinearAlltoall, 512), false);
    runs("alltoall_128", &made(Pattern::LinearAlltoall, 128), true);
    runs("gather_16384", &made(Pattern::Gather, 16_384), false);
    runs("gather_2048", &made(Pattern::Gather, 2048), true);
}
