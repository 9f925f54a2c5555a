//! The benchmarks: node to node, programs over the same host API that users have.
//!
//! - `latency`: half a round trip of a ping and its reply, every byte of every reply checked, with its stages.
//! - `bandwidth`: a window of messages one way, from the first post to the last completion.
//! - `message-rate`: the same, counted in messages.
//!
//! A [`Request`] names cards, modes and sizes; [`plan`] says which handlers must be compiled for it, and [`run`] gives a
//! [`Report`] of one row for each card, mode and size.

mod latency;
mod mode;
mod request;
mod stream;

pub use mode::Mode;
use request::Resolved;
pub use request::{Benchmark, Plan, PlannedHandlers, Request, plan};

use crate::cards::{self, Card};
use crate::{Cluster, ClusterConfig, Error, HandlerNames, Handlers, Log, VERSION};
use nicety_nic::CardSpec;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A part of a latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    /// The stage's name.
    pub stage: &'static str,
    /// Its share in nanoseconds.
    pub ns: f64,
}

/// A result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
    /// Half a round trip, the mean over the iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
    /// The shortest iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<f64>,
    /// The longest iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<f64>,
    /// Payload bytes a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Messages a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_s: Option<f64>,
    /// Whether every byte was checked at the far end, and was right.
    pub verified: bool,
    /// Where the latency went; adds up to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<Vec<StageRow>>,
}

/// What identifies a card in a manifest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CardManifest {
    /// The card's title.
    pub title: String,
    /// Hash over all resolved values.
    pub spec_hash: String,
}

/// What makes a report reproducible.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manifest {
    /// The cards, by name.
    pub specs: BTreeMap<String, CardManifest>,
    /// `--set` overrides, as given.
    pub overrides: Vec<String>,
    /// How the nodes are joined.
    pub topology: &'static str,
}

/// The results of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The benchmark's name.
    pub benchmark: &'static str,
    /// The version of nicety.
    pub version: &'static str,
    /// The seed.
    pub seed: u64,
    /// What was run.
    pub manifest: Manifest,
    /// One row for each card, mode and size.
    pub rows: Vec<Row>,
}

/// Compiled handlers, by `card/mode` as [`plan`] names them.
pub type Compiled = BTreeMap<String, Vec<u8>>;

/// What a benchmark needs besides its request.
#[derive(Clone)]
pub struct Environment<'e> {
    /// Handlers, compiled.
    pub compiled: &'e Compiled,
    /// Takes what handlers print.
    pub log: Log,
    /// Set by somebody else, it ends the run.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Told after each row how many are done, of how many.
    pub progress: &'e dyn Fn(usize, usize),
}

/// One point of a benchmark: all that its programs need.
struct Point<'p> {
    cluster: ClusterConfig,
    mode: Mode,
    size: u64,
    handlers: Option<&'p Handlers>,
    users_handlers: bool,
    iterations: u64,
    warmup: u64,
    window: u64,
}

impl Point<'_> {
    fn cluster(&self) -> Result<Cluster, Error> {
        Cluster::new(self.cluster.clone())
    }
}

/// Runs a benchmark.
///
/// # Errors
/// Wrong input before anything runs; then whatever ends a run, with the card, mode and size it happened in.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let benchmark = request.benchmark;
    let Resolved { cards: loaded, modes, topology } = request.resolve()?;
    let mut handlers: Vec<Vec<Option<Handlers>>> = Vec::new();
    for (nic, card) in &loaded {
        let of_mode = |mode: &Mode| load_handlers(nic, card, *mode, request, environment);
        handlers.push(modes.iter().map(of_mode).collect::<Result<_, _>>()?);
    }
    let total = loaded.len() * modes.len() * request.sizes.len();
    let mut rows = Vec::with_capacity(total);
    for ((nic, card), handlers) in loaded.iter().zip(&handlers) {
        for (&mode, handlers) in modes.iter().zip(handlers) {
            for &size in &request.sizes {
                let cluster = ClusterConfig {
                    topology,
                    seed: request.seed,
                    interrupt: environment.interrupt.clone(),
                    log: environment.log.clone(),
                    ..ClusterConfig::new(2, card.clone())
                };
                let point = Point {
                    cluster,
                    mode,
                    size,
                    handlers: handlers.as_ref(),
                    users_handlers: request.handlers,
                    iterations: request.iterations.unwrap_or_else(|| benchmark.default_iterations(size)),
                    warmup: request.warmup.unwrap_or(1),
                    window: request.window.unwrap_or(64),
                };
                let row = match benchmark {
                    Benchmark::Latency => latency::measure(&point),
                    Benchmark::Bandwidth | Benchmark::MessageRate => stream::measure(&point, benchmark),
                };
                let row = row.map_err(|error| at_point(error, nic, mode, size))?;
                rows.push(Row { nic: nic.clone(), ..row });
                (environment.progress)(rows.len(), total);
            }
        }
    }
    let manifest_of = |(nic, card): &(String, Card)| {
        let title = card.listing.title.clone();
        (nic.clone(), CardManifest { title, spec_hash: card.listing.hash.clone() })
    };
    Ok(Report {
        benchmark: benchmark.name(),
        version: VERSION,
        seed: request.seed,
        manifest: Manifest {
            specs: loaded.iter().map(manifest_of).collect(),
            overrides: request.overrides.clone(),
            topology: topology.name(),
        },
        rows,
    })
}

fn at_point(error: Error, nic: &str, mode: Mode, size: u64) -> Error {
    let wrap = |text: String| format!("{nic}, mode {}, {size} B: {text}", mode.name());
    match error {
        Error::Input(text) => Error::Input(wrap(text)),
        Error::Program(text) => Error::Program(wrap(text)),
        Error::HandlerTrap(text) => Error::HandlerTrap(wrap(text)),
        Error::Deadlock(text) => Error::Deadlock(wrap(text)),
        Error::Interrupted => Error::Interrupted,
    }
}

fn load_handlers(
    nic: &str,
    card: &Card,
    mode: Mode,
    request: &Request,
    environment: &Environment<'_>,
) -> Result<Option<Handlers>, Error> {
    if mode.handlers(request.benchmark).is_none() {
        return Ok(None);
    }
    let key = request::compiled_key(nic, mode);
    let elf = environment
        .compiled
        .get(&key)
        .ok_or_else(|| Error::Input(format!("no compiled handlers for {key}; compile what the plan names")))?;
    let CardSpec::Spin(spec) = &card.spec;
    let handlers = Handlers::load(elf, &HandlerNames::default(), &spec.hpu)?;
    handlers.check(&spec.hpu)?;
    Ok(Some(handlers))
}

/// Reads the cards of a request; their names in results are those of their specs.
fn load_cards(names: &[String], overrides: &[String]) -> Result<Vec<(String, Card)>, Error> {
    names
        .iter()
        .map(|name| {
            let card = cards::load(name, overrides)?;
            Ok((card.listing.name.clone(), card))
        })
        .collect()
}
