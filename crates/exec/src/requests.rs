//! The request for a run of a program and the report of the run, as JSON.

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
    /// The program, followed by its arguments.
    #[schemars(extend("format" = "derived"))]
    pub program: Vec<String>,
    /// The number of processes of the program.
    #[serde(default = "one")]
    #[schemars(extend("format" = "derived"))]
    pub ranks: u32,
    /// The number of processes on each host. The processes of a host share its card, its bus and its CPUs.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 8), extend("metavar" = "K"))]
    pub ranks_per_node: u32,
    /// The card of all hosts: a name, or the path of a specification file.
    #[schemars(extend("metavar" = "NIC", "format" = "path"))]
    pub nic: String,
    /// The network between the hosts.
    #[serde(flatten)]
    pub network: NetworkOptions,
    /// Options of the cards.
    #[serde(flatten)]
    pub cards: OnCards,
    /// The launcher of the processes.
    #[schemars(extend("format" = "derived"))]
    pub launcher: Launcher,
    /// The program of the launcher.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub mpiexec: String,
    /// The virtual time that CPU time of a process costs: none, measured (as long as the CPU time), or a factor of the CPU time.
    #[serde(default = "none")]
    #[schemars(extend("metavar" = "none|measured|SCALE"))]
    pub compute: String,
    /// The virtual time of a read of a clock.
    #[serde(default = "clock_cost")]
    #[schemars(extend("metavar" = "TIME"))]
    pub clock_cost: String,
    /// The virtual time of a look at an empty completion queue.
    #[serde(default = "clock_cost")]
    #[schemars(extend("metavar" = "TIME"))]
    pub poll_cost: String,
    /// Number of looks at empty queues, summed over all processes, without another event. After more looks, the processes count
    /// as waiting for each other.
    #[serde(default = "patience")]
    #[schemars(range(min = 1))]
    pub patience: u64,
    /// A file for the schedule of the program's operations; with `.bin`, in the binary format.
    #[serde(default)]
    #[schemars(extend("metavar" = "FILE", "format" = "path"))]
    pub goal: Option<String>,
    /// Collective operations of MPI that cards execute by handlers: bcast, barrier, allreduce (unless MPI is faster), or
    /// allreduce=always.
    #[serde(default)]
    #[schemars(extend("metavar" = "NAMES", "example" = "bcast,barrier"))]
    pub offload: Option<Vec<String>>,
    /// The file of the compiled handlers for these operations.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub offload_program: String,
    /// Whether the output of the processes goes to standard error.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub to_stderr: bool,
    /// The folder for the libraries that are loaded into processes.
    #[schemars(extend("format" = "derived"))]
    pub folder: String,
}

const fn one() -> u32 {
    1
}

fn none() -> String {
    "none".to_owned()
}

/// These looks take some seconds of real time.
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
    /// The program, followed by its arguments.
    pub program: Vec<String>,
    /// The card of all hosts.
    pub nic: String,
    /// The inputs that reproduce the run.
    pub manifest: Manifest,
    /// The virtual time that CPU time of a process costs.
    pub compute: String,
    /// The launcher of the processes.
    pub launcher: Launcher,
    /// The number of processes on each host.
    pub ranks_per_node: u32,
    /// The exit status of the program or its launcher. If there are several, it is the first status that is not 0.
    pub status: i32,
    /// The processes, by rank.
    pub ranks: Vec<Rank>,
    /// The virtual time at which the last process closed the network.
    pub max_finish_ns: Ns,
    /// The dispositions of calls of collective operations, if cards execute some operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<Vec<Offloaded>>,
    /// The schedule of the program's operations, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
}

/// A schedule of a program's operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ExecGoal")]
pub struct Goal {
    /// The file.
    pub file: String,
    /// The number of operations of all ranks.
    pub operations: u64,
    /// Messages that were never received. The schedule does not have them.
    pub unmatched_messages: u64,
    /// Accesses to registered memory. A schedule cannot have them.
    pub accesses: u64,
}

/// The report of one process.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ExecRank")]
pub struct Rank {
    /// The rank of the process.
    pub rank: u32,
    /// The virtual time at which the process closed the network.
    pub finish_ns: Ns,
    /// Messages that the process sent, and its accesses to registered memory.
    pub sends: u64,
    /// Bytes of these messages and accesses.
    pub sent_bytes: u64,
    /// Messages that the process received.
    pub receives: u64,
    /// Network calls of the process, including polls.
    pub calls: u64,
    /// Virtual time between the calls of the process, until it closed the network. It consists of measured CPU time and the cost
    /// of clocks.
    pub computing_ns: Ns,
    /// Virtual time in which the process slept.
    pub sleeping_ns: Ns,
    /// Virtual time in calls, except looks at queues and waits.
    pub calling_ns: Ns,
    /// Virtual time in looks at queues, except those that `waiting_ns` contains.
    pub polling_ns: Ns,
    /// Virtual time in waits for the network. In calls of MPI that wait, it contains the looks that find nothing.
    pub waiting_ns: Ns,
    /// Virtual time in waits outside the simulation.
    pub external_wait_ns: Ns,
    /// The signal that ended the process after it had closed the network, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The exit status of the process after it had closed the network, if it is known and not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    /// The counts of the process's calls of collective operations, if cards execute some operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<RankOffload>,
}

/// The counts of one process's calls of collective operations.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ExecRankOffload")]
pub struct RankOffload {
    /// The virtual time in MPI_Init for putting handlers and match entries on the card, and for the agreement of all ranks about
    /// that.
    pub set_up_ns: Ns,
    /// Calls that the cards executed.
    pub offloaded_calls: u64,
    /// Calls that MPI executed.
    pub fallback_calls: u64,
}

/// The dispositions of the calls of one collective operation, summed over all processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ExecOffloaded")]
pub struct Offloaded {
    /// The operation.
    pub name: &'static str,
    /// Calls that the cards executed.
    pub offloaded_calls: u64,
    /// Bytes of the buffers of these calls.
    pub offloaded_bytes: u64,
    /// Calls that MPI executed.
    pub fallback_calls: u64,
    /// Calls that MPI executed, by reason.
    pub fallbacks: Vec<Fallback>,
}

/// Calls that MPI executed for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ExecFallback")]
pub struct Fallback {
    /// communicator: it does not have all ranks in their order. datatype, operator: handlers cannot reduce it. length: the vector
    /// is longer than the card's memory for it. empty: no bytes. arguments: invalid. alone: the program has one process. set-up:
    /// the card had no room, or MPI was not started by MPI_Init. cost: MPI was faster in a trial before the run.
    pub reason: &'static str,
    /// The number of calls.
    pub calls: u64,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// When the text is not a valid request.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the request of a program")
    }
}

/// Returns the JSON schemas of the report and of the request, each with its name. A schema follows the schemas that it uses.
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
