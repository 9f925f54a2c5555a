//! Compares the CPU costs of two methods. One copies a message into memory that the card may use. The other registers the memory
//! of the message itself.
//!
//! A row has both costs for one size. They are the cost of the copy, and the cost of locking and translating the pages, until the
//! card may fetch the bytes. The crossover is the smallest size from which on translation takes no longer than the copy.

use super::{FailedPoint, Points, load_cards};
use nicety::cards::Card;
use nicety::{Cluster, ClusterConfig, Environment, Error, Host, Manifest, VERSION};
use nicety_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::rc::Rc;

fn usual_cards() -> Vec<String> {
    vec!["qnix".to_owned()]
}

/// The cost of copying a message into registered memory, or of registering the memory of the message.
///
/// Each row has the CPU time until the card may fetch a message of that size. The crossover below is the size from which on
/// locking and translating takes no longer than copying.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RegistrationOptions")]
pub struct Request {
    /// Cards to compare: names of specs, or paths of spec files.
    #[serde(default = "usual_cards")]
    pub nics: Vec<String>,
    /// Sizes in bytes: a list with commas, or a doubling range such as 64:2Mi.
    #[schemars(extend("usual" = "64:2Mi"))]
    pub sizes: Vec<u64>,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example kernel.pin='3 us'.
    #[serde(default)]
    pub overrides: Vec<String>,
}

/// The CPU costs for one size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "RegistrationRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// Size of the message in bytes.
    pub size_bytes: u64,
    /// Number of pages of a buffer that begins at a page boundary.
    pub pages: u64,
    /// CPU time of a copy into memory from which the card may fetch.
    pub copy_ns: f64,
    /// CPU time of the system call that locks and translates the pages. It includes the transfer of page descriptors to the card,
    /// if the card uses any.
    pub translate_ns: f64,
}

/// The crossover of a card: the size from which on translation takes no longer than a copy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Crossover {
    /// The card.
    pub nic: String,
    /// The smallest size from which on translation takes no longer than a copy, between the smallest and the largest measured
    /// size. None if a copy is faster at the largest size.
    pub crossover_bytes: Option<u64>,
}

/// The benchmark's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Benchmark {
    /// `registration`.
    Registration,
}

/// The report of the benchmark `registration`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The version of nicety.
    pub version: &'static str,
    /// The inputs.
    pub manifest: Manifest,
    /// One row for each card and size.
    pub rows: Vec<Row>,
    /// The points with a failed run, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_points: Vec<FailedPoint>,
    /// One crossover for each card.
    pub crossovers: Vec<Crossover>,
}

impl Request {
    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the request of bench registration")
    }

    fn resolve(&self) -> Result<Vec<(String, Card)>, Error> {
        let wrong = |text: String| Err(Error::Input(text));
        if self.sizes.is_empty() {
            return wrong("no size named; write for example --sizes 64:2Mi".into());
        }
        let cards = load_cards(&self.nics, &self.overrides, "qnix")?;
        for (name, card) in &cards {
            let Some(most) = card.spec.registers() else {
                return wrong(format!(
                    "card {name} does not register memory: it reaches all of the host's memory; name one that \
                     does, for example qnix"
                ));
            };
            if let Some(size) = self.sizes.iter().find(|&&size| size == 0 || size > most) {
                return wrong(format!("--sizes {size}: {name} registers 1 to {most} bytes at a time"));
            }
        }
        Ok(cards)
    }
}

/// Runs the benchmark.
///
/// # Errors
/// When the input is invalid, before any run. When all runs failed: the error of the first one, with its card and size.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let cards = request.resolve()?;
    let total = cards.len() * request.sizes.len();
    let (mut points, mut crossovers) = (Points::new(environment.progress, total), Vec::new());
    for (nic, card) in &cards {
        let place = |size| format!("{nic}, {size} B");
        for &size in &request.sizes {
            let run = || {
                let Costs { pages, copy, translate } = measure(card, size, environment)?;
                let ns = |time: Duration| time.ps() as f64 / 1e3;
                let (copy_ns, translate_ns) = (ns(copy), ns(translate));
                Ok(Row { nic: nic.clone(), size_bytes: size, pages, copy_ns, translate_ns })
            };
            points.measure(|| place(size), run);
        }
        let pays = |size| {
            let costs = measure(card, size, environment).map_err(|error| error.inside(&place(size)))?;
            Ok(costs.translate <= costs.copy)
        };
        let measured = points.rows().iter().filter(|row| row.nic == *nic).map(|row| row.size_bytes);
        if let (Some(least), Some(most)) = (measured.clone().min(), measured.max()) {
            let crossover_bytes = crossover(least, most, pays)?;
            crossovers.push(Crossover { nic: nic.clone(), crossover_bytes });
        }
    }
    let (rows, failed_points) = points.finish()?;
    let manifest = Manifest::of(cards.iter().map(|(nic, card)| (nic, card)), &request.overrides);
    let benchmark = Benchmark::Registration;
    Ok(Report { benchmark, version: VERSION, manifest, rows, failed_points, crossovers })
}

/// Returns the smallest value from which on `holds` is true; `None` if it is false for `most`. `holds` must not become false
/// again.
fn crossover(
    mut least: u64,
    mut most: u64,
    holds: impl Fn(u64) -> Result<bool, Error>,
) -> Result<Option<u64>, Error> {
    if !holds(most)? {
        return Ok(None);
    }
    while least < most {
        let middle = least + (most - least) / 2;
        if holds(middle)? {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    Ok(Some(most))
}

/// The costs for one size.
#[derive(Clone, Copy)]
struct Costs {
    pages: u64,
    copy: Duration,
    translate: Duration,
}

fn measure(card: &Card, size: u64, environment: &Environment<'_>) -> Result<Costs, Error> {
    let interrupt = environment.interrupt.clone().map(Into::into);
    let capture = environment.capture_of(format_args!("{size} B"));
    let mut cluster =
        Cluster::new(ClusterConfig { interrupt, capture, ..ClusterConfig::new(2, card.clone()) })?;
    let measured = Rc::new(Cell::new(None));
    let result = measured.clone();
    cluster.program(0, async move |host: Host| {
        let from = host.alloc(size)?;
        let start = host.now();
        match host.vni() {
            Ok(vni) => vni.copy_to_pool(&from).await?,
            // The destination represents memory that a driver locked, or a process registered, before the measurement.
            Err(_) => host.copy(&from, &host.alloc(size)?).await?,
        }
        let copied = host.now();
        let pages = match host.vni() {
            Ok(vni) => vni.lock_and_translate(&from).await?,
            Err(_) => match host.rdma() {
                Ok(rdma) => {
                    rdma.register(&from).await?;
                    rdma.registered().1
                }
                Err(_) => host.channels()?.lock(&from).await,
            },
        };
        let translate = host.now().since(copied);
        result.set(Some(Costs { pages, copy: copied.since(start), translate }));
        Ok(())
    });
    cluster.run()?;
    measured.get().ok_or_else(|| Error::Program("nothing was measured".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossover_is_the_first_size_that_pays() {
        for first in [1, 2, 63, 64, 65, 100] {
            assert_eq!(crossover(1, 100, |size| Ok(size >= first)), Ok(Some(first)));
        }
        assert_eq!(crossover(1, 100, |size| Ok(size >= 101)), Ok(None));
        assert_eq!(crossover(50, 100, |size| Ok(size >= 7)), Ok(Some(50)));
    }
}
