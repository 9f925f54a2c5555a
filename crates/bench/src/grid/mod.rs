//! Benchmarks of programs on a grid of ranks: [`Benchmark::Halo`] and [`Benchmark::Allreduce`]. Each rank communicates with its
//! neighbours by `send` and `recv`, which every card has.
//!
//! All results are compared with a sequential reference computation. A wrong value fails the run.

mod allreduce;
mod halo;
mod request;
mod rig;
mod shape;
mod values;

pub use request::{Benchmark, Request};

use crate::figures::Spread;
use crate::{FailedPoint, Points};
use nicety::cards::Card;
use nicety::report::NetworkPortReport;
use nicety::{
    CardManifest, Cluster, ClusterConfig, Environment, Error, Faults, FlowControl, Noise, Topology, VERSION,
    in_parts,
};
use nicety_types::Gap;
use rig::{Point, Rounds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shape::Grid;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The result for a card and a size. The size is that of a face in a halo exchange, or of the vector in an all-reduce.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "GridRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// Number of hosts.
    pub nodes: u32,
    /// Bytes of a face, or of the vector.
    pub size_bytes: u64,
    /// Number of measured iterations.
    pub iterations: u64,
    /// Mean duration of an iteration. In a halo exchange, the mean is over iterations and ranks, and no barrier separates
    /// iterations. In an all-reduce, the mean is over iterations. Each lasts from a barrier until the last rank has finished.
    pub time_ns: f64,
    /// Duration of the shortest iteration.
    pub min_ns: f64,
    /// Median duration of an iteration.
    pub p50_ns: f64,
    /// 99th percentile of the duration of an iteration, by nearest rank.
    pub p99_ns: f64,
    /// Duration of the longest iteration.
    pub max_ns: f64,
    /// Payload bytes that the busiest sender sends in an iteration.
    pub sent_bytes: u64,
    /// `sent_bytes` per second of the mean duration.
    pub sent_bytes_per_s: f64,
    /// Mean number of links that a packet crosses. Links to switches count. In a torus, the links between hosts and their routers
    /// do not.
    pub hops_mean: f64,
    /// Halo exchange: number of faces of a rank. Each has a neighbour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faces: Option<u64>,
    /// All-reduce: bytes of the vector divided by the mean duration (algorithm bandwidth).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm_bytes_per_s: Option<f64>,
    /// All-reduce: the time in which a node's link carries 2 (n - 1) / n of the vector's bytes. Every algorithm must send this
    /// number of bytes from each of n nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower_bound_ns: Option<f64>,
    /// Whether every value was compared with the expected one and was correct.
    pub verified: bool,
    /// The ports of the network over the whole run, if the flow control does not use credits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<NetworkPortReport>,
}

/// The inputs that reproduce a report of a benchmark on a grid.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "GridManifest")]
pub struct Manifest {
    /// The cards, by name.
    pub specs: BTreeMap<String, CardManifest>,
    /// `--set` overrides, as given.
    pub overrides: Vec<String>,
    /// The grid of ranks, such as 4x4x2.
    pub grid: String,
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
}

/// The report of a benchmark on a grid: one row for each card and size.
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
    /// One row for each card and size.
    pub rows: Vec<Row>,
    /// The points with a failed run, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_points: Vec<FailedPoint>,
}

/// A request with resolved names.
struct Resolved {
    cards: Vec<(String, Card)>,
    grid: Grid,
    topology: Topology,
    flow_control: FlowControl,
    noise: Option<Noise>,
    faults: Faults,
    spread: nicety::Spread,
}

/// Runs a benchmark.
///
/// # Errors
/// When the input is invalid, before any run. When all runs failed: the error of the first one, such as a wrong value, with its
/// card and size.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let resolved = request.resolve(environment)?;
    let cards: Vec<&str> = resolved.cards.iter().map(|(_, card)| card.listing.hash.as_str()).collect();
    environment.agree(&(cards, format!("{:?} {:?}", resolved.faults, resolved.noise)))?;
    let total = resolved.cards.len() * request.sizes.len();
    let mut points = Points::new(environment.progress, total);
    for (nic, card) in &resolved.cards {
        for &size in &request.sizes {
            let run = || measure(nic, card, size, request, &resolved, environment);
            points.measure(|| format!("{nic}, {size} B"), run);
        }
    }
    let (rows, failed_points) = points.finish()?;
    let Resolved { cards, grid, topology, .. } = resolved;
    let nicety::Manifest { specs, overrides, .. } =
        nicety::Manifest::of(cards.iter().map(|(nic, card)| (nic, card)), &request.overrides);
    let manifest = Manifest {
        specs,
        overrides,
        grid: grid.to_string(),
        topology: topology.to_string(),
        flow_control: request.network.flow_control.clone(),
        noise: request.noise.clone(),
        faults: request.network.faults.clone(),
    };
    let (benchmark, seed) = (request.benchmark, request.network.seed);
    Ok(Report { benchmark, version: VERSION, seed, manifest, rows, failed_points })
}

