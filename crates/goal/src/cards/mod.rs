//! Runs schedules on modelled cards. The cards of sender and receiver execute every message, packet by packet over a network.
//!
//! - `rank.rs`: a rank. Its operations begin when their dependencies are met, as `send`, `recv` and `compute` of a host's
//!   program.
//! - `offload.rs`: messages that handlers on the cards execute.
//! - `left.rs`: operations that could not end, and messages that were not received.
//! - `taken.rs`: the send that each receive matched.
//!
//! A rank is a host. A calculation occupies its CPU in the schedule, and a core of the host. A CPU runs one calculation at a
//! time. Sends and receives begin as soon as their CPU does not compute, and do not delay each other. The card and its library
//! determine their cost. They also determine whether a message is eager or waits for its receive. Messages have a length but no
//! bytes, so large messages take no memory.

mod left;
mod offload;
mod rank;
mod taken;

use crate::check::{Cycle, find_cycle, named};
use crate::loggops::{Counts, Stuck};
use crate::schedule::{Kind, Schedule};
use crate::spans::Spans;
use nicety::{Cluster, ClusterConfig, Error, Handlers, Pairs, Spread, in_parts};
use nicety_types::Stage;
use offload::{LONGEST, OnCard};
use rank::{Running, State};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The end of each rank's last operation, in picoseconds.
    pub finish_ps: Vec<u64>,
    /// The counts of the run. A step is an event of the simulation.
    pub counts: Counts,
    /// Start and end of each operation.
    pub spans: Spans,
    /// The critical path to the end of the last rank, in picoseconds per stage. If several ranks end last, it is the path of the
    /// first of them. Present if the configuration requests paths by stage.
    pub stages: Option<Vec<(Stage, u64)>>,
}

/// The reason why a run failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// Operations depend on each other in a cycle.
    Cycle(Cycle),
    /// Messages or receives are left. The text has notes about the network.
    Stuck(Stuck, String),
    /// The configuration is invalid, or the run failed.
    Run(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Run(error)
    }
}

/// Runs a schedule on a cluster with one host for each rank, in `threads` threads. The result does not depend on the number of
/// threads. `go_on` is called regularly with the number of ended operations; if it returns false, the run ends.
///
/// # Errors
/// When the schedule cannot finish, the cluster cannot be built, a limit of a card is reached, or the network lost messages.
pub fn run(
    schedule: &Arc<Schedule>,
    config: ClusterConfig,
    threads: u32,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished, Failure> {
    run_by(schedule, config, None, &Spread::threads(threads as usize), go_on)
}

/// Runs a schedule on a cluster, divided over threads or processes. If `handlers` are given (those of `matching.c`), they execute
/// the messages on the cards. Otherwise the message library of the card's design executes them on the hosts.
///
/// # Errors
/// As [`run`]; also when the cards cannot run handlers, or a message is longer than handlers can count.
pub fn run_by(
    schedule: &Arc<Schedule>,
    config: ClusterConfig,
    handlers: Option<&Handlers>,
    spread: &Spread,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished, Failure> {
    if let Some(cycle) = find_cycle(schedule) {
        return Err(Failure::Cycle(cycle));
    }
    if handlers.is_some() {
        check_lengths(schedule)?;
    }
    let config = ClusterConfig { nodes: schedule.ranks(), ..config };
    let parts =
        in_parts(&config, spread, go_on, |cluster, tell| run_part(schedule, cluster, handlers, tell))?;
    let (mut events, mut ended, mut states) = (0, Ok(()), Vec::with_capacity(schedule.ranks() as usize));
    for part in parts {
        match part.outcome {
            Ok(more) => events += more,
            Err(notes) => ended = Err(notes),
        }
        states.extend(part.states);
    }
    let left = left::left(schedule, &states);
    if (left.is_some() || ended.is_err())
        && let Some(dropped) = states.iter_mut().find_map(|state| state.dropped.take())
    {
        return Err(Failure::Run(Error::Program(dropped)));
    }
    match (left, ended) {
        (None, Ok(())) => Ok(finished(schedule, states, events, config.breakdown)?),
        (Some(stuck), Ok(())) => Err(Failure::Stuck(stuck, String::new())),
        (Some(stuck), Err(text)) => Err(Failure::Stuck(stuck, left::notes(&text))),
        (None, Err(text)) => Err(Failure::Run(Error::Deadlock(text))),
    }
}

/// The results of the ranks in one part of a cluster, in order.
#[derive(Serialize, Deserialize)]
struct Part {
    /// The number of events; for a deadlock of the whole cluster, its text.
    outcome: Result<u64, String>,
    states: Vec<State>,
}

/// Runs the ranks that have a host in this part.
fn run_part(
    schedule: &Arc<Schedule>,
    cluster: &mut Cluster,
    handlers: Option<&Handlers>,
    tell: &mut dyn FnMut(u64) -> bool,
) -> Result<Part, Error> {
    let ended = Rc::new(Cell::new(0));
    let here: Vec<u32> = (0..schedule.ranks()).filter(|rank| cluster.runs(*rank)).collect();
    let mut ranks = Vec::with_capacity(here.len());
    for rank in here {
        if handlers.is_none() {
            // As in MPI, a rank may post any number of receives.
            cluster.host(rank).match_in_library(Pairs::ONE)?;
        }
        let running = Running::new(schedule.clone(), cluster.host(rank), ended.clone())?;
        if let Some(handlers) = handlers {
            let messages = OnCard::set_up(cluster.host(rank), handlers, &running.out);
            let messages = messages.map_err(|error| error.inside(&format!("rank {rank}")))?;
            assert!(running.card.set(messages).is_ok(), "a rank is set up once");
        }
        ranks.push(running.clone());
        cluster.program(rank, |host| running.run(host));
    }
    let outcome = match cluster.run_while(&mut || tell(ended.get())) {
        Ok(run) => Ok(run.events),
        Err(Error::Deadlock(text)) if cluster.is_whole() => Err(text),
        Err(error) => return Err(error),
    };
    Ok(Part { outcome, states: ranks.iter().map(|rank| rank.state()).collect() })
}

/// Checks that handlers can count the bytes of every message.
fn check_lengths(schedule: &Schedule) -> Result<(), Error> {
    for (rank, own) in (0..).zip(schedule.iter()) {
        let long = (0..).zip(own.ops).find(|(_, op)| op.kind == Kind::Send && op.size > LONGEST);
        if let Some((number, op)) = long {
            return Err(Error::Input(format!(
                "rank {rank}: {}: handlers on cards count bytes in 32 bits; the maximum is {LONGEST}",
                named(number, op)
            )));
        }
    }
    Ok(())
}

fn finished(
    schedule: &Schedule,
    mut states: Vec<State>,
    events: u64,
    breakdown: bool,
) -> Result<Finished, Error> {
    let mut spans = Spans::default();
    states.iter().for_each(|state| spans.extend(&state.spans));
    taken::note(schedule, &states, &mut spans)?;
    let finish_ps: Vec<u64> = states.iter().map(State::finish_ps).collect();
    let last = finish_ps.iter().copied().max().unwrap_or(0);
    let last = finish_ps.iter().position(|ps| *ps == last).unwrap_or(0);
    let path = states.get_mut(last).and_then(|state| state.path.take()).filter(|_| breakdown);
    let counts = Counts {
        operations: schedule.ops().len() as u64,
        messages: schedule.ops().iter().filter(|op| op.kind == Kind::Send).count() as u64,
        steps: events,
    };
    let stages = path.map(|path| path.stages().map(|(stage, took)| (stage, took.ps())).collect());
    Ok(Finished { finish_ps, counts, spans, stages })
}
