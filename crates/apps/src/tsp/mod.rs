//! The travelling salesman problem on a network flow processor. It makes many climbs by 2-opt, and returns the best tour.
//!
//! - [`cities`]: cities and their distances.
//! - [`read`], [`parse`] (`file`): problems in TSPLIB's format.
//! - [`Request`], [`plan`], [`run`]: climbs on a card.
//! - `parts.rs`: the jobs of a run, which several CPUs simulate at the same time.
//! - `state.rs`: a file of finished jobs, from which a run can resume.
//! - `cpu.rs`: the same climbs on this machine's CPUs.
//! - [`card`]: one job on the card.
//!
//! # Card time
//! The host gives the card jobs of [`Request::job`] climbs, one after another. The last job has the remaining climbs. A job
//! begins when the previous one has ended. The time of a job lasts from the host's message with the cities until the host has
//! received the best tour. Jobs are independent, so card time is the sum of their times. It does not depend on the order in which
//! they are simulated, nor on the number of CPUs.

pub mod card;
pub mod cities;
mod cpu;
mod file;
mod parts;
mod state;

pub use cpu::Cpu;
pub(crate) use file::plain;
pub use file::{Instance, KRO_A100, parse, read};

use card::{Best, Distances, Source, TspJob};
use nicety::cards::{self, Card};
use nicety::{Environment, Error, Manifest, VERSION};
use nicety_nic_nfp::{MemoryKind, NfpSpec};
use parts::Plan as Parts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use state::{Part, State};

/// Default number of climbs of a job, for each climber.
const CLIMBS_EACH: u32 = 10;

/// Maximum number of jobs of a run.
const MOST_JOBS: u32 = 10_000;

fn usual_card() -> String {
    "nfp-4000".to_owned()
}

const fn usual_restarts() -> u32 {
    200
}

const fn usual_climbers() -> u32 {
    59
}

const fn usual_seed() -> u32 {
    1
}

/// Look for a short tour: many climbs by 2-opt on the microengines of a card.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TourOptions")]
pub struct Request {
    /// The file of the problem, or `kroA100`.
    #[schemars(extend("format" = "derived"))]
    pub file: String,
    /// The card: a name, or the path of a specification file.
    #[serde(default = "usual_card")]
    #[schemars(extend("metavar" = "NAME", "format" = "path"))]
    pub nic: String,
    /// Changes to the card, `KEY=VALUE` with a unit where the key has one, for example hpu.clock="800 MHz".
    #[serde(default)]
    pub overrides: Vec<String>,
    /// The total number of climbs, each from a random tour.
    #[serde(default = "usual_restarts")]
    #[schemars(range(min = 1))]
    pub restarts: u32,
    /// The number of processes that climb. Each is on a separate microengine, and the manager is on one more.
    #[serde(default = "usual_climbers")]
    #[schemars(range(min = 1))]
    pub climbers: u32,
    /// `table`: distances from a table in the nearest memory that holds it; `root`: an integer square root each time, for EUC_2D
    /// with whole coordinates. Both are exact.
    #[serde(default)]
    #[schemars(extend("metavar" = "table|root"))]
    pub distances: Distances,
    /// The number of climbs in a job for the card. Default: ten for each climber.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub job: Option<u32>,
    /// The seed of the random tours.
    #[serde(default = "usual_seed")]
    pub seed: u32,
    /// Whether the CPUs of this machine also make the climbs.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub compare_cpu: bool,
    /// A file that keeps finished jobs. A later run resumes from it.
    #[serde(default)]
    #[schemars(extend("metavar" = "FILE", "format" = "path"))]
    pub resume: Option<String>,
    /// A digest of the program's sources and compiler options. A finished job is valid only for the same program.
    #[serde(default)]
    #[schemars(extend("format" = "derived"))]
    pub program: String,
}

