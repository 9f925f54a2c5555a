//! `nicety goal run`: what a schedule takes.

use super::{goes_on, tell};
use crate::file;
use crate::loggops::{self, Failure, Parameters, Rules};
use crate::schedule::Schedule;
use crate::text::DuplicateLabels;
use nicety::{Environment, Error, VERSION};
use nicety_spec::units::{parse_gap, parse_time};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// The network of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "GoalNetwork")]
pub enum Network {
    /// A message costs by its size alone.
    #[default]
    Loggops,
}

/// A simulator whose results are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compat {
    /// LogGOPSim of the Scalable Parallel Computing Laboratory.
    Loggopsim,
}

/// Run a schedule, and say when each host is done.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ScheduleOptions")]
pub struct Request {
    /// The schedule.
    #[schemars(extend("format" = "derived"))]
    pub file: String,
    /// The network: LogGOPS, whose parameters follow.
    #[serde(default)]
    #[schemars(extend("metavar" = "loggops"))]
    pub network: Network,
    /// L: the latency between hosts.
    #[serde(default = "latency")]
    #[schemars(extend("flag" = "--L", "metavar" = "TIME"))]
    pub latency: String,
    /// o: the overhead of a CPU for a message.
    #[serde(default = "overhead")]
    #[schemars(extend("flag" = "--o", "metavar" = "TIME"))]
    pub overhead: String,
    /// g: the gap between the starts of messages at an interface.
    #[serde(default = "gap")]
    #[schemars(extend("flag" = "--g", "metavar" = "TIME"))]
    pub gap: String,
    /// G: the gap for each byte behind a message's first, as a time or a bandwidth: 6ns, 400Gb/s.
    #[serde(default = "gap_per_byte")]
    #[schemars(extend("flag" = "--G", "metavar" = "GAP"))]
    pub gap_per_byte: String,
    /// O: the overhead for each byte behind a message's first.
    #[serde(default = "zero")]
    #[schemars(extend("flag" = "--O", "metavar" = "GAP"))]
    pub overhead_per_byte: String,
    /// S: the longest message that is sent at once, in bytes; the sender of a longer one waits for the receive.
    #[serde(default = "eager")]
    #[schemars(extend("flag" = "--S", "metavar" = "SIZE"))]
    pub eager_bytes: u64,
    /// The rules of LogGOPSim, oddities included, instead of nicety's own.
    #[serde(default)]
    #[schemars(extend("metavar" = "loggopsim"))]
    pub compat: Option<Compat>,
    /// Threads, of which each has a block of hosts; the result is the same.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MOST_THREADS))]
    pub threads: u32,
}

/// More threads than this are no gain on any machine.
const MOST_THREADS: u32 = 1024;

const fn one() -> u32 {
    1
}

fn latency() -> String {
    "2500ns".to_owned()
}

fn overhead() -> String {
    "1500ns".to_owned()
}

fn gap() -> String {
    "1000ns".to_owned()
}

fn gap_per_byte() -> String {
    "6ns".to_owned()
}

fn zero() -> String {
    "0".to_owned()
}

const fn eager() -> u64 {
    65_535
}

/// A time in nanoseconds, with as many digits behind the point as it has picoseconds: a whole number where it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ns {
    /// The time.
    pub ps: u64,
}

impl Serialize for Ns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.ps % 1000 {
            0 => serializer.serialize_u64(self.ps / 1000),
            _ => serializer.serialize_f64(self.ps as f64 / 1000.0),
        }
    }
}

impl JsonSchema for Ns {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Ns".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        f64::json_schema(generator)
    }
}

/// When the hosts of a schedule were done.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ScheduleReport")]
pub struct Report {
    /// The version of nicety.
    pub version: &'static str,
    /// The schedule.
    pub file: String,
    /// The network.
    pub network: Network,
    /// Its parameters, as given.
    pub parameters: Given,
    /// The simulator whose rules were followed, if not nicety's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<Compat>,
    /// Threads that it ran in: one by LogGOPSim's rules and without a latency.
    pub threads: u32,
    /// Ranks.
    pub ranks: u32,
    /// Operations that were executed, and messages that arrived, as LogGOPSim counts them.
    pub events: u64,
    /// Operations that were executed.
    pub operations: u64,
    /// Messages that arrived.
    pub messages: u64,
    /// Operations that never were: by LogGOPSim's rules those that wait for each other, or for the end of a send whose receive
    /// is of another class of size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexecuted: Option<u64>,
    /// The time at which each host's CPUs were done.
    pub finish_ns: Vec<Ns>,
    /// The latest of them.
    pub max_finish_ns: Ns,
    /// The first host that was done then.
    pub max_host: u32,
}

