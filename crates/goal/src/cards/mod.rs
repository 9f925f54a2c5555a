//! The same schedules on modelled cards: every message is executed by the cards of two hosts, packet by packet over a network.
//!
//! - `rank.rs`: a rank, whose operations begin as they become free, as `send`, `recv` and `compute` of a host's program.
//! - `offload.rs`: messages that cards execute by themselves, with handlers.
//! - `left.rs`: operations that could not end, and messages that no receive took.
//! - `taken.rs`: which send's message each receive took.
//!
//! A rank is a host. A calculation takes the CPU of its number, one at a time, and a core of the host. Sends and receives begin
//! at once, unless their CPU computes, and do not hold up one another; what they cost, and whether a message is sent at once or
//! waits for its receive, is the card's and its library's. Messages have lengths and no bytes, so that memory does not grow with
//! them.

mod left;
mod offload;
mod rank;
mod taken;

use crate::check::{Cycle, find_cycle, named};
use crate::loggops::{Counts, Stuck};
use crate::schedule::{Kind, Schedule};
use crate::spans::Spans;
use nicety::{Cluster, ClusterConfig, Error, Handlers};
use nicety_types::{Path, Stage};
use offload::{CardMessages, LONGEST};
use rank::Running;
use std::cell::Cell;
use std::rc::Rc;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Finished {
    /// When the last operation of each rank ended, in picoseconds.
    pub finish_ps: Vec<u64>,
    /// Counts; a step is an event of the simulation.
    pub counts: Counts,
    /// When each operation began and ended.
    pub spans: Spans,
    /// The critical path to the end of the rank that was last, the first of several, by stage in picoseconds; where the
    /// configuration asks for paths by stage.
    pub stages: Option<Vec<(Stage, u64)>>,
}

/// Why a run came to nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// Operations wait for each other.
    Cycle(Cycle),
    /// Messages or receives are left; with notes on the network.
    Stuck(Stuck, String),
    /// The configuration is none, or the run failed.
    Run(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Run(error)
    }
}

/// Runs a schedule on a cluster, whose hosts are as many as the schedule has ranks. `go_on` is called every so often with how
/// many operations have ended; where it returns false, the run ends.
///
/// # Errors
/// The schedule cannot finish; the cluster cannot be built; a limit of a card was reached; the network lost messages.
pub fn run(
    schedule: &Rc<Schedule>,
    config: ClusterConfig,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished, Failure> {
    run_by(schedule, config, None, go_on)
}

/// The same, with messages executed by these handlers on the cards, those of `matching.c`, where there are some, and not by the
/// design's library on the hosts.
///
/// # Errors
/// As [`run`]; the cards have no handlers, or a message is longer than handlers can count.
pub fn run_by(
    schedule: &Rc<Schedule>,
    config: ClusterConfig,
    handlers: Option<&Handlers>,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished, Failure> {
    if let Some(cycle) = find_cycle(schedule) {
        return Err(Failure::Cycle(cycle));
    }
    if handlers.is_some() {
        check_lengths(schedule)?;
    }
    let config = ClusterConfig { nodes: schedule.ranks(), ..config };
    let breakdown = config.breakdown;
    let mut cluster = Cluster::new(config)?;
    let ended = Rc::new(Cell::new(0));
    let mut ranks = Vec::with_capacity(schedule.ranks() as usize);
    for rank in 0..schedule.ranks() {
        let running = Running::new(schedule.clone(), cluster.host(rank), ended.clone())?;
        if let Some(handlers) = handlers {
            let messages = CardMessages::set_up(cluster.host(rank), handlers, &running.out);
            let messages = messages.map_err(|error| error.inside(&format!("rank {rank}")))?;
            assert!(running.card.set(messages).is_ok(), "a rank is set up once");
        }
        ranks.push(running.clone());
        cluster.program(rank, |host| running.run(host));
    }
    let outcome = cluster.run_while(&mut || go_on(ended.get()));
    let events = match outcome {
        Ok(run) => {
            let left = left::left(schedule, &ranks);
            left.map_or(Ok(run.events), |stuck| {
                Err(dropped(&ranks).unwrap_or(Failure::Stuck(stuck, String::new())))
            })?
        }
        Err(Error::Deadlock(text)) => {
            if let Some(failure) = dropped(&ranks) {
                return Err(failure);
            }
            let stuck = left::left(schedule, &ranks).ok_or_else(|| Error::Deadlock(text.clone()))?;
            return Err(Failure::Stuck(stuck, left::notes(&text)));
        }
        Err(error) => return Err(error.into()),
    };
    Ok(finished(schedule, &ranks, events, breakdown)?)
}

/// The first message of any rank that its card has dropped.
fn dropped(ranks: &[Rc<Running>]) -> Option<Failure> {
    let own = |rank: &Rc<Running>| {
        let error = rank.card.get()?.dropped()?;
        Some(Failure::Run(error.inside(&format!("rank {}", rank.rank))))
    };
    ranks.iter().find_map(own)
}

/// Checks that handlers can count the bytes of every message.
fn check_lengths(schedule: &Schedule) -> Result<(), Error> {
    for (rank, own) in (0..).zip(schedule.iter()) {
        let long = (0..).zip(own.ops).find(|(_, op)| op.kind == Kind::Send && op.size > LONGEST);
        if let Some((number, op)) = long {
            return Err(Error::Input(format!(
                "rank {rank}: {}: handlers on cards count bytes in 32 bits, {LONGEST} at most",
                named(number, op)
            )));
        }
    }
    Ok(())
}

fn finished(
    schedule: &Schedule,
    ranks: &[Rc<Running>],
    events: u64,
    breakdown: bool,
) -> Result<Finished, Error> {
    let mut spans = Spans::default();
    ranks.iter().for_each(|rank| spans.extend(&rank.spans.borrow()));
    taken::note(schedule, ranks, &mut spans)?;
    let paths: Vec<Path> = ranks.iter().filter_map(|rank| rank.path.borrow().clone()).collect();
    let finish_ps: Vec<u64> = ranks.iter().map(|rank| rank.finish_ps()).collect();
    let last = finish_ps.iter().copied().max().unwrap_or(0);
    let last = finish_ps.iter().position(|ps| *ps == last).unwrap_or(0);
    let of = |path: &Path| path.stages().map(|(stage, took)| (stage, took.ps())).collect();
    let sends = ranks.iter().map(|rank| rank.sends()).sum();
    let counts = Counts {
        operations: ranks.iter().map(|rank| rank.operations()).sum(),
        messages: sends,
        steps: events,
    };
    Ok(Finished { finish_ps, counts, spans, stages: paths.get(last).filter(|_| breakdown).map(of) })
}