/// The program to compile before a request can run, and the distances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The source file of the program: `nfp/tsp.c` or `nfp/tsp_table.c`.
    pub program: &'static str,
    /// The instruction set for which the program is compiled.
    pub isa: String,
    /// The distances of all pairs of cities, by rows.
    pub distances: Vec<Vec<u32>>,
    /// The number of each city in the file.
    pub nodes: Vec<u32>,
    /// The seed.
    pub seed: u32,
}

/// The application's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Application {
    /// `tsp`.
    Tsp,
}

/// The part of the system that computes a table of distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum TableMaker {
    /// The climbers of each island, from coordinates.
    Card,
    /// The host, which sends the table to the card.
    Host,
}

/// The table in which climbers look distances up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TourTable {
    /// The part of the system that computes the table: `card` or `host`.
    pub made_by: TableMaker,
    /// The memory that has the table: `CLS` or `CTM` (of each island), `IMEM` or `EMEM`.
    pub memory: &'static str,
    /// Bytes of a distance.
    pub distance_bytes: u32,
}

impl TourTable {
    fn of(source: Source) -> Option<TourTable> {
        match source {
            Source::Roots => None,
            Source::Climbers => Some(TourTable {
                made_by: TableMaker::Card,
                memory: MemoryKind::Cls.name(),
                distance_bytes: 2,
            }),
            Source::Host(placement) => Some(TourTable {
                made_by: TableMaker::Host,
                memory: placement.memory.name(),
                distance_bytes: placement.distance_bytes,
            }),
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The application.
    pub application: Application,
    /// The version of nicety.
    pub version: &'static str,
    /// The seed.
    pub seed: u32,
    /// The inputs that reproduce the run.
    pub manifest: Manifest,
    /// The name of the problem in the file.
    pub problem: String,
    /// Number of cities.
    pub cities: usize,
    /// TSPLIB's name for the kind of distances, such as `EUC_2D`.
    pub edge_weight_type: &'static str,
    /// The card.
    pub nic: String,
    /// Number of climbs.
    pub restarts: u32,
    /// Number of climbers.
    pub climbers: u32,
    /// The source of distances: `table` or `root`.
    pub distances: Distances,
    /// The table of distances on the card. Not present with `--distances root`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<TourTable>,
    /// Number of climbs in a job.
    pub job_climbs: u32,
    /// Number of jobs.
    pub jobs: usize,
    /// The length of the shortest tour.
    pub length: u32,
    /// The number of the climb that found this tour. If several did, it is the lowest number.
    pub climb: u32,
    /// The shortest tour, as the numbers of the cities in the file.
    pub tour: Vec<u32>,
    /// The sum of the jobs' times on the card, in virtual time.
    pub card_time_ns: f64,
    /// Climbs per second of card time.
    pub card_climbs_per_s: f64,
    /// Cycles in which climbers computed, summed over all climbers.
    pub climber_cycles_computing: u64,
    /// Cycles in which climbers waited for memory, summed over all climbers.
    pub climber_cycles_asleep: u64,
    /// Number of instructions of all processes.
    pub instructions: u64,
    /// The same climbs on the CPUs of this machine, in wall-clock time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// The same climbs on a graphics processor. The caller runs them there and fills in this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
}

/// The time of the climbs on a graphics processor, by the clock of that processor. It does not include compilation and data
/// transfer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "GpuFigures")]
pub struct Gpu {
    /// The name of the device.
    pub processor: String,
    /// The measured time in seconds.
    pub device_time_s: f64,
    /// Climbs per second.
    pub climbs_per_s: f64,
    /// The length of the shortest tour, which equals the card's.
    pub length: u32,
}

impl Request {
    /// Reads a request from its JSON text.
    ///
    /// # Errors
    /// [`Error::Input`] with the wrong JSON or fields.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        nicety::from_json(text, "the request of tsp")
    }

    fn job_climbs(&self) -> u32 {
        self.job.unwrap_or(CLIMBS_EACH.saturating_mul(self.climbers))
    }

    fn resolve(&self) -> Result<Resolved, Error> {
        let instance = read(&self.file)?;
        let card = cards::load(&self.nic, &self.overrides)?;
        let nic = card.listing.name.clone();
        let spec = card.processor(&nic)?.clone();
        if self.job == Some(0) {
            return Err(Error::Input("--job 0: a job has 1 climb at least".into()));
        }
        let jobs = self.restarts.div_ceil(self.job_climbs().max(1));
        if jobs > MOST_JOBS {
            return Err(Error::Input(format!(
                "--restarts {}: {jobs} jobs of {} climbs are too many; write --job {} or more",
                self.restarts,
                self.job_climbs(),
                self.restarts.div_ceil(MOST_JOBS)
            )));
        }
        let job = TspJob {
            cities: instance.cities.clone(),
            first: 0,
            climbs: self.restarts,
            climbers: self.climbers as usize,
            seed: self.seed,
            distances: self.distances,
        };
        let source = job.check(&spec)?;
        Ok(Resolved { instance, card, nic, spec, job, source })
    }
}

/// The resolved names of a request.
struct Resolved {
    instance: Instance,
    card: Card,
    nic: String,
    spec: NfpSpec,
    /// All climbs of the run, as one job.
    job: TspJob,
    source: Source,
}

/// Checks a request, and returns the program to compile for it.
///
/// # Errors
/// [`Error::Input`] when the request is wrong.
pub fn plan(request: &Request) -> Result<Plan, Error> {
    let Resolved { instance, spec, source, .. } = request.resolve()?;
    let distances = instance.cities.table().rows().map(<[u32]>::to_vec).collect();
    Ok(Plan {
        program: source.program(),
        isa: spec.isa,
        distances,
        nodes: instance.nodes,
        seed: request.seed,
    })
}

/// Computes the tour lengths of all climbs on the CPUs of this machine. They are in the order of climb numbers, and equal those
/// of the card.
///
/// # Errors
/// When the input is invalid, or the run is interrupted.
pub fn lengths(request: &Request, environment: &Environment<'_>) -> Result<Vec<u32>, Error> {
    cpu::lengths(&request.resolve()?.job, environment)
}

/// Runs the climbs of a request. The compiled program of its [`plan`] has the key `tsp`. Progress is in climbs.
///
/// # Errors
/// When the input is invalid, before any run. Also any error of the run.
pub fn run(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let Resolved { instance, card, nic, spec, job, source } = request.resolve()?;
    let elf = environment.compiled.get("tsp").ok_or_else(|| {
        Error::Input(format!("no compiled program under the key tsp; compile {}", source.program()))
    })?;
    let each = request.job_climbs();
    let plan = Parts { spec: &spec, elf, job: &job, each };
    let mut state = State::open(request, &instance, &card.listing.hash)?;
    let parts = plan.run(&mut state, environment)?;
    let best: &Best = parts.iter().map(|part| &part.best).min().expect("one part at least");
    let cpu = if request.compare_cpu { Some(cpu::climb(&job, environment, best)?) } else { None };
    let sum = |of: fn(&Part) -> u64| parts.iter().map(of).sum::<u64>();
    let nanoseconds = sum(|part| part.time_ps) as f64 / 1e3;
    Ok(Report {
        application: Application::Tsp,
        version: VERSION,
        seed: request.seed,
        manifest: Manifest::of([(&nic, &card)], &request.overrides),
        problem: instance.name,
        cities: instance.cities.count(),
        edge_weight_type: instance.edge_weight_type,
        nic,
        restarts: request.restarts,
        climbers: request.climbers,
        distances: job.distances,
        table: TourTable::of(source),
        job_climbs: each.min(request.restarts),
        jobs: parts.len(),
        length: best.length,
        climb: best.number,
        tour: best.tour.iter().map(|&city| instance.nodes[usize::from(city)]).collect(),
        card_time_ns: nanoseconds,
        card_climbs_per_s: f64::from(request.restarts) / nanoseconds * 1e9,
        climber_cycles_computing: sum(|part| part.computing),
        climber_cycles_asleep: sum(|part| part.asleep),
        instructions: sum(|part| part.instructions),
        cpu,
        gpu: None,
    })
}
