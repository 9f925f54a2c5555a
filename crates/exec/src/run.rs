//! Runs a program: starts its processes and their hosts, and makes the report.

use crate::launch::{self, Processes};
use crate::offload::Offload;
use crate::pages::{Pages, Timing};
use crate::places::Places;
use crate::requests::{Goal, Rank, Report, Request};
use crate::schedule::Log;
use crate::spent::Part;
use crate::turns::Turns;
use crate::{notes, rank, rma};
use nicety::record::{Level, Recording};
use nicety::{Cluster, Duration, Environment, Error, VERSION};
use nicety_goal::file::{self, Format};
use nicety_goal::requests::Ns;
use std::path::Path;
use std::rc::Rc;

/// The signal that ended a process, and its exit status if that is not 0.
type ProcessEnd = (Option<i32>, Option<i32>);

/// Maximum processes of a program.
const MOST_RANKS: u32 = 1024;

/// Runs a program. `recorded` gets the recording of the run: the activities of hosts and network, with their virtual times.
/// `said` gets the launcher's output about the end of processes. It is called at most once.
///
/// # Errors
/// When an option is invalid. When the program cannot be started, never uses the network, or ends early. When its processes wait
/// for each other.
pub fn run(
    request: &Request,
    environment: &Environment<'_>,
    recorded: Option<&dyn Fn(Recording)>,
    said: &dyn Fn(String),
) -> Result<Report, Error> {
    let places = places(request)?;
    let (poll, timing) = timing(request, places)?;
    let named = [request.nic.clone()];
    let loaded = nicety::cards::load_distinct(&named, &request.cards.overrides, "spin-discrete")?;
    let (nic, card) = &loaded[0];
    let offload = Offload::of(request, (nic, card), environment)?;
    let mut config =
        request.cards.config(&request.network, places.hosts(request.ranks), (nic, card), environment)?;
    config.breakdown = false;
    if recorded.is_some() {
        config.recording = Level::Everything;
    }
    let manifest = request.cards.manifest(&request.network, &loaded, config.topology, &[]);
    let mut cluster = Cluster::new(config)?;
    let pages = Pages::new(request.ranks, &timing, rma::abilities(cluster.host(0), places.are_shared()))?;
    let program = launch::Program {
        launcher: request.launcher,
        mpiexec: &request.mpiexec,
        command: &request.program,
        folder: Path::new(&request.folder),
        to_stderr: request.to_stderr,
        offload: offload.as_ref(),
    };
    let processes = Processes::start(&program, &pages)?;
    let log = request.goal.as_ref().map(|_| Rc::new(Log::new(request.ranks)));
    let turns = Rc::new(Turns::new(pages, processes, request.patience, environment.interrupt.clone()));
    let programs = programs(&mut cluster, request.ranks, (&turns, places), poll, log.as_ref());
    let outcome = cluster.run_with(&mut || turns.idle());
    // If the card could not access memory of a process, that explains why the process waits later.
    let reached: Vec<_> = programs.iter().map(|program| program.over()).collect();
    let outcome = reached.into_iter().collect::<Result<(), Error>>().and(outcome);
    let (run, status, ends) = end(&turns, (request, places), outcome, said)?;
    if let Some(recorded) = recorded {
        recorded(run.recording);
    }
    let goal = match (&request.goal, log) {
        (Some(file), Some(log)) => Some(write(file, &log, environment)?),
        _ => None,
    };
    let offloaded: Vec<_> = (0..request.ranks).map(|rank| turns.pages.offload(rank)).collect();
    let ranks: Vec<_> = (0..)
        .zip(&programs)
        .map(|(rank, program)| Rank {
            signal: ends[rank as usize].0,
            status: ends[rank as usize].1,
            offload: offload.as_ref().map(|_| offloaded[rank as usize].of_rank()),
            ..Rank::of(rank, &program.counts())
        })
        .collect();
    let finish = programs.iter().map(|program| program.counts().finish.ps()).max();
    Ok(Report {
        version: VERSION,
        program: request.program.clone(),
        nic: nic.clone(),
        manifest,
        compute: request.compute.clone(),
        launcher: request.launcher,
        ranks_per_node: request.ranks_per_node,
        status,
        max_finish_ns: ns(finish.unwrap_or_default()),
        ranks,
        offload: offload.map(|offload| offload.report(&offloaded)),
        goal,
    })
}

/// Returns the placement of a program's processes on hosts.
fn places(request: &Request) -> Result<Places, Error> {
    if !(1..=MOST_RANKS).contains(&request.ranks) {
        return Err(Error::Input(format!(
            "a program has 1 to {MOST_RANKS} processes, not {}",
            request.ranks
        )));
    }
    Places::new(request.ranks, request.ranks_per_node)
}

