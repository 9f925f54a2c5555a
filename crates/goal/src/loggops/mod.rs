//! The LogGOPS network: the time of a schedule if the cost of a message depends only on its size.
//!
//! | parameter | meaning |
//! |---|---|
//! | L | the latency from any host to any other |
//! | o, O | the CPU time of a message, and of each byte after the first |
//! | g, G | the time between the starts of messages at an interface, and of each byte after the first |
//! | S | the longest eager message; the sender of a longer one waits for the receive |
//!
//! A host has a clock per CPU, and a clock per interface and direction, all 0 at first. An event that finds a clock later than itself waits
//! in a lane, together with other events for the same resources. Only the first of a lane is retried, so a crowd costs no more than the
//! same events one by one.
//!
//! By nicety's own rules hosts share only messages, which take o + L, and completions of long messages, which take L. So time is cut into
//! windows of at most that length. Within a window each host's events are executed in sequence, independently of other hosts. No global
//! order of events is needed, and hosts can be spread over threads. By the rules of LogGOPSim ([`Rules::LogGopSim`]), and if L is 0, one
//! heap orders the events of all hosts.

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

/// Events between two calls of `go_on`.
const LOOK_EVERY: u64 = 1 << 16;

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The time at which each host's CPUs are done, in picoseconds.
    pub finish_ps: Vec<u64>,
    /// Counts.
    pub counts: Counts,
}

/// The reason why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A parameter is not a whole number of nanoseconds, as LogGOPSim's rules need.
    NotWhole(NotWhole),
    /// Operations wait for each other.
    Cycle(Cycle),
    /// Messages or receives are left.
    Stuck(Stuck),
    /// An operation ends 2^64 ps or more after the beginning: its rank and number.
    Endless(u32, u32),
    /// The caller interrupted the run.
    Interrupted,
}

/// Runs a schedule. `go_on` is called regularly with about the number of executed operations; if it returns false, the run ends.
///
/// # Errors
/// The schedule cannot finish; `go_on` returned false.
pub fn run(
    schedule: &Schedule,
    parameters: &Parameters,
    rules: Rules,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished, Failure> {
    run_in_threads(schedule, parameters, rules, 1, go_on)
}

/// Returns whether a run can be spread over threads. It cannot by the rules of LogGOPSim, since its events have one order, nor without a
/// latency, since windows would have no length.
pub fn has_threads(parameters: &Parameters, rules: Rules) -> bool {
    rules == Rules::Own && !parameters.latency.is_zero()
}

/// As [`run`], with blocks of hosts in `threads` threads, if [`has_threads`]. The result is the same to the last bit.
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

/// As [`run_in_threads`] by nicety's own rules, on CPUs with noise.
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

/// As [`run_with_noise`], in several processes with a block of the hosts each. All processes get the same result. It is `None` if the
/// schedule has to run as a whole: there are fewer hosts than processes, no [latency](has_threads), or a failure.
///
/// # Errors
/// The run was interrupted; the other processes are out of reach.
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

/// As [`run`] by nicety's own rules; also returns begin and end of each operation. A send begins when it has its CPU and interface, and a
/// receive when it is posted.
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

/// Returns the result, once no event is left.
fn finished<const COMPAT: bool>(shards: &[Shard<'_, COMPAT>]) -> Result<Finished, Failure> {
    if let Some((rank, op)) = shards.iter().filter_map(|shard| shard.endless).min() {
        return Err(Failure::Endless(rank, op));
    }
    let schedule = shards[0].schedule;
    let counts = shards.iter().map(Shard::counts).sum::<Counts>();
    let is_over = counts.operations == schedule.ops().len() as u64;
    // LogGOPSim does not report operations that wait for each other.
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
