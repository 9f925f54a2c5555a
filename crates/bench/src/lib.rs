//! The benchmarks of nicety: node to node, with programs that use the public host API.
//!
//! - `latency`: half a round trip of a ping and its reply, with its stages. Every byte of every reply is checked.
//! - `bandwidth`: a window of messages one way, from the first post to the last completion.
//! - `message-rate`: the same, counted in messages.
//!
//! Each runs in one of the patterns of [`Pattern`]. If several ranks send, every repetition begins at a barrier, so that they
//! send simultaneously.
//!
//! The other benchmarks:
//!
//! - [`channels`]: messages between a host and the processes of its card.
//! - [`line_rate`]: whether handlers sustain the line rate.
//! - [`pcsa`]: the gain of a program from contexts.
//! - [`registration`]: whether to copy or to register.
//! - [`fairness`]: the throughput of each of many processes.
//! - [`grid`]: programs of ranks that communicate with their neighbours.
//! - [`torus`]: a network of routers under random traffic.
//! - [`sockets`]: connections through a kernel.
//!
//! A [`Request`] names cards, modes and sizes. [`plan`] lists the handlers to compile for it, and [`run`] returns a [`Report`]
//! with one row for each card, mode and size.

pub mod channels;
pub mod fairness;
mod figures;
pub mod grid;
mod interfaces;
mod latency;
pub mod line_rate;
mod messages;
mod mode;
mod pattern;
pub mod pcsa;
mod points;
mod printed;
mod rdma;
pub mod registration;
mod request;
mod schemas;
pub mod sockets;
mod stream;
pub mod torus;

pub use mode::Mode;
use nicety_nic_spin::SpinSpec;
pub use pattern::Pattern;
pub use points::FailedPoint;
use points::Points;
pub use printed::HandlerLines;
pub use rdma::{Addressing, Memory as PutMemory, Notification, Puts};
pub use request::{Benchmark, Plan, PlannedHandlers, Request, plan};
use request::{Chosen, Resolved, Side, answering};
pub use schemas::{run_schemas, schemas};

use figures::Spread;
use nicety::cards::{Card, load_distinct as load_cards};
use nicety::record::{Level, Recording};
use nicety::report::NetworkPortReport;
use nicety::{
    Allowed, CardManifest, Cluster, ClusterConfig, Environment, Error, Failure, HandlerNames, Handlers,
    ProgramManifest, VERSION,
};
use nicety_host::{Memory, Traffic};
use nicety_nic_apenet::ApenetSpec;
use nicety_nic_qnix::QnixSpec;
use printed::Printed;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::iter;
use std::rc::Rc;

/// A part of a latency.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Stage")]
pub struct StageRow {
    /// The stage's name.
    pub stage: &'static str,
    /// Its share in nanoseconds.
    pub ns: f64,
}

/// Bytes that a node's card read from its host's memory, and wrote to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostMemory {
    /// The rank.
    pub node: u32,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// One direction of a pattern with several directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Flow {
    /// The sending rank.
    pub source: u32,
    /// The receiving rank.
    pub target: u32,
    /// Mean of half a round trip over the iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
    /// The shortest iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<f64>,
    /// The longest iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<f64>,
    /// Payload bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Messages per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_s: Option<f64>,
}

/// One measurement: a card, a mode and a message size. The benchmark determines its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The card.
    pub nic: String,
    /// The mode.
    pub mode: &'static str,
    /// Message size in bytes.
    pub size_bytes: u64,
    /// Iterations measured.
    pub iterations: u64,
    /// Messages in a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Mean of half a round trip, over the iterations of all pinging ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
    /// Payload bytes per second of all directions, from the first post of a window to the last completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Messages per second of all directions, from the first post of a window to the last completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_s: Option<f64>,
    /// Mean duration of a window over the iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<f64>,
    /// The shortest iteration: half a round trip, or a window. The following fields have the same unit.
    pub min_ns: f64,
    /// Median of the iterations.
    pub p50_ns: f64,
    /// 99th percentile of the iterations, by nearest rank.
    pub p99_ns: f64,
    /// 99.9th percentile of the iterations.
    pub p999_ns: f64,
    /// The longest iteration.
    pub max_ns: f64,
    /// Whether the receiving end checked every byte and found it correct, and nothing failed on a card.
    pub verified: bool,
    /// The stages of the latency. They add up to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<Vec<StageRow>>,
    /// Iterations with time that belongs to no stage, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unaccounted_iterations: Option<u64>,
    /// Each direction, if the pattern has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<Flow>>,
    /// Incast: the smallest of the senders' figures over the largest; 1 if all get the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// Traffic of the measured iterations, by node.
    pub host_memory: Vec<HostMemory>,
    /// The ports of the network over the whole run, with a flow control without credits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<NetworkPortReport>,
}

