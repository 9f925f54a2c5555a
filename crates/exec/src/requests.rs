//! Requests and reports, as JSON.

use crate::launcher::Launcher;
use nicety::Error;
use nicety::options::NetworkOptions;
use nicety_goal::requests::{Manifest, Ns, OnCards};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    pub network: NetworkOptions,
    /// The cards' options.
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

/// The offload counts of one process.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ExecRankOffload")]
pub struct RankOffload {
    /// The part of MPI_Init that put handlers and match entries on the card, and agreed with all ranks.
    pub set_up_ns: Ns,
    /// Collective calls that the cards executed.
    pub offloaded_calls: u64,
    /// Collective calls that were left to MPI.
    pub fallback_calls: u64,
}

/// The disposition of the calls of a collective operation, over all processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ExecOffloaded")]
pub struct Offloaded {
    /// The operation.
    pub name: &'static str,
    /// Calls that the cards executed.
    pub offloaded_calls: u64,
    /// Bytes of their buffers.
    pub offloaded_bytes: u64,
    /// Calls that were left to MPI.
    pub fallback_calls: u64,
    /// The reasons.
    pub fallbacks: Vec<Fallback>,
}

/// Calls that were left to MPI for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ExecFallback")]
pub struct Fallback {
    /// communicator: not of all ranks in their order. datatype, operator: not one that handlers reduce. length: longer than the card's
    /// memory for it. empty: no bytes. arguments: invalid. alone: one process. set-up: the card had no room, or MPI was not started by
    /// MPI_Init. cost: MPI is faster, by a trial before the run.
    pub reason: &'static str,
    /// The calls.
    pub calls: u64,
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
