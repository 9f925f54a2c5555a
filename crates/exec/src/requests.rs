//! Requests and reports, as JSON.

use crate::offload::{Offloaded, RankOffload};
use nicety::record::{Level, Recording};
use nicety::{Environment, Error, VERSION};
#[cfg(target_os = "linux")]
use nicety_goal::file::Format;
use nicety_goal::requests::{Manifest, Ns, OnCards};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The launcher of a program's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Launcher {
    /// By the mpiexec of MPICH.
    Mpich,
    /// By the mpiexec of Open MPI.
    Openmpi,
    /// One by one, without MPI.
    None,
}

/// Run a program on simulated hosts, with one host for each process.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExecOptions")]
pub struct Request {
    /// The program, and its arguments.
    #[schemars(extend("format" = "derived"))]
    pub program: Vec<String>,
    /// Processes of the program.
    #[serde(default = "one")]
    #[schemars(extend("format" = "derived"))]
    pub ranks: u32,
    /// Processes on each host: they share its card, its bus and its CPUs.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 8), extend("metavar" = "K"))]
    pub ranks_per_node: u32,
    /// The card of all hosts, by name or spec file.
    #[schemars(extend("metavar" = "NIC", "format" = "path"))]
    pub nic: String,
    /// The hosts' network.
    #[serde(flatten)]
    pub cards: OnCards,
    /// The launcher of the processes.
    #[schemars(extend("format" = "derived"))]
    pub launcher: Launcher,
    /// The launcher's program.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub mpiexec: String,
    /// The cost of a process's CPU time: none; measured, as it is; or a factor of that.
    #[serde(default = "none")]
    #[schemars(extend("metavar" = "none|measured|SCALE"))]
    pub compute: String,
    /// The cost of reading a clock.
    #[serde(default = "clock_cost")]
    #[schemars(extend("metavar" = "TIME"))]
    pub clock_cost: String,
    /// The cost of a look at an empty completion queue.
    #[serde(default = "clock_cost")]
    #[schemars(extend("metavar" = "TIME"))]
    pub poll_cost: String,
    /// Looks at empty queues by all processes, with no other event between, after which the processes count as waiting for each other.
    #[serde(default = "patience")]
    #[schemars(range(min = 1))]
    pub patience: u64,
    /// A file for a schedule of what the program did, `.bin` for the binary format.
    #[serde(default)]
    #[schemars(extend("metavar" = "FILE", "format" = "path"))]
    pub goal: Option<String>,
    /// Collective operations of MPI that cards execute by handlers: bcast, barrier, allreduce (where MPI is not faster), or
    /// allreduce=always.
    #[serde(default)]
    #[schemars(extend("metavar" = "NAMES", "example" = "bcast,barrier"))]
    pub offload: Option<Vec<String>>,
    /// The compiled handlers for these operations.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub offload_program: String,
    /// Whether the output of processes goes to the standard error stream.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub to_stderr: bool,
    /// A folder for the libraries that are loaded into processes.
    #[schemars(extend("format" = "derived"))]
    pub folder: String,
}

/// The most processes of a program.
const MOST_RANKS: u32 = 1024;

const fn one() -> u32 {
    1
}

fn none() -> String {
    "none".to_owned()
}

/// Some seconds.
const fn patience() -> u64 {
    100_000
}

fn clock_cost() -> String {
    "25ns".to_owned()
}

/// The report of a run of a program.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ExecReport")]
pub struct Report {
    /// The version of nicety.
    pub version: &'static str,
    /// The program, and its arguments.
    pub program: Vec<String>,
    /// The card of all hosts.
    pub nic: String,
    /// The inputs that reproduce the run.
    pub manifest: Manifest,
    /// The cost of a process's CPU time.
    pub compute: String,
    /// The launcher of the processes.
    pub launcher: Launcher,
    /// Processes on each host.
    pub ranks_per_node: u32,
    /// The exit status of the program or its launcher: among several, the first that is not 0.
    pub status: i32,
    /// The processes, by rank.
    pub ranks: Vec<Rank>,
    /// The time at which the last process closed the network.
    pub max_finish_ns: Ns,
    /// The dispositions of the calls of offloaded collective operations, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<Vec<Offloaded>>,
    /// The schedule that was written of the program, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
}

/// A schedule of a program's operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ExecGoal")]
pub struct Goal {
    /// The file.
    pub file: String,
    /// Operations of all ranks.
    pub operations: u64,
    /// Messages without a receive at the end, which are omitted.
    pub unmatched_messages: u64,
    /// Accesses to registered memory, which a schedule cannot have.
    pub accesses: u64,
}

