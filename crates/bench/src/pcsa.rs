//! The cardinality estimate on a network flow processor, and its gain from several contexts.
//!
//! A row has the cycles that the contexts of one microengine need for a total number of updates, including one start. It also has
//! the updates per second of the whole card, with this number of contexts on each microengine. Every update sets a new bit, and
//! so makes two memory references, as in the NFComms paper.

use super::{Plan, PlannedProgram, Points, Sweep, load_cards};
use nicety::cards::Card;
use nicety::{Environment, Error, Manifest, VERSION};
use nicety_apps::pcsa;
use nicety_nic_nfp::NfpSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes that a 64-byte packet takes on an Ethernet link. Preamble, start delimiter and gap are 20 bytes.
const WIRE_BYTES: f64 = 84.0;
/// Maximum number of updates in a row.
const MOST_UPDATES: u64 = pcsa::SHARED as u64;

fn usual_contexts() -> Vec<u64> {
    (1..=8).collect()
}

const fn usual_updates() -> u64 {
    8
}

fn usual_cards() -> Vec<String> {
    vec!["nfp-4000".to_owned()]
}

/// The cardinality estimate: how contexts hide the latency of memory.
///
/// Each row has the cycles that one microengine needs for a total number of updates. It also has the updates per second of the
/// whole card, with this number of contexts on each microengine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ContextOptions")]
pub struct Request {
    /// Cards to compare: names of specs, or paths of spec files.
    #[serde(default = "usual_cards")]
    pub nics: Vec<String>,
    /// Numbers of contexts, one row for each. 1..8 has steps of one, and 1:8 is a doubling range.
    #[serde(default = "usual_contexts")]
    #[schemars(extend("usual" = "1..8"))]
    pub contexts: Vec<u64>,
    /// Total number of updates on one microengine.
    #[serde(default = "usual_updates")]
    #[schemars(range(min = 1, max = MOST_UPDATES))]
    pub updates: u64,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
    #[serde(default)]
    pub overrides: Vec<String>,
}

/// The result for a number of contexts on a card.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ContextRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// Number of contexts that make updates.
    pub contexts: u64,
    /// Total number of updates of these contexts, on one microengine.
    pub updates: u64,
    /// Cycles from the start of the first context to the end of the last one. The other contexts first wait for the first one.
    pub cycles_total: u64,
    /// Cycles of `cycles_total` in which any context computed.
    pub cycles_computing: u64,
    /// Cycles of `cycles_total` in which all contexts with work left waited for memory.
    pub cycles_asleep: u64,
    /// Cycles of `cycles_total` in which the microengine switched to another context.
    pub cycles_switching: u64,
    /// Cycles in which contexts waited for memory, summed over the contexts.
    pub context_cycles_asleep: u64,
    /// Cycles in which contexts were ready while another one ran, summed over the contexts.
    pub context_cycles_ready: u64,
    /// `cycles_total` in nanoseconds.
    pub time_ns: f64,
    /// Updates per second of the whole card in steady state, with this number of contexts on every microengine. Each update makes
    /// two memory references.
    pub updates_per_s: f64,
    /// Updates per second if all bits are already set. Each update then makes one memory reference.
    pub updates_per_s_bits_set: f64,
    /// Number of 64-byte packets per second for which the card can make one update each.
    pub line_rate_packets_per_s: f64,
    /// Bit rate of an Ethernet link that carries these packets. Each takes 84 bytes.
    pub line_rate_bits_per_s: f64,
}

/// The benchmark's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Benchmark {
    /// `pcsa`.
    Pcsa,
}

/// The report of the benchmark `pcsa`: one row for each card and number of contexts.
pub type Report = Sweep<Row, Benchmark>;

impl Request {
    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the request of bench pcsa")
    }

    fn resolve(&self) -> Result<Vec<(String, Card)>, Error> {
        let wrong = |text: String| Err(Error::Input(text));
        if self.contexts.is_empty() {
            return wrong("no number of contexts named; write for example --contexts 1..8".into());
        }
        if !(1..=MOST_UPDATES).contains(&self.updates) {
            return wrong(format!("--updates is 1 to {MOST_UPDATES}, not {}", self.updates));
        }
        let cards = load_cards(&self.nics, &self.overrides, "nfp-4000")?;
        for (name, card) in &cards {
            let most = card.processor(name)?.contexts as u64;
            if let Some(contexts) = self.contexts.iter().find(|contexts| !(1..=most).contains(contexts)) {
                return wrong(format!(
                    "--contexts {contexts}: a microengine of {name} has {most} contexts; write 1 to {most}"
                ));
            }
        }
        Ok(cards)
    }
}

/// Checks a request, and lists the programs to compile for it: `nfp/pcsa.c` for each card.
///
/// # Errors
/// [`Error::Input`] when the request is invalid.
pub fn plan(request: &Request) -> Result<Plan<PlannedProgram>, Error> {
    let cards = request.resolve()?;
    let planned = |(name, card): &(String, Card)| PlannedProgram {
        key: name.clone(),
        isa: card.spec.isa().unwrap_or_default().to_owned(),
        interface: card.spec.interface(),
    };
    Ok(Plan { compile: cards.iter().map(planned).collect() })
}

/// Runs the benchmark. The compiled programs have the keys of the [`plan`].
///
/// # Errors
/// When the input is invalid, before any run. When all runs failed: the error of the first one, with its card and number of
/// contexts.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let cards = request.resolve()?;
    let total = cards.len() * request.contexts.len();
    let mut points = Points::new(environment.progress, total);
    for (nic, card) in &cards {
        let spec = card.processor(nic)?;
        let elf = environment.compiled.get(nic).ok_or_else(|| {
            Error::Input(format!("no compiled program for {nic}; compile what the plan names"))
        })?;
        for &contexts in &request.contexts {
            let run = || measure(nic, spec, elf, contexts, request.updates, environment);
            points.measure(|| format!("{nic}, {contexts} contexts"), run);
        }
    }
    let (rows, failed_points) = points.finish()?;
    let manifest = Manifest::of(cards.iter().map(|(nic, card)| (nic, card)), &request.overrides);
    Ok(Report { benchmark: Benchmark::Pcsa, version: VERSION, manifest, rows, failed_points })
}

fn measure(
    nic: &str,
    spec: &NfpSpec,
    elf: &[u8],
    contexts: u64,
    updates: u64,
    environment: &Environment<'_>,
) -> Result<Row, Error> {
    let interrupt = &environment.interrupt;
    let addresses = pcsa::fresh(updates as usize);
    let one = pcsa::share(spec, elf, &addresses, contexts as usize, interrupt.clone())?;
    let rates = pcsa::rates(spec, elf, contexts as usize, interrupt.as_ref())?;
    Ok(Row {
        nic: nic.to_owned(),
        contexts,
        updates,
        cycles_total: one.cycles,
        cycles_computing: one.core.computing,
        cycles_asleep: one.core.asleep,
        cycles_switching: one.core.switching,
        context_cycles_asleep: one.contexts.asleep,
        context_cycles_ready: one.contexts.ready,
        time_ns: spec.clock.cycles(one.cycles).ps() as f64 / 1e3,
        updates_per_s: rates.fresh,
        updates_per_s_bits_set: rates.settled,
        line_rate_packets_per_s: rates.fresh,
        line_rate_bits_per_s: rates.fresh * WIRE_BYTES * 8.0,
    })
}