/// The inputs that reproduce a report of a benchmark between hosts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "MessagesManifest")]
pub struct Manifest {
    /// The cards, by name.
    pub specs: BTreeMap<String, CardManifest>,
    /// The card of every host but rank 0, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerManifest>,
    /// `--set` overrides, as given. They do not change the peer's card.
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
    /// The programs that ran on cards, by card and mode. The caller, which compiled them, sets this.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub compiler: BTreeMap<String, ProgramManifest>,
}

/// The card of the hosts that the measured card communicates with.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PeerManifest {
    /// Its name.
    pub nic: String,
    /// Its identification.
    #[serde(flatten)]
    pub card: CardManifest,
}

/// A failure on a card during the measurement of a point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PointFailure {
    /// The card.
    pub nic: String,
    /// The point, such as mode and size.
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
    /// One row for each point of the benchmark, such as card, mode and size.
    pub rows: Vec<R>,
    /// The points with a failed run, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_points: Vec<FailedPoint>,
    /// Failures of handlers, and commands refused to them, during the measurement of the rows. Unless they were allowed, the
    /// benchmark has failed.
    pub failures: Vec<PointFailure>,
    /// Lines that handlers printed, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler_lines: Option<HandlerLines>,
}

/// The report of a benchmark without a seed: nothing in it is random.
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

/// One point of a benchmark: the inputs of its programs.
struct Point<'p> {
    cluster: ClusterConfig,
    pattern: Pattern,
    mode: Mode,
    size: u64,
    /// The handlers of the card that runs them: for rank 0 and for the others.
    handlers: [Option<&'p Handlers>; 2],
    users_handlers: bool,
    iterations: u64,
    warmup: u64,
    window: u64,
    /// Receives the recording of the run.
    recorded: Option<&'p dyn Fn(Recording)>,
    /// The failures of its run.
    failures: RefCell<Vec<Failure>>,
    /// The ports of its network.
    ports: RefCell<Vec<NetworkPortReport>>,
}

impl Point<'_> {
    /// Returns the handlers that a rank's card runs, if the mode has any.
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

    /// Returns a row with the figures of all benchmarks.
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

/// Measures the traffic of the hosts' memories in the measured iterations. It reads all nodes simultaneously, which only an
/// observer may do.
struct Meter {
    memories: Vec<Rc<Memory>>,
    /// The traffic up to the end of the warm-up.
    before: RefCell<Vec<Traffic>>,
}

impl Meter {
    fn new(cluster: &Cluster) -> Rc<Meter> {
        let memories = cluster.memories().to_vec();
        let before = RefCell::new(vec![Traffic::default(); memories.len()]);
        Rc::new(Meter { memories, before })
    }

    /// Marks the end of the warm-up. The last caller in its last iteration counts.
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

/// Returns the smallest figure over the largest.
fn fairness(figures: impl Iterator<Item = f64> + Clone) -> f64 {
    figures.clone().fold(f64::INFINITY, f64::min) / figures.fold(0.0, f64::max)
}

/// Runs a benchmark.
///
/// # Errors
/// Invalid input before anything runs; the error of the first run if all failed, with its card, mode and size.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    measure(request, environment, None)
}

/// Runs a benchmark, and passes on the recording of its first point, at [`Level::Everything`]. The report is the same as without
/// a recording.
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

