//! The benchmarks of nicety. Their programs run on hosts and use the public API. The benchmarks between two or more hosts are:
//!
//! - `latency`: half a round trip of a ping and its reply, with its stages. Every byte of every reply is checked.
//! - `bandwidth`: a window of messages in one direction, from the first post to the last completion.
//! - `message-rate`: the same, counted in messages.
//!
//! Each of these has a pattern of senders and receivers ([`Pattern`]). If several ranks send, every iteration begins with a
//! barrier, so that they send at the same time.
//!
//! The other benchmarks:
//!
//! - [`channels`]: messages between a host and the processes of its card.
//! - [`pcsa`]: the gain of a program from several contexts on each microengine.
//! - [`registration`]: the cost of copying a message, compared with the cost of registering its memory.
//! - [`fairness`]: the throughput of each of many processes that send at the same time.
//! - [`grid`]: programs of ranks that communicate with their neighbours.
//! - [`torus`]: a network of routers under random traffic.
//! - [`pcie`]: a card's access to host memory over PCI Express.
//! - [`sockets`]: connections through the kernel's TCP.
//!
//! A [`Request`] names cards, modes and sizes. [`plan`] lists the handlers to compile for it, and [`run`] returns a [`Report`]
//! with one row for each card, mode and size.

mod benchmark;
pub mod channels;
pub mod fairness;
mod figures;
pub mod grid;
mod interfaces;
mod latency;
mod measure;
mod messages;
mod mode;
mod pattern;
mod payload;
pub mod pcie;
pub mod pcsa;
mod points;
mod printed;
mod rdma;
pub mod registration;
mod request;
pub mod sockets;
mod stream;
pub mod torus;

pub use benchmark::Benchmark;
pub use mode::Mode;
pub use pattern::Pattern;
pub use points::{FailedPoint, Points};
pub use printed::{HandlerLines, Printed};
pub use rdma::{Addressing, Memory as PutMemory, Notification, Puts};
pub use request::{Plan, PlannedHandlers, PlannedProgram, Request, plan};

use figures::Spread;
pub use figures::{nearest_rank, rank};
use measure::measure;
use nicety::cards::load_distinct as load_cards;
use nicety::record::Recording;
use nicety::report::NetworkPortReport;
use nicety::{CardManifest, Cluster, ClusterConfig, Environment, Error, Failure, Handlers, ProgramManifest};
use nicety_host::{Memory, Traffic};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A stage of a latency.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Stage")]
pub struct StageRow {
    /// The stage's name.
    pub stage: &'static str,
    /// The mean time in this stage, in nanoseconds.
    pub ns: f64,
}

/// Bytes that were read from and written to the memory of one host in the measured iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostMemory {
    /// The rank of the host.
    pub node: u32,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// The figures of one direction of a pattern with several directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Flow {
    /// The sending rank.
    pub source: u32,
    /// The receiving rank.
    pub target: u32,
    /// Mean of half a round trip over the measured iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
    /// Minimum of the iterations. An iteration is half a round trip, or a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<f64>,
    /// Maximum of the iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<f64>,
    /// Payload bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Messages per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_s: Option<f64>,
}

/// One measurement: a card, a mode and a message size. The benchmark determines which figures a row has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The card.
    pub nic: String,
    /// The mode.
    pub mode: &'static str,
    /// Message size in bytes.
    pub size_bytes: u64,
    /// Number of measured iterations.
    pub iterations: u64,
    /// Number of messages in a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Mean of half a round trip, over the iterations of all ranks that send pings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
    /// Payload bytes per second of all directions together. A window lasts from its first post to its last completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Messages per second of all directions together. A window lasts from its first post to its last completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_s: Option<f64>,
    /// Mean duration of a window over the measured iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<f64>,
    /// Minimum of the iterations, in nanoseconds. An iteration is half a round trip, or a window. The next four fields are of the
    /// same quantity.
    pub min_ns: f64,
    /// Median of the iterations.
    pub p50_ns: f64,
    /// 99th percentile of the iterations, by nearest rank.
    pub p99_ns: f64,
    /// 99.9th percentile of the iterations.
    pub p999_ns: f64,
    /// Maximum of the iterations.
    pub max_ns: f64,
    /// Whether the receiving end checked every byte and found it correct, and nothing failed on a card.
    pub verified: bool,
    /// The stages of the latency. Their sum is the mean latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<Vec<StageRow>>,
    /// Number of iterations with time that belongs to no stage, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unaccounted_iterations: Option<u64>,
    /// Each direction, if the pattern has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<Flow>>,
    /// Incast: the smallest figure of a sender divided by the largest; 1 if all senders get the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// Memory traffic of the measured iterations, for each node.
    pub host_memory: Vec<HostMemory>,
    /// The ports of the network over the whole run, if the flow control does not use credits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<NetworkPortReport>,
}

/// The inputs that reproduce a report of a benchmark between hosts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "MessagesManifest")]
pub struct Manifest {
    /// The cards, by name.
    pub specs: BTreeMap<String, CardManifest>,
    /// The card of every host except rank 0, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerManifest>,
    /// `--set` overrides, as given. They do not apply to the card in `peer`.
    pub overrides: Vec<String>,
    /// The pattern of sources and targets.
    pub pattern: String,
    /// The topology.
    pub topology: String,
    /// The flow control of the network, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_control: Option<String>,
    /// Background noise on the hosts' CPUs, as given.
    pub noise: Option<String>,
    /// The faults of the network, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<String>,
    /// The options of mode put, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub puts: Option<Puts>,
    /// The programs that ran on cards, by card and mode. The caller compiles the programs and fills in this field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub compiler: BTreeMap<String, ProgramManifest>,
}

