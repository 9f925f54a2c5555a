//! The benchmarks of channels: between threads of a host and processes of its card, every byte checked at the far
//! end.
//!
//! - `channel-latency`: one message after another on one channel, each from the call to its return, which follows the
//!   other end's acknowledgement; with its stages.
//! - `channel-bandwidth`: a payload in messages of one size, over one or several channels at once, each with a
//!   process and a thread of its own.
//!
//! A [`Request`] names cards, modes, directions and sizes; [`plan`] lists the processes to compile for it, and
//! [`run`] gives a [`Report`] with one row for each combination.

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

/// One measurement: a card, a mode, a direction and a message size. Which of the figures it has depends on the benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ChannelRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// The kind of messages: `direct` or `indirect`.
    pub mode: &'static str,
    /// The direction: `host-to-card` or `card-to-host`.
    pub direction: &'static str,
    /// Message size in bytes; for the bandwidth of direct messages, the size of what is sent in parts of 56 bytes, of which each
    /// process sends at most 500, as all of them are alike.
    pub size_bytes: u64,
    /// The memory of the card that they are moved to or from: `ctm` if indirect ones of a latency fit it, `emem` otherwise.
    pub memory: &'static str,
    /// Processes that move the payload together, each with a thread of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Messages measured individually.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Latency of a message, from the call to its return with the acknowledgement of the other end: the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
    /// The minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<f64>,
    /// The median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<f64>,
    /// The 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<f64>,
    /// The 99.9th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<f64>,
    /// The maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<f64>,
    /// Bytes of each message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<u64>,
    /// Messages of all processes in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Bytes of all of them, which were moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
    /// Runs, which differ in the begin times of threads, and in noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Throughput of all processes together, the mean over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Its standard deviation over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stddev_bytes_per_s: Option<f64>,
    /// Whether every byte was checked at the receiving end, and was right.
    pub verified: bool,
    /// The stages of the latency, which add up to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<Vec<StageRow>>,
}

/// The inputs that reproduce a report.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ChannelManifest")]
pub struct Manifest {
    /// The cards, their overrides and programs.
    #[serde(flatten)]
    pub cards: nicety::Manifest,
    /// Background noise on the host's CPUs, as given.
    pub noise: Option<String>,
}

/// The results of a benchmark: one row for each card, mode, direction, number of processes and size.
pub type Report = super::Report<Row, Manifest, Benchmark>;

/// One point of a benchmark.
struct Point<'p> {
    request: &'p Request,
    environment: &'p Environment<'p>,
    card: &'p Card,
    /// The compiled processes.
    elf: &'p [u8],
    noise: &'p Option<Noise>,
    mode: Mode,
    direction: Direction,
    size: u64,
    /// Receives the recording of the run.
    recorded: Option<&'p dyn Fn(Recording)>,
}

impl Point<'_> {
    fn load(&self, processes: u32) -> Load {
        let (mode, direction, bytes) = (self.mode, self.direction, self.size as u32);
        Load { mode, direction, bytes, messages: 0, processes, memory: MemoryKind::Emem }
    }

    /// A cluster for a run; `first` says whether the run is the one to be recorded.
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

    /// A row with the fields of all benchmarks, once everything is checked.
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

/// Runs a benchmark, and passes on the recording of its first point, if asked for.
///
/// # Errors
/// Invalid input before anything runs; the error of the first run if all failed, with its point.
pub fn run(
    request: &Request,
    environment: &Environment<'_>,
    recorded: Option<&dyn Fn(Recording)>,
) -> Result<Report, Error> {
    let Resolved { cards, modes, directions, processes, noise } = request.resolve()?;
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
                let point =
                    Point { request, environment, card, elf, noise: &noise, mode, direction, size, recorded };
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