fn measure(
    request: &Request,
    environment: &Environment<'_>,
    recorded: Option<&dyn Fn(Recording)>,
) -> Result<Report, Error> {
    let (environment, printed) = &Printed::count(environment);
    let benchmark = request.benchmark;
    let Resolved { cards, peer, pattern, nodes, puts, topology, flow_control, noise, faults } =
        request.resolve()?;
    let mut handlers: Vec<Vec<Loaded>> = Vec::new();
    for Chosen { card, modes, .. } in &cards {
        let answering = answering(card, peer.as_ref(), pattern);
        let of_mode = |mode: &Mode| load_handlers(&answering, *mode, request, environment);
        handlers.push(modes.iter().map(of_mode).collect::<Result<_, _>>()?);
    }
    let has_size = |card: &Card, mode, size| {
        has_size(card, mode, size) && peer.iter().all(|peer| has_size(peer, mode, size))
    };
    let sizes = |card: &Card, mode| request.sizes.iter().filter(|&&size| has_size(card, mode, size)).count();
    let of_card =
        |Chosen { card, modes, .. }: &Chosen| modes.iter().map(|&mode| sizes(card, mode)).sum::<usize>();
    for chosen in &cards {
        if of_card(chosen) == 0 {
            let longest = |card| chosen.modes.iter().filter_map(|&mode| largest(card, mode)).max();
            let largest = longest(&chosen.card).into_iter().chain(peer.as_ref().and_then(longest)).min();
            return Err(Error::Input(format!(
                "{} has no message of these sizes; the largest is {} bytes",
                with_peer(&chosen.nic, peer.as_ref()),
                largest.unwrap_or_default()
            )));
        }
    }
    let total = cards.iter().map(of_card).sum();
    let mut points = Points::new(environment.progress, total);
    let mut failures = Vec::new();
    for (Chosen { nic, card, modes }, handlers) in cards.iter().zip(&handlers) {
        for (&mode, handlers) in modes.iter().zip(handlers) {
            for &size in request.sizes.iter().filter(|&&size| has_size(card, mode, size)) {
                let recorded = recorded.filter(|_| points.rows().is_empty());
                let cluster = ClusterConfig {
                    topology,
                    flow_control,
                    noise: noise.clone(),
                    faults: faults.clone(),
                    seed: request.network.seed,
                    interrupt: environment.interrupt.clone().map(Into::into),
                    log: environment.log.clone(),
                    capture: environment.capture_of(point_name(mode, size)),
                    allowed: Allowed::ALL,
                    recording: if recorded.is_some() { Level::Everything } else { Level::Summary },
                    ..cluster_of(card, peer.as_ref(), nodes)
                };
                let point = Point {
                    cluster,
                    pattern,
                    mode: mode.on(card.spec.design()),
                    size,
                    handlers: [0, 1].map(|rank| handlers.of(Side::of(rank, peer.is_some()))),
                    users_handlers: request.handlers,
                    iterations: request.iterations.unwrap_or_else(|| benchmark.default_iterations(size)),
                    warmup: request.warmup.unwrap_or(request::DEFAULT_WARMUP),
                    window: request.window.unwrap_or(request::DEFAULT_WINDOW),
                    recorded,
                    failures: RefCell::default(),
                    ports: RefCell::default(),
                };
                let place = || format!("{}, {}", with_peer(nic, peer.as_ref()), point_name(mode, size));
                points.measure(place, || {
                    let row = match (benchmark, point.mode.posts_ahead()) {
                        (Benchmark::Latency, _) if point.mode == Mode::Put => rdma::ping_pong(&point, &puts),
                        (_, _) if point.mode == Mode::Put => rdma::windows(&point, &puts, benchmark),
                        (Benchmark::Latency, true) => interfaces::ping_pong(&point),
                        (Benchmark::Latency, false) => latency::measure(&point),
                        (_, true) => interfaces::windows(&point, benchmark),
                        (Benchmark::Bandwidth | Benchmark::MessageRate, false) => {
                            stream::measure(&point, benchmark)
                        }
                    }?;
                    failures.extend(point.failures.take().into_iter().map(|failure| PointFailure {
                        nic: nic.clone(),
                        point: point_name(mode, size),
                        failure,
                    }));
                    Ok(Row { nic: nic.clone(), mode: mode.name(), ports: point.ports.take(), ..row })
                });
            }
        }
    }
    let (rows, failed_points) = points.finish()?;
    let manifest_of = |Chosen { nic, card, .. }: &Chosen| (nic.clone(), CardManifest::from(card));
    Ok(Report {
        benchmark,
        version: VERSION,
        seed: request.network.seed,
        manifest: Manifest {
            specs: cards.iter().map(manifest_of).collect(),
            peer: peer
                .as_ref()
                .map(|card| PeerManifest { nic: card.listing.name.clone(), card: card.into() }),
            overrides: request.overrides.clone(),
            pattern: pattern.to_string(),
            topology: topology.to_string(),
            flow_control: request.network.flow_control.clone(),
            noise: request.noise.clone(),
            faults: request.network.faults.clone(),
            puts: cards.iter().any(|chosen| chosen.modes.contains(&Mode::Put)).then_some(puts),
            compiler: BTreeMap::new(),
        },
        rows,
        failed_points,
        failures,
        handler_lines: printed.lines(),
    })
}

