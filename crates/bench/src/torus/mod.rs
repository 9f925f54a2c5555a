//! The benchmark of a torus: open-loop random traffic, latency and accepted throughput over the offered load, and beside
//! them the load at which the routes alone let it saturate.

mod channels;
mod load;
mod pattern;
mod request;
mod traffic;

pub use request::Request;

use crate::figures::Spread;
use crate::{FailedPoint, Points};
use channels::ChannelLoads;
use load::Load;
use nicety::cards::Card;
use nicety::{Capture, CardManifest, Environment, Error, VERSION};
use pattern::Pattern;
use request::Resolved;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use traffic::{Experiment, Measured};

/// The share of the packets generated in a time below which those that arrive in it say that queues grow.
const ACCEPTED: f64 = 0.95;
/// Standard deviations of a Poisson process that chance is not taken for.
const CHANCE: f64 = 3.0;
/// Parts of a row in which progress is told.
const PARTS: usize = 100;
/// How often it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A card, a pattern and an offered load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TorusRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// The pattern.
    pub pattern: &'static str,
    /// Offered load of each node that sends, as a fraction of a link's bandwidth, headers and
    /// stuffed words included.
    pub offered_fraction: f64,
    /// The same of what arrived in the measured time.
    pub accepted_fraction: f64,
    /// Payload bytes a second that arrived in it, at all nodes together.
    pub accepted_bytes_per_s: f64,
    /// Time of a packet from its generation to the arrival of its last byte, the mean.
    pub latency_ns: f64,
    /// The minimum.
    pub min_ns: f64,
    /// The median.
    pub p50_ns: f64,
    /// The 99th percentile, by nearest rank.
    pub p99_ns: f64,
    /// The maximum.
    pub max_ns: f64,
    /// Links between nodes that a packet crossed, the mean.
    pub hops_mean: f64,
    /// Whether queues grew: in the measured time at least 5 % fewer packets arrived than were generated, and by three
    /// times the square root of these, which chance alone would not leave.
    pub saturated: bool,
    /// Packets measured: those generated in the measured time.
    pub packets: u64,
    /// Packets that should have been, but had not left their node when the run was given up, far beyond saturation. They
    /// are in no latency.
    pub undelivered_packets: u64,
}

/// The saturation of a pattern on a card: by arithmetic, and as measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Saturation {
    /// The card.
    pub nic: String,
    /// The pattern.
    pub pattern: &'static str,
    /// The load of the most loaded link, in links' bandwidths, where every node that sends does so at a link's bandwidth:
    /// by walking routes. Left out where they are too many: to all nodes, on a torus of more than 4096 and an odd size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_load_max: Option<f64>,
    /// The mean over all links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_load_mean: Option<f64>,
    /// The load at which the most loaded link is full, as a fraction of its bandwidth; 1 if that is a node's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saturation_fraction: Option<f64>,
    /// The load at which the places of routers' buffers are all taken, whose credits take their time: where it is below 1, as
    /// with short packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffers_fraction: Option<f64>,
    /// Time of a packet alone over the longest route.
    pub alone_latency_ns: f64,
    /// The largest accepted load, if any of the rows is saturated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_saturation_fraction: Option<f64>,
}

/// The inputs that reproduce a report of the benchmark of a torus.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TorusManifest")]
pub struct Manifest {
    /// The cards, by name.
    pub specs: BTreeMap<String, CardManifest>,
    /// `--set` overrides, as given.
    pub overrides: Vec<String>,
    /// The topology.
    pub topology: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Payload bytes of a packet.
    pub packet_bytes: u64,
    /// The time before the measured one.
    pub warmup_ns: f64,
    /// The measured time.
    pub duration_ns: f64,
}

/// The benchmark's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Benchmark {
    /// `torus`.
    Torus,
}

/// The report of the benchmark of a torus.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The version of nicety.
    pub version: &'static str,
    /// The seed.
    pub seed: u64,
    /// The inputs.
    pub manifest: Manifest,
    /// One row for each card, pattern and load.
    pub rows: Vec<Row>,
    /// The points whose run failed, if any did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_points: Vec<FailedPoint>,
    /// One for each card and pattern.
    pub saturation: Vec<Saturation>,
}

