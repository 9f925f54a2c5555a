//! The request of a benchmark on a grid.

use super::shape::Grid;
use super::{Resolved, values};
use crate::load_cards;
use crate::request::NOISE;
use nicety::cards::Card;
use nicety::options::{NetworkOptions, Threads};
use nicety::{Environment, Error, Noise, Topology, flow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of iterations, measured or for warm-up. The times of all ranks are kept.
const MOST_ITERATIONS: u64 = 10_000;
/// Maximum bytes of a face or vector.
const LARGEST: u64 = 1 << 30;
/// Default number of hosts, if neither grid nor topology gives it.
const USUAL_NODES: u32 = 8;

/// The benchmark's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "GridBenchmark")]
pub enum Benchmark {
    /// Every rank exchanges faces with its neighbours.
    Halo,
    /// Every rank gets the sum of all ranks' vectors.
    Allreduce,
}

const fn usual_iterations() -> u64 {
    4
}

const fn usual_warmup() -> u64 {
    1
}

/// The request of a benchmark on a grid of ranks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GridOptions")]
pub struct Request {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// Cards to compare: names of specs, or paths of spec files.
    #[schemars(extend("example" = "spin-discrete"))]
    pub nics: Vec<String>,
    /// Bytes of a face or of the vector: a list with commas, or a doubling range such as 1Ki:64Ki. Each size is a multiple of 8.
    #[schemars(extend("usual" = {"halo": "1Ki:64Ki", "allreduce": "8Ki:1Mi"}))]
    pub sizes: Vec<u64>,
    /// The ranks in each of one to three dimensions, such as 4x4x2. Default: the dimensions of the topology. If it has none,
    /// three dimensions that are as equal as possible.
    #[serde(default)]
    #[schemars(extend("metavar" = "XxYxZ"))]
    pub grid: Option<String>,
    /// Number of hosts. Default: the number in the grid or the topology, or 8.
    #[serde(default)]
    #[schemars(range(min = 2))]
    pub nodes: Option<u32>,
    /// The network.
    #[serde(flatten)]
    pub network: NetworkOptions,
    /// Number of measured iterations for each size.
    #[serde(default = "usual_iterations")]
    #[schemars(range(min = 1, max = MOST_ITERATIONS))]
    pub iterations: u64,
    /// Number of iterations before the measured ones.
    #[serde(default = "usual_warmup")]
    #[schemars(range(max = MOST_ITERATIONS))]
    pub warmup: u64,
    /// The threads.
    #[serde(flatten)]
    pub threads: Threads,
    /// Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Background noise.
    #[serde(default)]
    #[schemars(extend("description" = NOISE, "metavar" = "PERIOD,DURATION"))]
    pub noise: Option<String>,
}

impl Request {
    /// Returns a request with default values.
    pub fn new(benchmark: Benchmark, nics: &[&str], sizes: &[u64]) -> Request {
        Request {
            benchmark,
            nics: nics.iter().map(|&nic| nic.to_owned()).collect(),
            sizes: sizes.to_vec(),
            grid: None,
            nodes: None,
            network: NetworkOptions::default(),
            iterations: usual_iterations(),
            warmup: usual_warmup(),
            threads: Threads::default(),
            overrides: Vec::new(),
            noise: None,
        }
    }

    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the invalid JSON or fields.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the request of a benchmark on a grid")
    }

    /// Reads the cards, the grid and the topology, and checks the numbers of the request.
    pub(super) fn resolve(&self, environment: &Environment<'_>) -> Result<Resolved, Error> {
        let wrong = |text: String| Err(Error::Input(text));
        if self.sizes.is_empty() {
            return wrong("no size named; write for example --sizes 1Ki:64Ki".into());
        }
        let fits =
            |size: &u64| size.is_multiple_of(values::BYTES) && (values::BYTES..=LARGEST).contains(size);
        if let Some(size) = self.sizes.iter().find(|size| !fits(size)) {
            return wrong(format!(
                "--sizes {size}: write a multiple of {} bytes, the size of a value, up to 1Gi",
                values::BYTES
            ));
        }
        for (name, value, least) in [("--iterations", self.iterations, 1), ("--warmup", self.warmup, 0)] {
            if !(least..=MOST_ITERATIONS).contains(&value) {
                return wrong(format!("{name} is {least} to {MOST_ITERATIONS}, not {value}"));
            }
        }
        let cards = load_cards(&self.nics, &self.overrides, "spin-discrete")?;
        let (grid, topology) = self.place(&cards)?;
        let flow_control = self.network.flow_control()?;
        cards.iter().try_for_each(|(_, card)| flow::check(flow_control, topology, grid.ranks(), card))?;
        Ok(Resolved {
            cards,
            grid,
            topology,
            flow_control,
            noise: self.noise.as_deref().map(str::parse::<Noise>).transpose()?,
            faults: self.network.faults()?,
            spread: environment.spread(self.threads.threads)?,
        })
    }

    /// Returns the grid of ranks, and the topology of the network between their hosts.
    fn place(&self, cards: &[(String, Card)]) -> Result<(Grid, Topology), Error> {
        let topology = self.network.topology()?;
        let grid = match (&self.grid, self.nodes) {
            (Some(grid), nodes) => {
                let grid: Grid = grid.parse()?;
                if let Some(nodes) = nodes.filter(|&nodes| nodes != grid.ranks()) {
                    return Err(Error::Input(format!(
                        "--grid {grid} has {} ranks, but --nodes is {nodes}; leave out --nodes",
                        grid.ranks()
                    )));
                }
                grid
            }
            (None, nodes) => match topology {
                Some(Topology::Torus(torus)) => {
                    let nodes = nodes.or(torus.hosts()).unwrap_or(USUAL_NODES);
                    Grid::of_torus(
                        &torus.shape(nodes as usize).map_err(|error| Error::Input(error.of_options(true)))?,
                    )?
                }
                Some(Topology::Pair) => Grid::balanced(nodes.unwrap_or(2))?,
                _ => Grid::balanced(nodes.unwrap_or(USUAL_NODES))?,
            },
        };
        let usual = if grid.ranks() == 2 { Topology::Pair } else { Topology::Star };
        let topology = topology.unwrap_or(usual);
        for (_, card) in cards {
            topology.check(grid.ranks() as usize, &card.spec.node().switch).map_err(|error| {
                Error::Input(format!("--grid {grid} has {} ranks: {}", grid.ranks(), error.of_options(true)))
            })?;
        }
        Ok((grid, topology))
    }
}