fn measure(
    nic: &str,
    card: &Card,
    size: u64,
    request: &Request,
    resolved: &Resolved,
    environment: &Environment<'_>,
) -> Result<Row, Error> {
    let nodes = resolved.grid.ranks();
    let config = ClusterConfig {
        topology: resolved.topology,
        flow_control: resolved.flow_control,
        noise: resolved.noise.clone(),
        faults: resolved.faults.clone(),
        seed: request.network.seed,
        interrupt: environment.interrupt.clone().map(Into::into),
        log: environment.log.clone(),
        capture: environment.capture_of(format_args!("{size} B")),
        breakdown: false,
        ..ClusterConfig::new(nodes, card.clone())
    };
    let parts = in_parts(&config, &resolved.spread, &mut |_| true, |cluster, _| {
        Part::run(cluster, size, request, &resolved.grid)
    })?;
    let Part { rounds, sent_packets, hops, ports } = Part::whole(parts);
    let halo = request.benchmark == Benchmark::Halo;
    let spread = match request.benchmark {
        Benchmark::Halo => Spread::of(rounds.each(), 1),
        Benchmark::Allreduce => Spread::of(rounds.whole(), 1),
    };
    let a_second = |bytes: u64| bytes as f64 * 1e9 / spread.mean;
    Ok(Row {
        nic: nic.to_owned(),
        nodes,
        size_bytes: size,
        iterations: request.iterations,
        time_ns: spread.mean,
        min_ns: spread.min,
        p50_ns: spread.p50,
        p99_ns: spread.p99,
        max_ns: spread.max,
        sent_bytes: rounds.sent,
        sent_bytes_per_s: a_second(rounds.sent),
        hops_mean: hops as f64 / sent_packets as f64,
        faces: halo.then(|| halo::faces(&resolved.grid)),
        algorithm_bytes_per_s: (!halo).then(|| a_second(size)),
        lower_bound_ns: (!halo)
            .then(|| allreduce::lower_bound(nodes, size, injection(card, resolved.topology))),
        verified: true,
        ports,
    })
}

/// Returns the time per byte on the link from a card into its network.
fn injection(card: &Card, topology: Topology) -> Gap {
    let node = card.spec.node();
    let router = node.router.filter(|_| matches!(topology, Topology::Torus(_)));
    router.and_then(|router| router.gap).unwrap_or(node.link.gap)
}

/// The results of one part of the cluster.
#[derive(Serialize, Deserialize)]
struct Part {
    rounds: Rounds,
    /// The number of packets that cards sent, and the number of links that these packets crossed.
    sent_packets: u64,
    hops: u64,
    ports: Vec<NetworkPortReport>,
}

impl Part {
    fn run(cluster: &mut Cluster, size: u64, request: &Request, grid: &Grid) -> Result<Part, Error> {
        let rounds = Rc::new(RefCell::new(Rounds::new(request.warmup, request.iterations)));
        let results = BTreeMap::new();
        let mut point =
            Point { cluster, grid, seed: request.network.seed, size, rounds: rounds.clone(), results };
        match request.benchmark {
            Benchmark::Halo => halo::programs(&mut point)?,
            Benchmark::Allreduce => allreduce::programs(&mut point)?,
        }
        let network = point.cluster.run()?.network;
        if request.benchmark == Benchmark::Halo {
            halo::check(&point)?;
        }
        Ok(Part {
            rounds: rounds.take(),
            sent_packets: network.hosts.iter().map(|port| port.sent_packets).sum(),
            hops: network.hops(),
            ports: NetworkPortReport::all(&network),
        })
    }

    fn whole(parts: Vec<Part>) -> Part {
        let sum = |mut all: Part, more: Part| {
            all.rounds.add(more.rounds);
            all.sent_packets += more.sent_packets;
            all.hops += more.hops;
            all.ports.iter_mut().zip(&more.ports).for_each(|(port, more)| port.add(more));
            all
        };
        parts.into_iter().reduce(sum).expect("there is one part at least")
    }
}