/// Whether a mode of a card supports a size. Programmed I/O has its own limit, and cards have one for messages.
fn has_size(card: &Card, mode: Mode, size: u64) -> bool {
    largest(card, mode).is_none_or(|largest| size <= largest)
}

/// Returns the maximum message of a mode of a card, where its spec has one.
fn largest(card: &Card, mode: Mode) -> Option<u64> {
    match (card.spec.of::<QnixSpec>(), card.spec.of::<ApenetSpec>()) {
        (Ok(spec), _) if mode == Mode::Pio => Some(spec.pio),
        (Ok(spec), _) => Some(spec.limits.message),
        (_, Ok(spec)) => Some(spec.limits.message),
        _ => None,
    }
}

/// Returns a card's name, with its peer's if they differ.
fn with_peer(nic: &str, peer: Option<&Card>) -> String {
    match peer {
        Some(peer) => format!("{nic} with {}", peer.listing.name),
        None => nic.to_owned(),
    }
}

fn point_name(mode: Mode, size: u64) -> String {
    format!("mode {}, {size} B", mode.name())
}

/// Returns a cluster with this card for rank 0, and the peer's or the same card for the others.
fn cluster_of(card: &Card, peer: Option<&Card>, nodes: u32) -> ClusterConfig {
    match peer {
        None => ClusterConfig::new(nodes, card.clone()),
        Some(peer) => {
            let others = (1..nodes).map(|_| peer.clone());
            ClusterConfig::of(iter::once(card.clone()).chain(others).collect())
        }
    }
}

/// The handlers of a mode, on the cards that run them.
#[derive(Default)]
struct Loaded(Vec<(Side, Handlers)>);

impl Loaded {
    fn of(&self, side: Side) -> Option<&Handlers> {
        self.0.iter().find(|(of, _)| *of == side).map(|(_, handlers)| handlers)
    }
}

fn load_handlers(
    answering: &[(Side, &Card)],
    mode: Mode,
    request: &Request,
    environment: &Environment<'_>,
) -> Result<Loaded, Error> {
    if mode.handlers(request.benchmark).is_none() {
        return Ok(Loaded::default());
    }
    let load = |&(side, card): &(Side, &Card)| {
        let key = request::compiled_key(&card.listing.name, mode, side);
        let elf = environment.compiled.get(&key).ok_or_else(|| {
            Error::Input(format!("no compiled handlers for {key}; compile what the plan names"))
        })?;
        let spec = card.spec.of::<SpinSpec>()?;
        let handlers = Handlers::load(elf, &HandlerNames::default(), &spec.hpu)?;
        handlers.check(&spec.hpu)?;
        Ok((side, handlers))
    };
    Ok(Loaded(answering.iter().map(load).collect::<Result<_, Error>>()?))
}
