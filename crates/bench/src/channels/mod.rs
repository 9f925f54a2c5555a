//! The benchmarks of channels between threads of a host and processes on its card. The receiving end checks every byte.
//!
//! - `channel-latency`: consecutive messages on one channel, with their stages. A latency lasts from the call to its return. The
//!   call returns after the acknowledgement of the other end.
//! - `channel-bandwidth`: a payload in messages of one size, over one or several channels at the same time. Each channel has its
//!   own process and its own thread.
//!
//! A [`Request`] names cards, modes, directions and sizes. [`plan`] lists the processes to compile for it, and [`run`] returns a
//! [`Report`] with one row for each combination.

mod bandwidth;
mod latency;
mod request;
mod rig;

pub use request::{Benchmark, Direction, Mode, Plan, PlannedProcesses, Request, plan};

use super::{Points, StageRow};
use nicety::cards::Card;
use nicety::record::{Level, Recording};
use nicety::{Cluster, ClusterConfig, Environment, Error, MemoryKind, Noise, VERSION};
use request::Resolved;
use rig::Load;
use schemars::JsonSchema;
use serde::Serialize;

/// One measurement: a card, a mode, a direction and a message size. The benchmark determines which figures a row has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ChannelRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// The kind of messages: `direct` or `indirect`.
    pub mode: &'static str,
    /// The direction: `host-to-card` or `card-to-host`.
    pub direction: &'static str,
    /// Message size in bytes. For the bandwidth of direct messages, it is the size of a payload in messages of 56 bytes. A
    /// process sends at most 500 of these messages, because they are all alike.
    pub size_bytes: u64,
    /// The card's memory for the messages. For indirect messages of a throughput it is the requested memory, for those of a
    /// latency that fit it `ctm`. It is `emem` otherwise.
    pub memory: &'static str,
    /// Number of processes that move the payload together. Each has a thread of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Number of messages measured individually.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Mean latency of a message, from the call to its return with the acknowledgement of the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
    /// Minimum latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<f64>,
    /// Median latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<f64>,
    /// 99th percentile of the latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<f64>,
    /// 99.9th percentile of the latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<f64>,
    /// Maximum latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<f64>,
    /// Bytes of each message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<u64>,
    /// Number of messages of all processes in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Bytes of these messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
    /// Number of runs. They differ in the begin times of threads and in noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Mean throughput of all processes over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Standard deviation of the throughput over the runs. A single run has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stddev_bytes_per_s: Option<f64>,
    /// Whether the receiving end checked every byte and found it correct.
    pub verified: bool,
    /// The stages of the latency. Their sum is the mean latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<Vec<StageRow>>,
}

/// The inputs that reproduce a report.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ChannelManifest")]
pub struct Manifest {
    /// The cards, their overrides and the programs on them.
    #[serde(flatten)]
    pub cards: nicety::Manifest,
    /// Background noise on the host's CPUs, as given.
    pub noise: Option<String>,
}

/// The results of a benchmark: one row for each card, mode, direction, number of processes and size.
pub type Report = super::Report<Row, Manifest, Benchmark>;

/// One point of a benchmark, with the inputs of its run.
struct Point<'p> {
    request: &'p Request,
    environment: &'p Environment<'p>,
    card: &'p Card,
    /// The compiled program of the processes.
    elf: &'p [u8],
    noise: &'p Option<Noise>,
    /// The card's memory for indirect messages of a throughput.
    memory: MemoryKind,
    mode: Mode,
    direction: Direction,
    size: u64,
    /// Receives the recording of the first run.
    recorded: Option<&'p dyn Fn(Recording)>,
}

impl Point<'_> {
    fn load(&self, processes: u32) -> Load {
        let (mode, direction, bytes) = (self.mode, self.direction, self.size as u32);
        let memory = if mode == Mode::Indirect { self.memory } else { MemoryKind::Emem };
        Load { mode, direction, bytes, messages: 0, processes, memory }
    }

    /// Returns a cluster for a run. `first` is whether it is the point's first run, which is recorded.
    fn cluster(&self, seed: u64, first: bool) -> Result<Cluster, Error> {
        Cluster::new(ClusterConfig {
            noise: self.noise.clone(),
            seed,
            interrupt: self.environment.interrupt.clone().map(Into::into),
            log: self.environment.log.clone(),
            capture: self.environment.capture_of(format_args!("{} B", self.size)),
            recording: if first && self.recorded.is_some() { Level::Everything } else { Level::Summary },
            ..ClusterConfig::new(1, self.card.clone())
        })
    }

    fn run(&self, cluster: &mut Cluster, first: bool) -> Result<(), Error> {
        let run = cluster.run()?;
        if let Some(recorded) = self.recorded.filter(|_| first) {
            recorded(run.recording);
        }
        Ok(())
    }

    /// Returns a row with the fields that all benchmarks have. All checks have succeeded.
    fn row(&self, load: &Load, size_bytes: u64) -> Row {
        Row {
            memory: load.memory.key(),
            mode: self.mode.name(),
            direction: self.direction.name(),
            size_bytes,
            verified: true,
            ..Row::default()
        }
    }
}

/// Runs a benchmark. If requested, passes on the recording of its first point.
///
/// # Errors
/// When the input is invalid, before any run. When all runs failed: the error of the first one, with its point.
pub fn run(
    request: &Request,
    environment: &Environment<'_>,
    recorded: Option<&dyn Fn(Recording)>,
) -> Result<Report, Error> {
    let Resolved { cards, modes, directions, processes, memory, noise } = request.resolve()?;
    let bandwidth = request.benchmark == Benchmark::ChannelBandwidth;
    let processes = if bandwidth { processes } else { vec![1] };
    let total = cards.len() * modes.len() * directions.len() * processes.len() * request.sizes.len();
    let mut points = Points::new(environment.progress, total);
    for (nic, card) in &cards {
        let elf = environment.compiled.get(nic).ok_or_else(|| {
            Error::Input(format!("no compiled processes for {nic}; compile what the plan names"))
        })?;
        for (&mode, &direction) in modes.iter().flat_map(|m| directions.iter().map(move |d| (m, d))) {
            for (&processes, &size) in
                processes.iter().flat_map(|p| request.sizes.iter().map(move |s| (p, s)))
            {
                let recorded = recorded.filter(|_| points.rows().is_empty());
                let noise = &noise;
                let point =
                    Point { request, environment, card, elf, noise, memory, mode, direction, size, recorded };
                let place = || format!("{nic}, {}, {}, {size} B", mode.name(), direction.name());
                points.measure(place, || {
                    let row = match bandwidth {
                        false => latency::measure(&point, request.iterations(), request.warmup()),
                        true => bandwidth::measure(&point, processes, request.payload(), request.runs()),
                    };
                    Ok(Row { nic: nic.clone(), ..row? })
                });
            }
        }
    }
    let (rows, failed_points) = points.finish()?;
    Ok(Report {
        benchmark: request.benchmark,
        version: VERSION,
        seed: request.seed,
        manifest: Manifest {
            cards: nicety::Manifest::of(cards.iter().map(|(nic, card)| (nic, card)), &request.overrides),
            noise: request.noise.clone(),
        },
        rows,
        failed_points,
        failures: Vec::new(),
        handler_lines: None,
    })
}