/// Runs the benchmark. Progress is in hundredths of rows.
///
/// # Errors
/// Invalid input before anything runs; the error of the first run if all failed, such as a deadlock or a lost packet, with its
/// card, pattern and load.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let resolved = request.resolve()?;
    let total = resolved.cards.len() * resolved.patterns.len() * resolved.loads.len() * PARTS;
    let interrupted = || environment.interrupt.as_ref().is_some_and(|set| set.load(Ordering::Relaxed));
    let channels = |&pattern: &Pattern| ChannelLoads::of(pattern, &resolved.shape, &interrupted);
    let channels: Vec<_> = resolved.patterns.iter().map(channels).collect::<Result<_, _>>()?;
    let told = |done: usize, _| (environment.progress)(done * PARTS, total);
    let (mut points, mut saturation) = (Points::new(&told, total / PARTS), Vec::new());
    for (nic, card) in &resolved.cards {
        for (&pattern, &loads) in resolved.patterns.iter().zip(&channels) {
            let first = points.rows().len();
            for &load in &resolved.loads {
                let done = points.done();
                let tell = |part: usize| (environment.progress)(done * PARTS + part, total);
                let experiment = resolved.experiment(card, pattern, load, request);
                let place = || format!("{nic}, {} at load {load}", pattern.name());
                let capture = environment.capture_of(place());
                points.measure(place, || {
                    watched(experiment, environment, capture, tell)
                        .and_then(|found| row(nic, experiment, found))
                });
            }
            let rows = &points.rows()[first..];
            saturation.push(resolved.saturation((nic, card), pattern, loads, request.packet, rows));
        }
    }
    let (rows, failed_points) = points.finish()?;
    let nicety::Manifest { specs, overrides, .. } =
        nicety::Manifest::of(resolved.cards.iter().map(|(nic, card)| (nic, card)), &request.overrides);
    let manifest = Manifest {
        specs,
        overrides,
        topology: resolved.torus.to_string(),
        nodes: resolved.shape.hosts(),
        packet_bytes: request.packet,
        warmup_ns: resolved.warmup.ps() as f64 / 1e3,
        duration_ns: resolved.window.ps() as f64 / 1e3,
    };
    let benchmark = Benchmark::Torus;
    Ok(Report { benchmark, version: VERSION, seed: request.seed, manifest, rows, failed_points, saturation })
}

impl Resolved {
    fn experiment(&self, card: &Card, pattern: Pattern, load: Load, request: &Request) -> Experiment {
        let &Resolved { torus, shape, warmup, window, .. } = self;
        let (network, packet, seed) = (Resolved::network(card), request.packet, request.seed);
        Experiment { torus, shape, network, pattern, load, packet, warmup, window, seed }
    }

    /// The saturation of a pattern on a card, of which these are the rows.
    fn saturation(
        &self,
        (nic, card): (&str, &Card),
        pattern: Pattern,
        loads: Option<ChannelLoads>,
        packet: u64,
        rows: &[Row],
    ) -> Saturation {
        let network = Resolved::network(card);
        let [entry, buffers] = network.torus_router().passes(&network.link, packet);
        let saturated = rows.iter().any(|row| row.saturated);
        let accepted = rows.iter().map(|row| row.accepted_fraction);
        Saturation {
            nic: nic.to_owned(),
            pattern: pattern.name(),
            channel_load_max: loads.map(|loads| loads.max),
            channel_load_mean: loads.map(|loads| loads.mean),
            saturation_fraction: loads.map(|loads| loads.saturation()),
            buffers_fraction: loads
                .map(|loads| entry.min(buffers / loads.max))
                .filter(|&fraction| fraction < 1.0),
            alone_latency_ns: request::alone(&self.shape, &network, packet).ps() as f64 / 1e3,
            measured_saturation_fraction: saturated.then(|| accepted.fold(0.0, f64::max)),
        }
    }
}

/// Runs an experiment in a thread of its own, and tells how much of it is done.
fn watched(
    experiment: Experiment,
    environment: &Environment<'_>,
    capture: Option<Capture>,
    tell: impl Fn(usize),
) -> Result<Measured, Error> {
    let (now, interrupt) = (Arc::new(AtomicU64::new(0)), environment.interrupt.clone());
    let end = (experiment.warmup + experiment.window).ps().max(1);
    let (done, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let measured = experiment.run(interrupt.map(Into::into), capture.as_ref(), &now);
            drop(done);
            measured
        });
        while let Err(RecvTimeoutError::Timeout) = waiting.recv_timeout(LOOK_EVERY) {
            let share = u128::from(now.load(Ordering::Relaxed).min(end)) * PARTS as u128 / u128::from(end);
            tell(share as usize);
        }
        run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn row(nic: &str, experiment: Experiment, measured: Measured) -> Result<Row, Error> {
    let Experiment { network, pattern, load, packet, window, .. } = experiment;
    let packets = measured.latencies.len() as u64;
    if packets == 0 {
        return Err(Error::Input(
            "no packet came in the measured time; write a longer --duration, or --topology with more nodes"
                .into(),
        ));
    }
    let spread = Spread::of(measured.latencies, 1);
    let on_link = network.link.serialisation(packet).ps();
    Ok(Row {
        nic: nic.to_owned(),
        pattern: pattern.name(),
        offered_fraction: load.fraction(),
        accepted_fraction: (measured.accepted * on_link) as f64 / (measured.senders * window.ps()) as f64,
        accepted_bytes_per_s: (measured.accepted * packet) as f64 * 1e12 / window.ps() as f64,
        latency_ns: spread.mean,
        min_ns: spread.min,
        p50_ns: spread.p50,
        p99_ns: spread.p99,
        max_ns: spread.max,
        hops_mean: measured.hops as f64 / packets as f64,
        saturated: queues_grew(measured.accepted, packets + measured.undelivered),
        packets,
        undelivered_packets: measured.undelivered,
    })
}

/// Whether so much fewer packets arrived than were generated that it is not by chance.
fn queues_grew(arrived: u64, generated: u64) -> bool {
    let (arrived, generated) = (arrived as f64, generated as f64);
    arrived < ACCEPTED * generated && arrived + CHANCE * generated.sqrt() < generated
}