/// The report of one process.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ExecRank")]
pub struct Rank {
    /// Its rank.
    pub rank: u32,
    /// The time at which it closed the network.
    pub finish_ns: Ns,
    /// Messages that it sent, and its accesses to registered memory.
    pub sends: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Messages that it received.
    pub receives: u64,
    /// Its network calls, including polls.
    pub calls: u64,
    /// Its time between calls, until it closed the network: measured CPU time, and the cost of clocks.
    pub computing_ns: Ns,
    /// Its time asleep.
    pub sleeping_ns: Ns,
    /// Its time in calls, except looks at queues and waits.
    pub calling_ns: Ns,
    /// Its time in looks at queues.
    pub polling_ns: Ns,
    /// Its time in waits for the network.
    pub waiting_ns: Ns,
    /// Its time in waits outside the simulation.
    pub external_wait_ns: Ns,
    /// The signal that ended its process after it had closed the network, if any is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Its offload counts, if operations were offloaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<RankOffload>,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// The text is no request.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the request of a program")
    }
}

/// Returns the JSON schemas of the report and of the request by name, each after the schemas that it uses.
pub fn schemas() -> Vec<(String, serde_json::Value)> {
    use schemars::generate::SchemaSettings;
    let mut reports = SchemaSettings::draft2020_12().for_serialize().into_generator();
    reports.subschema_for::<Report>();
    let mut asked = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    asked.subschema_for::<Request>();
    let mut made: Vec<_> = reports.take_definitions(true).into_iter().collect();
    for (name, schema) in asked.take_definitions(true) {
        if made.iter().all(|(other, _)| *other != name) {
            made.push((name, schema));
        }
    }
    made
}

/// Runs a program. `recorded` gets the activities of hosts and network, with their times. `said` gets the launcher's output about the end
/// of processes, and is called at most once.
///
/// # Errors
/// An option is invalid; the program cannot be started, never uses the network, or ends early; its processes wait for each other.
#[cfg(not(target_os = "linux"))]
pub fn run(
    _: &Request,
    _: &Environment<'_>,
    _: Option<&dyn Fn(Recording)>,
    _: &dyn Fn(String),
) -> Result<Report, Error> {
    Err(Error::Input("programs run on simulated hosts under Linux alone".to_owned()))
}