/// The card of the hosts with which the host of the measured card communicates.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PeerManifest {
    /// The name of the card.
    pub nic: String,
    /// The identification of the card.
    #[serde(flatten)]
    pub card: CardManifest,
}

/// A failure on a card during the measurement of one point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PointFailure {
    /// The card.
    pub nic: String,
    /// The point, for example its mode and size.
    pub point: String,
    /// The failure.
    #[serde(flatten)]
    pub failure: Failure,
}

/// The report of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report<R = Row, M = Manifest, B = Benchmark> {
    /// The benchmark.
    pub benchmark: B,
    /// The version of nicety.
    pub version: &'static str,
    /// The seed.
    pub seed: u64,
    /// The inputs.
    pub manifest: M,
    /// One row for each point, which is for example a card, a mode and a size.
    pub rows: Vec<R>,
    /// The points with a failed run, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_points: Vec<FailedPoint>,
    /// Failures of handlers, and commands that cards refused to handlers, while the rows were measured. If their kinds are not
    /// allowed, the benchmark has failed.
    pub failures: Vec<PointFailure>,
    /// Lines that handlers printed, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler_lines: Option<HandlerLines>,
}

/// The report of a benchmark that has no seed, because nothing in it is random.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sweep<R, B> {
    /// The benchmark.
    pub benchmark: B,
    /// The version of nicety.
    pub version: &'static str,
    /// The inputs.
    pub manifest: nicety::Manifest,
    /// One row for each point of the benchmark.
    pub rows: Vec<R>,
    /// The points with a failed run, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_points: Vec<FailedPoint>,
}

/// One point of a benchmark, with the inputs of its programs.
struct Point<'p> {
    cluster: ClusterConfig,
    pattern: Pattern,
    mode: Mode,
    size: u64,
    /// The handlers that run on the card of rank 0, and those that run on the other cards.
    handlers: [Option<&'p Handlers>; 2],
    users_handlers: bool,
    iterations: u64,
    warmup: u64,
    window: u64,
    /// Receives the recording of the run.
    recorded: Option<&'p dyn Fn(Recording)>,
    /// The failures of the point's run.
    failures: RefCell<Vec<Failure>>,
    /// The ports of the point's network.
    ports: RefCell<Vec<NetworkPortReport>>,
}

impl Point<'_> {
    /// Returns the handlers that run on the card of a rank, if the mode has any.
    fn handlers(&self, rank: u32) -> Option<&Handlers> {
        self.handlers[usize::from(rank > 0)]
    }

    fn cluster(&self) -> Result<Cluster, Error> {
        Cluster::new(self.cluster.clone())
    }

    fn run(&self, cluster: &mut Cluster) -> Result<(), Error> {
        let run = cluster.run()?;
        self.failures.replace(run.failures());
        self.ports.replace(NetworkPortReport::all(&run.network));
        if let Some(recorded) = self.recorded {
            recorded(run.recording);
        }
        Ok(())
    }

    /// Returns a row with the fields that all benchmarks have.
    fn row(&self, spread: &Spread, meter: &Meter) -> Row {
        Row {
            mode: self.mode.name(),
            size_bytes: self.size,
            iterations: self.iterations,
            min_ns: spread.min,
            p50_ns: spread.p50,
            p99_ns: spread.p99,
            p999_ns: spread.p999,
            max_ns: spread.max,
            verified: self.failures.borrow().is_empty(),
            host_memory: meter.measured(),
            ..Row::default()
        }
    }
}

/// Measures the memory traffic of all hosts in the measured iterations. It reads the memories of all nodes at one instant, which
/// a program of a host cannot do.
struct Meter {
    memories: Vec<Rc<Memory>>,
    /// The traffic until the end of the warm-up.
    before: RefCell<Vec<Traffic>>,
}

impl Meter {
    fn new(cluster: &Cluster) -> Rc<Meter> {
        let memories = cluster.memories().to_vec();
        let before = RefCell::new(vec![Traffic::default(); memories.len()]);
        Rc::new(Meter { memories, before })
    }

    /// Records the traffic at the end of the warm-up. The last call before the measured iterations counts.
    fn warm(&self) {
        self.before.replace(self.memories.iter().map(|memory| memory.traffic()).collect());
    }

    fn measured(&self) -> Vec<HostMemory> {
        let before = self.before.borrow();
        let nodes = self.memories.iter().zip(&*before).zip(0..);
        nodes
            .map(|((memory, before), node)| HostMemory {
                node,
                read_bytes: memory.traffic().read - before.read,
                written_bytes: memory.traffic().written - before.written,
            })
            .collect()
    }
}

/// Returns the smallest figure divided by the largest.
fn fairness(figures: impl Iterator<Item = f64> + Clone) -> f64 {
    figures.clone().fold(f64::INFINITY, f64::min) / figures.fold(0.0, f64::max)
}

/// Runs a benchmark.
///
/// # Errors
/// When the input is invalid, before any run. When all runs failed: the error of the first one, with its card, mode and size.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    measure(request, environment, None)
}

/// Runs a benchmark, and passes on the recording of its first point. The level of the recording is
/// [`Level::Everything`](nicety::record::Level::Everything). The recording does not change the report.
///
/// # Errors
/// As [`run`].
pub fn run_recorded(
    request: &Request,
    environment: &Environment<'_>,
    recorded: &dyn Fn(Recording),
) -> Result<Report, Error> {
    measure(request, environment, Some(recorded))
}