/// The parameters of a network, as given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "LogGopsParameters")]
pub struct Given {
    /// L: the latency.
    pub latency: String,
    /// o: the overhead.
    pub overhead: String,
    /// g: the gap.
    pub gap: String,
    /// G: the gap a byte.
    pub gap_per_byte: String,
    /// O: the overhead a byte.
    pub overhead_per_byte: String,
    /// S: the longest message that is sent at once.
    pub eager_bytes: u64,
}

/// Reads a parameter; 0 needs no unit.
pub(super) fn time<T, E: fmt::Display>(
    name: &str,
    text: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, Error> {
    let text = text.trim();
    let with_unit = if text == "0" { "0 ps" } else { text };
    parse(with_unit).map_err(|error| Error::Input(format!("{name}: {error}")))
}

/// Reads a gap a byte, which may be a time, of a byte, or a bandwidth.
fn a_byte(name: &str, text: &str) -> Result<nicety_types::Gap, Error> {
    time(name, text, |text| match text.contains('/') {
        true => parse_gap(text),
        false => parse_gap(&format!("{text}/B")).or_else(|_| parse_gap(text)),
    })
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// The text is none.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        serde_json::from_str(text).map_err(|error| Error::Input(error.to_string()))
    }

    /// The parameters.
    ///
    /// # Errors
    /// One of them is no time or gap.
    pub fn parameters(&self) -> Result<Parameters, Error> {
        Ok(Parameters {
            latency: time("latency (L)", &self.latency, parse_time)?,
            overhead: time("overhead (o)", &self.overhead, parse_time)?,
            gap: time("gap (g)", &self.gap, parse_time)?,
            gap_per_byte: a_byte("gap_per_byte (G)", &self.gap_per_byte)?,
            overhead_per_byte: a_byte("overhead_per_byte (O)", &self.overhead_per_byte)?,
            eager_bytes: self.eager_bytes,
        })
    }
}

/// Runs a schedule.
///
/// # Errors
/// The file is no schedule, or one that cannot finish; a parameter is none; the run was interrupted.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let parameters = request.parameters()?;
    let (rules, labels) = match request.compat {
        None => (Rules::Own, DuplicateLabels::Unique),
        Some(Compat::Loggopsim) => (Rules::LogGopSim, DuplicateLabels::LastWins),
    };
    let (schedule, _) = file::read(&request.file, labels, &mut |_, _| goes_on(environment))?;
    let total = schedule.ops().len() as u64;
    let threads = if loggops::has_threads(&parameters, rules) { request.threads } else { 1 };
    if threads == 0 || threads > MOST_THREADS {
        return Err(Error::Input(format!("threads are 1 to {MOST_THREADS}, not {threads}")));
    }
    let tell = &mut |done| tell(environment, done, total);
    let finished = loggops::run_in_threads(&schedule, &parameters, rules, threads, tell)
        .map_err(|failure| explained(failure, request, &schedule))?;
    let max_finish_ns = Ns { ps: finished.finish_ps.iter().copied().max().unwrap_or(0) };
    let max_host = finished.finish_ps.iter().position(|ps| *ps == max_finish_ns.ps).unwrap_or(0) as u32;
    let counts = finished.counts;
    Ok(Report {
        version: VERSION,
        file: request.file.clone(),
        network: request.network,
        parameters: Given {
            latency: request.latency.clone(),
            overhead: request.overhead.clone(),
            gap: request.gap.clone(),
            gap_per_byte: request.gap_per_byte.clone(),
            overhead_per_byte: request.overhead_per_byte.clone(),
            eager_bytes: request.eager_bytes,
        },
        compat: request.compat,
        threads: threads.min(schedule.ranks()),
        ranks: schedule.ranks(),
        events: counts.operations + counts.messages,
        operations: counts.operations,
        messages: counts.messages,
        unexecuted: (total > counts.operations).then(|| total - counts.operations),
        finish_ns: finished.finish_ps.into_iter().map(|ps| Ns { ps }).collect(),
        max_finish_ns,
        max_host,
    })
}

fn explained(failure: Failure, request: &Request, schedule: &Schedule) -> Error {
    let file = &request.file;
    match failure {
        Failure::NotWhole(name) => {
            Error::Input(format!("{}: LogGOPSim has whole nanoseconds only; leave compat out", name.0))
        }
        Failure::Cycle(cycle) => Error::Input(format!("{file}: {}", cycle.describe(schedule))),
        Failure::Stuck(stuck) => Error::Deadlock(format!("{file}: {}", stuck.describe(schedule))),
        Failure::Endless(rank, op) => {
            let named = crate::check::named(op, &schedule.rank(rank).ops[op as usize]);
            Error::Input(format!("{file}: rank {rank}: {named} ends after more than 2^64 ps, 213 days"))
        }
        Failure::Interrupted => Error::Interrupted,
    }
}