/// Runs a program. `recorded` gets the activities of hosts and network, with their times. `said` gets the launcher's output about the end
/// of processes, and is called at most once.
///
/// # Errors
/// An option is invalid; the program cannot be started, never uses the network, or ends early; its processes wait for each other.
#[cfg(target_os = "linux")]
pub fn run(
    request: &Request,
    environment: &Environment<'_>,
    recorded: Option<&dyn Fn(Recording)>,
    said: &dyn Fn(String),
) -> Result<Report, Error> {
    use crate::launch::{Processes, Program};
    use crate::offload::Offload;
    use crate::pages::{Pages, Timing};
    use crate::places::Places;
    use crate::schedule::Log;
    use crate::spent::Part;
    use crate::turns::Turns;
    use std::rc::Rc;

    if !(1..=MOST_RANKS).contains(&request.ranks) {
        return Err(Error::Input(format!(
            "a program has 1 to {MOST_RANKS} processes, not {}",
            request.ranks
        )));
    }
    let places = Places::new(request.ranks, request.ranks_per_node)?;
    let poll = time("poll_cost", &request.poll_cost)?;
    if poll.is_zero() {
        return Err(Error::Input(
            "poll_cost: a look takes time, or time never goes on; give 1ps or more".to_owned(),
        ));
    }
    let timing = Timing {
        measured: request.scale()?,
        clock_cost_ps: time("clock_cost", &request.clock_cost)?.ps(),
        look_cost_ps: poll.ps(),
        tag_bits: places.tag_bits(),
        launcher: request.launcher,
    };
    let named = [request.nic.clone()];
    let loaded = nicety::cards::load_distinct(&named, &request.cards.overrides, "spin-discrete")?;
    let (nic, card) = &loaded[0];
    let offload = Offload::of(request, (nic, card), environment)?;
    let mut config = request.cards.config(places.hosts(request.ranks), (nic, card), environment)?;
    config.breakdown = false;
    if recorded.is_some() {
        config.recording = Level::Everything;
    }
    let manifest = request.cards.manifest(&loaded, config.topology, &[]);
    let mut cluster = nicety::Cluster::new(config)?;
    let pages =
        Pages::new(request.ranks, &timing, crate::rma::abilities(cluster.host(0), places.are_shared()))?;
    let program = Program {
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
    let programs: Vec<_> = (0..request.ranks)
        .map(|rank| {
            let mut made = None;
            cluster.process(places.host(rank), &format!("rank {rank}"), |host| {
                let program = crate::rank::Program::new(&host, (&turns, places), poll, log.clone());
                made = Some(program.clone());
                program.run()
            });
            made.expect("all hosts run here")
        })
        .collect();
    let outcome = cluster.run_with(&mut || turns.idle());
    // Memory that a card could not reach explains the later wait of its process.
    let reached: Vec<_> = programs.iter().map(|program| program.over()).collect();
    let outcome = reached.into_iter().collect::<Result<(), Error>>().and(outcome);
    let status = match &outcome {
        Ok(_) => turns.status(),
        Err(_) => Ok(0),
    };
    let signals: Vec<_> = (0..request.ranks).map(|rank| turns.signal_of(rank)).collect();
    let is_asked = turns.processes.stop(&turns.pages);
    let words = turns.processes.finish();
    if !words.is_empty() && !is_asked {
        said(words);
    }
    if outcome.is_err() || status != Ok(0) {
        turns.processes.clean(&turns.pages, request.launcher);
    }
    let run = outcome.map_err(|error| crate::notes::explained(turns.explain(error), places))?;
    if let Some(aborted) = turns.aborted() {
        return Err(aborted);
    }
    let status = status?;
    if let Some(recorded) = recorded {
        recorded(run.recording);
    }
    let goal = match (&request.goal, log) {
        (Some(file), Some(log)) => Some(write(file, &log, environment)?),
        _ => None,
    };
    let counts: Vec<_> = programs.iter().map(|program| program.counts()).collect();
    let offloaded: Vec<_> = (0..request.ranks).map(|rank| turns.pages.offload(rank)).collect();
    let finish_ps = |finish: nicety::Time| Ns { ps: finish.ps() };
    let part = |own: &crate::rank::Counts, part| Ns { ps: own.spent.of(part).ps() };
    Ok(Report {
        version: VERSION,
        program: request.program.clone(),
        nic: nic.clone(),
        manifest,
        compute: request.compute.clone(),
        launcher: request.launcher,
        ranks_per_node: request.ranks_per_node,
        status,
        max_finish_ns: finish_ps(counts.iter().map(|own| own.finish).max().unwrap_or_default()),
        ranks: (0..)
            .zip(&counts)
            .map(|(rank, own)| Rank {
                rank,
                finish_ns: finish_ps(own.finish),
                sends: own.sends,
                sent_bytes: own.bytes,
                receives: own.receives,
                calls: own.calls,
                computing_ns: part(own, Part::Computes),
                sleeping_ns: part(own, Part::Sleeps),
                calling_ns: part(own, Part::Calls),
                polling_ns: part(own, Part::Looks),
                waiting_ns: part(own, Part::Waits),
                external_wait_ns: part(own, Part::Outside),
                signal: signals[rank as usize],
                offload: offload.as_ref().map(|_| offloaded[rank as usize].of_rank()),
            })
            .collect(),
        offload: offload.map(|offload| offload.report(&offloaded)),
        goal,
    })
}

/// Writes the schedule of a program's operations.
#[cfg(target_os = "linux")]
fn write(file: &str, log: &crate::schedule::Log, environment: &Environment<'_>) -> Result<Goal, Error> {
    let written = log.finish().ok_or_else(|| {
        Error::Program(format!(
            "{file}: a rank did more than a schedule can have; run fewer iterations of the program"
        ))
    })?;
    if written.schedule.ops().is_empty() {
        return Err(Error::Program(format!(
            "{file}: there is nothing to write; a schedule is of what a program does by MPI or libfabric, and not by Portals \
             or channels"
        )));
    }
    let path = Path::new(file);
    let format = Format::of_name(path).unwrap_or(Format::Text);
    nicety_goal::file::write(&written.schedule, path, format, environment.interrupt.as_deref())?;
    let operations = written.schedule.ops().len() as u64;
    Ok(Goal {
        file: file.to_owned(),
        operations,
        unmatched_messages: written.unreceived,
        accesses: written.accesses,
    })
}

#[cfg(target_os = "linux")]
impl Request {
    /// Returns the factor of CPU time; `None` if it costs nothing.
    fn scale(&self) -> Result<Option<f64>, Error> {
        match self.compute.as_str() {
            "none" => Ok(None),
            "measured" => Ok(Some(1.0)),
            factor => match factor.parse::<f64>() {
                Ok(scale) if scale.is_finite() && scale > 0.0 => Ok(Some(scale)),
                _ => Err(Error::Input(format!(
                    "compute {factor:?}: it is none, measured, or a factor of what is measured, such as 0.5"
                ))),
            },
        }
    }
}

#[cfg(target_os = "linux")]
fn time(what: &str, text: &str) -> Result<nicety::Duration, Error> {
    nicety_spec::units::parse_time(text).map_err(|error| Error::Input(format!("{what} {text:?}: {error}")))
}
