//! The LogGOPS network. It gives the time of a schedule if the cost of a message depends only on its size.
//!
//! | parameter | meaning |
//! |---|---|
//! | L | the latency from any host to any other |
//! | o, O | the CPU time for a message, and for each byte after its first |
//! | g, G | the time between the starts of two messages at an interface, and the time of each byte after the first |
//! | S | the maximum length of an eager message; the sender of a longer message waits for the receive |
//!
//! A host has a clock for each CPU, and a clock for each interface and direction. A clock has the time at which its resource
//! becomes free; at first it is 0. An event that finds its resource busy waits in a lane, together with other events for the same
//! resources. Only the first event of a lane is retried. Therefore a crowd of waiting events costs no more than the same events
//! one after another.
//!
//! By nicety's own rules, hosts affect each other only by messages, which take o + L, and by completions of long messages, which
//! take L. So simulated time is divided into windows that are at most as long. Within a window, the events of each host are
//! executed in sequence, independently of other hosts. This needs no global order of events, and hosts can be divided over
//! threads. By the rules of LogGOPSim ([`Rules::LogGopSim`]), and if L is 0, one heap orders the events of all hosts.

mod costs;
mod counts;
mod engine;
mod event;
mod host;
mod matching;
mod noise;
mod radix;
mod stuck;
mod tables;
#[cfg(test)]
mod tests;
mod windows;

pub use costs::{NotWhole, Parameters, Rules};
pub use counts::Counts;
pub use noise::Noise;
pub use stuck::Stuck;

use crate::check::{Cycle, find_cycle};
use crate::schedule::Schedule;
use crate::spans::Spans;
use costs::Costs;
use engine::{Agenda, Shard, World};
use nicety::{Error, Peers};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of events between two calls of `go_on`.
const LOOK_EVERY: u64 = 1 << 16;

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// For each host, the time at which all its CPUs have finished, in picoseconds.
    pub finish_ps: Vec<u64>,
    /// Counts.
    pub counts: Counts,
}

/// The reason why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A parameter is not a whole number of nanoseconds, which LogGOPSim's rules require.
    NotWhole(NotWhole),
    /// Operations depend on each other in a cycle.
    Cycle(Cycle),
    /// Messages or receives are left.
    Stuck(Stuck),
    /// The rank and number of an operation that ends 2^64 ps or more after the start of the run.
    Endless(u32, u32),
    /// The caller interrupted the run.
    Interrupted,
}