/// Starts the program of each rank on its host.
fn programs(
    cluster: &mut Cluster,
    ranks: u32,
    (turns, places): (&Rc<Turns>, Places),
    poll: Duration,
    log: Option<&Rc<Log>>,
) -> Vec<Rc<rank::Program>> {
    let start = |rank| {
        let mut made = None;
        cluster.process(places.host(rank), &format!("rank {rank}"), |host| {
            let program = rank::Program::new(&host, (turns, places), poll, log.cloned());
            made = Some(program.clone());
            program.run()
        });
        made.expect("all hosts run here")
    };
    (0..ranks).map(start).collect()
}

/// Returns the cost of a look, and the parameters that processes need.
fn timing(request: &Request, places: Places) -> Result<(Duration, Timing), Error> {
    let poll = time("poll_cost", &request.poll_cost)?;
    if poll.is_zero() {
        return Err(Error::Input(
            "poll_cost: virtual time would stand still if a look took no time; give 1ps or more".to_owned(),
        ));
    }
    let timing = Timing {
        measured: request.scale()?,
        clock_cost_ps: time("clock_cost", &request.clock_cost)?.ps(),
        look_cost_ps: poll.ps(),
        tag_bits: places.tag_bits(),
        launcher: request.launcher,
    };
    Ok((poll, timing))
}

/// Ends the processes of a run. Returns the run's outcome, the exit status, and for each process the signal that ended it, or its
/// exit status if that is not 0.
fn end<R>(
    turns: &Turns,
    (request, places): (&Request, Places),
    outcome: Result<R, Error>,
    said: &dyn Fn(String),
) -> Result<(R, i32, Vec<ProcessEnd>), Error> {
    let status = match &outcome {
        Ok(_) => turns.status(),
        Err(_) => Ok(0),
    };
    let ends = (0..request.ranks).map(|rank| (turns.signal_of(rank), turns.failure_of(rank))).collect();
    let is_asked = turns.processes.stop(&turns.pages);
    let words = turns.processes.finish();
    if !words.is_empty() && !is_asked {
        said(words);
    }
    if outcome.is_err() || status != Ok(0) {
        turns.processes.clean(&turns.pages, request.launcher);
    }
    let run = outcome.map_err(|error| notes::explained(turns.explain(error), places))?;
    match turns.aborted() {
        Some(aborted) => Err(aborted),
        None => Ok((run, status?, ends)),
    }
}

const fn ns(ps: u64) -> Ns {
    Ns { ps }
}

impl Rank {
    /// Returns the report of a rank, from the rank's counts.
    fn of(rank: u32, own: &rank::Counts) -> Rank {
        let part = |part| ns(own.spent.of(part).ps());
        Rank {
            rank,
            finish_ns: ns(own.finish.ps()),
            sends: own.sends,
            sent_bytes: own.bytes,
            receives: own.receives,
            calls: own.calls,
            computing_ns: part(Part::Computes),
            sleeping_ns: part(Part::Sleeps),
            calling_ns: part(Part::Calls),
            polling_ns: part(Part::Looks),
            waiting_ns: part(Part::Waits),
            external_wait_ns: part(Part::Outside),
            signal: None,
            status: None,
            offload: None,
        }
    }
}

/// Writes the schedule of a program's operations.
fn write(file: &str, log: &Log, environment: &Environment<'_>) -> Result<Goal, Error> {
    let written = log.finish().ok_or_else(|| {
        Error::Program(format!(
            "{file}: a rank executed more operations than a schedule can have; run fewer iterations of the \
             program"
        ))
    })?;
    if written.schedule.ops().is_empty() {
        return Err(Error::Program(format!(
            "{file}: the schedule is empty; it records operations of MPI and libfabric, but not of Portals \
             or channels"
        )));
    }
    let path = Path::new(file);
    let format = Format::of_name(path).unwrap_or(Format::Text);
    file::write(&written.schedule, path, format, environment.interrupt.as_deref())?;
    let operations = written.schedule.ops().len() as u64;
    Ok(Goal {
        file: file.to_owned(),
        operations,
        unmatched_messages: written.unreceived,
        accesses: written.accesses,
    })
}

impl Request {
    /// Returns the factor from CPU time to virtual time; `None` if CPU time costs nothing.
    fn scale(&self) -> Result<Option<f64>, Error> {
        match self.compute.as_str() {
            "none" => Ok(None),
            "measured" => Ok(Some(1.0)),
            factor => match factor.parse::<f64>() {
                Ok(scale) if scale.is_finite() && scale > 0.0 => Ok(Some(scale)),
                _ => Err(Error::Input(format!(
                    "compute {factor:?}: write none, measured, or a factor for the measured time, such as \
                     0.5"
                ))),
            },
        }
    }
}

fn time(what: &str, text: &str) -> Result<Duration, Error> {
    nicety_spec::units::parse_time(text).map_err(|error| Error::Input(format!("{what} {text:?}: {error}")))
}
