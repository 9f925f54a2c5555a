//! The benchmark of a torus under open-loop random traffic. It measures latency and accepted throughput at each offered load. It
//! also computes the saturation load that follows from the routes.

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

/// Minimum fraction of generated packets that must arrive in the measured time. If fewer arrive, queues grow.
const ACCEPTED: f64 = 0.95;
/// Number of standard deviations of a Poisson process above which a difference is not random.
const CHANCE: f64 = 3.0;
/// Number of parts of a row in reports of progress.
const PARTS: usize = 100;
/// Real time between reports of progress.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The result for a card, a pattern and an offered load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TorusRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// The pattern.
    pub pattern: &'static str,
    /// Offered load of each sending node, as a fraction of a link's bandwidth. Headers and stuffed words are included.
    pub offered_fraction: f64,
    /// Accepted load in the measured time, as a fraction of the same bandwidth.
    pub accepted_fraction: f64,
    /// Payload bytes per second that arrived at all nodes together in the measured time.
    pub accepted_bytes_per_s: f64,
    /// Mean latency of a packet, from its generation to the arrival of its last byte.
    pub latency_ns: f64,
    /// Minimum latency.
    pub min_ns: f64,
    /// Median latency.
    pub p50_ns: f64,
    /// 99th percentile of the latency, by nearest rank.
    pub p99_ns: f64,
    /// Maximum latency.
    pub max_ns: f64,
    /// Mean number of links between nodes that a packet crossed.
    pub hops_mean: f64,
    /// Whether queues grew. Then at least 5 % fewer packets arrived in the measured time than were generated. The difference is
    /// also above three times the square root of the number of generated packets, so it is not random.
    pub saturated: bool,
    /// Number of measured packets: those generated in the measured time.
    pub packets: u64,
    /// Number of measured packets that had not left their node when the run ended. This happens far beyond saturation. The
    /// latencies do not include these packets.
    pub undelivered_packets: u64,
}

/// The computed and the measured saturation of a pattern on a card.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Saturation {
    /// The card.
    pub nic: String,
    /// The pattern.
    pub pattern: &'static str,
    /// Load of the most loaded link, in link bandwidths, if every sending node sends at a link's bandwidth. It is computed from
    /// the routes. It is left out if there are too many routes: to all nodes, on a torus with an odd size and more than 4096
    /// nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_load_max: Option<f64>,
    /// Mean load over all links, in link bandwidths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_load_mean: Option<f64>,
    /// The offered load at which the first link is full, as a fraction of a link's bandwidth. It is 1 if that is the link of a
    /// node to its router.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saturation_fraction: Option<f64>,
    /// The offered load at which the buffers of routers are full, because credits return late. Present if it is below 1, as with
    /// short packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_limit_fraction: Option<f64>,
    /// Latency of a packet over the longest route, without other packets.
    pub zero_load_latency_ns: f64,
    /// The largest accepted load of all rows. Present if any row is saturated.
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
    /// Virtual time before the measured time.
    pub warmup_ns: f64,
    /// Length of the measured time.
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
    /// The points with a failed run, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_points: Vec<FailedPoint>,
    /// One item for each card and pattern.
    pub saturation: Vec<Saturation>,
}

/// Runs the benchmark. Progress is reported in hundredths of rows.
///
/// # Errors
/// When the input is invalid, before any run. When all runs failed: the error of the first one, such as a deadlock or a lost
/// packet, with its card, pattern and load.
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

    /// Returns the saturation of a pattern on a card, from the rows of the pattern.
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
            buffer_limit_fraction: loads
                .map(|loads| entry.min(buffers / loads.max))
                .filter(|&fraction| fraction < 1.0),
            zero_load_latency_ns: request::alone(&self.shape, &network, packet).ps() as f64 / 1e3,
            measured_saturation_fraction: saturated.then(|| accepted.fold(0.0, f64::max)),
        }
    }
}

/// Runs an experiment in its own thread, and reports its progress.
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

/// Whether fewer packets arrived than were generated, by more than random variation.
fn queues_grew(arrived: u64, generated: u64) -> bool {
    let (arrived, generated) = (arrived as f64, generated as f64);
    arrived < ACCEPTED * generated && arrived + CHANCE * generated.sqrt() < generated
}