/// Runs a schedule. `go_on` is called regularly with the approximate number of executed operations. If it returns false, the run
/// ends.
///
/// # Errors
/// When the schedule cannot finish, or `go_on` returned false.
pub fn run(
    schedule: &Schedule,
    parameters: &Parameters,
    rules: Rules,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished, Failure> {
    run_in_threads(schedule, parameters, rules, 1, go_on)
}

/// Returns whether a run can be divided over threads. It cannot by the rules of LogGOPSim, because all events are in one order.
/// It also cannot if the latency is 0, because windows would have no length.
pub fn has_threads(parameters: &Parameters, rules: Rules) -> bool {
    rules == Rules::Own && !parameters.latency.is_zero()
}

/// As [`run`], with hosts divided over `threads` threads if [`has_threads`]. The result is the same to the last bit.
///
/// # Errors
/// As [`run`].
pub fn run_in_threads(
    schedule: &Schedule,
    parameters: &Parameters,
    rules: Rules,
    threads: u32,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished, Failure> {
    match rules {
        Rules::LogGopSim => {
            let costs = Costs::loggopsim(parameters).map_err(Failure::NotWhole)?;
            run_global::<true>(&World::new(schedule, costs, 1), go_on)
        }
        Rules::Own => run_with_noise(schedule, parameters, None, threads, go_on),
    }
}

/// As [`run_in_threads`], by nicety's own rules and with noise on CPUs.
///
/// # Errors
/// As [`run`].
pub fn run_with_noise(
    schedule: &Schedule,
    parameters: &Parameters,
    noise: Option<&Noise>,
    threads: u32,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished, Failure> {
    let threads = if has_threads(parameters, Rules::Own) { threads } else { 1 };
    let mut world = World::new(schedule, Costs::own(parameters), threads);
    world.noise = noise;
    if has_threads(parameters, Rules::Own) {
        windows::run(&world, go_on)
    } else {
        run_global::<false>(&world, go_on)
    }
}

/// As [`run_with_noise`], with hosts divided over several processes. All processes get the same result. It is `None` if the
/// schedule must run as a whole. This is so if there are fewer hosts than processes, the [latency](has_threads) is 0, or the run
/// failed.
///
/// # Errors
/// When the run was interrupted, or another process is out of reach.
pub fn run_in_processes(
    schedule: &Schedule,
    parameters: &Parameters,
    noise: Option<&Noise>,
    peers: &Peers,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Finished>, Error> {
    let mut world = World::new(schedule, Costs::own(parameters), peers.count() as u32);
    world.noise = noise;
    if !has_threads(parameters, Rules::Own) || world.shards() as usize != peers.count() {
        return Ok(None);
    }
    windows::run_in_processes(&world, peers, go_on)
}

/// As [`run`], by nicety's own rules. Also returns the start and the end of each operation. A send starts when its CPU and
/// interface are free, and a receive when it is posted.
///
/// # Errors
/// As [`run`].
pub fn run_with_spans(
    schedule: &Schedule,
    parameters: &Parameters,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(Finished, Spans), Failure> {
    let world = World::new(schedule, Costs::own(parameters), 1);
    let mut shard = Shard::<false>::new(&world, 0, Agenda::Global(BinaryHeap::new()));
    shard.spans = Some(Spans::new(schedule.ops().len()));
    let finished = run_shard(&mut shard, go_on)?;
    Ok((finished, shard.spans.unwrap_or_default()))
}

fn run_global<const COMPAT: bool>(
    world: &World<'_>,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished, Failure> {
    run_shard(&mut Shard::<COMPAT>::new(world, 0, Agenda::Global(BinaryHeap::new())), go_on)
}

/// Runs a shard of all hosts, with one heap of events.
fn run_shard<const COMPAT: bool>(
    shard: &mut Shard<'_, COMPAT>,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished, Failure> {
    (0..shard.schedule.ranks()).for_each(|host| shard.begin(host));
    let mut next_look = LOOK_EVERY;
    loop {
        let Agenda::Global(heap) = &mut shard.agenda else { unreachable!("it was made so") };
        let Some(Reverse(event)) = heap.pop() else { break };
        shard.happen(event);
        if shard.counts.steps >= next_look || shard.is_late() {
            next_look = shard.counts.steps + LOOK_EVERY;
            look(shard, go_on)?;
        }
    }
    finished(std::slice::from_ref(shard))
}

fn look<const COMPAT: bool>(
    shard: &Shard<'_, COMPAT>,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Failure> {
    if let Some((rank, op)) = shard.endless {
        return Err(Failure::Endless(rank, op));
    }
    if go_on(shard.counts.operations) { Ok(()) } else { Err(Failure::Interrupted) }
}

/// Returns the result when no event is left.
fn finished<const COMPAT: bool>(shards: &[Shard<'_, COMPAT>]) -> Result<Finished, Failure> {
    if let Some((rank, op)) = shards.iter().filter_map(|shard| shard.endless).min() {
        return Err(Failure::Endless(rank, op));
    }
    let schedule = shards[0].schedule;
    let counts = shards.iter().map(Shard::counts).sum::<Counts>();
    let is_over = counts.operations == schedule.ops().len() as u64;
    // LogGOPSim does not report operations that depend on each other in a cycle.
    if !COMPAT
        && !is_over
        && let Some(cycle) = find_cycle(schedule)
    {
        return Err(Failure::Cycle(cycle));
    }
    if let Some(stuck) = Stuck::find(shards, counts) {
        return Err(Failure::Stuck(stuck));
    }
    debug_assert!(COMPAT || is_over);
    let tick_ps = if COMPAT { 1000 } else { 1 };
    let hosts = shards.iter().flat_map(|shard| &shard.hosts);
    Ok(Finished { finish_ps: hosts.map(|host| host.finish().saturating_mul(tick_ps)).collect(), counts })
}
