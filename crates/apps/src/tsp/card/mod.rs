//! A job on the card: `handlers/nfp/tsp.c` makes climbs on microengines, and `handlers/nfp/tsp_table.c` with distances of the
//! host. `distances.rs` chooses between them. `native.rs` makes the same climbs in native code.

mod distances;
mod native;

pub use distances::{Distances, Placement, Source};
pub use native::{Best, Climber};

use super::cities::{COORDINATE_END, Cities};
use crate::experiment::{self, Bench, ExperimentError};
use nicety_nic_nfp::{ContextCounters, MemoryKind, Nfp, NfpSpec, map};
use nicety_types::{Duration, Path};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Maximum number of cities that the card's program supports.
pub const MOST_CITIES: usize = 256;
/// Maximum number of climbers that the card's program supports.
pub const MOST_CLIMBERS: usize = 64;

/// The offsets of the parts of a job in memory, as in `tsp.h`.
mod job {
    pub(super) const ORDER: usize = 64 + 4 * super::MOST_CITIES;
    pub(super) const NEXT: u64 = ORDER as u64;
    pub(super) const FOUND: usize = ORDER + 64;
    pub(super) const TOURS: usize = FOUND + 8 * super::MOST_CLIMBERS;
    pub(super) const END: usize = TOURS + super::MOST_CITIES * super::MOST_CLIMBERS;
}

/// Bytes of a job in IMEM.
const JOB_BYTES: u32 = job::END as u32;

/// The target number of the manager.
const TARGET: u32 = 1;

/// A job: climbs that the card makes.
#[derive(Clone, Debug)]
pub struct TspJob {
    /// The cities.
    pub cities: Cities,
    /// The number of the first climb.
    pub first: u32,
    /// The number of climbs.
    pub climbs: u32,
    /// Number of climbers. Each is on a separate microengine, and the manager is on one more.
    pub climbers: usize,
    /// The seed of the random numbers of the climbs.
    pub seed: u32,
    /// The way in which climbers find distances.
    pub distances: Distances,
}

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TspRun {
    /// The shortest tour. If several have this length, it is the one with the lowest climb number.
    pub best: Best,
    /// Virtual time from the host's message with the job until it has received the tour.
    pub time: Duration,
    /// The use of cycles, summed over the climbers.
    pub climbers: ContextCounters,
    /// Number of instructions of all processes.
    pub instructions: u64,
}

impl TspJob {
    /// Returns the source of distances, or an error if the job does not fit the card's program or the card.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] with a correction.
    pub fn check(&self, spec: &NfpSpec) -> Result<Source, ExperimentError> {
        let wrong = |text: String| Err(ExperimentError::Input(text));
        let (cities, climbers) = (self.cities.count(), self.climbers);
        if !(5..=MOST_CITIES).contains(&cities) {
            return wrong(format!("{cities} cities; the card's program takes 5 to {MOST_CITIES}"));
        }
        if let Cities::Plane(points) = &self.cities
            && let Some(&(x, y)) = points.iter().find(|&&(x, y)| x.max(y) >= COORDINATE_END)
        {
            return wrong(format!(
                "a city at ({x}, {y}); the card's program takes coordinates below {COORDINATE_END}"
            ));
        }
        if self.climbs == 0 || self.first.checked_add(self.climbs).is_none() {
            return wrong(format!(
                "climbs {}, first {}: need at least one climb and numbers below 2^32",
                self.climbs, self.first
            ));
        }
        let most = MOST_CLIMBERS.min(spec.cores - 1);
        if most == 0 {
            return wrong(format!(
                "{climbers} climbers on 1 microengine, which is the manager's; the card needs at least 2 \
                 microengines (hpu.cores)"
            ));
        }
        if !(1..=most).contains(&climbers) {
            return wrong(format!(
                "{climbers} climbers on {} microengines, one for the manager; write 1 to {most}",
                spec.cores
            ));
        }
        Source::of(&self.cities, self.distances, spec)
    }
}

/// Runs a job on a card. The manager is on microengine 0, and each following microengine has one climber. The host sends the job
/// and receives the tour over a channel. `elf` is the job's program ([`Source::program`]), compiled for the instruction set of
/// the card. If another thread sets `interrupt`, the run ends.
///
/// # Errors
/// When the job is invalid, the program does not fit, a process stops, or the channel fails.
pub fn run(
    spec: &NfpSpec,
    elf: &[u8],
    job: &TspJob,
    interrupt: Option<Arc<AtomicBool>>,
) -> Result<TspRun, ExperimentError> {
    run_watched(spec, elf, job, interrupt, None)
}

/// Virtual time between two counts of climbs for the display of progress.
const LOOK_EVERY: Duration = Duration::from_us(1000);

/// As [`run`]. Also adds climbs to `made` when the manager has given them to climbers.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    spec: &NfpSpec,
    elf: &[u8],
    job: &TspJob,
    interrupt: Option<Arc<AtomicBool>>,
    made: Option<Arc<AtomicU32>>,
) -> Result<TspRun, ExperimentError> {
    let source = job.check(spec)?;
    let job = job.clone();
    experiment::run_with_host(spec, elf, interrupt, move |bench| async move {
        let places = start(&bench, job.climbers)?;
        let nfp = bench.card.processor();
        let over = Rc::new(Cell::new(false));
        if let Some(made) = made {
            bench.sim.spawn(watch(nfp.clone(), job.climbs, made, over.clone()));
        }
        let (best, time) = bench.beside(&places, ask(&bench, &job, source)).await?;
        over.set(true);
        let counters = (1..=job.climbers).map(|core| nfp.context_counters(core, 0));
        let climbers = counters.fold(ContextCounters::default(), |a, b| a + b);
        Ok(TspRun { best, time, climbers, instructions: nfp.instructions() })
    })
}

/// Starts the manager and the climbers. Returns their places.
fn start(bench: &Bench, climbers: usize) -> Result<Vec<(usize, usize)>, ExperimentError> {
    let (nfp, image) = (bench.card.processor(), bench.program.image());
    let (climber, manager) = (image.require("tsp_climber")?, image.require("tsp_manager")?);
    (0..=climbers).try_for_each(|core| nfp.load(core, &bench.program, 1))?;
    nfp.start(0, 0, manager, &[map::IMEM, TARGET]);
    let island = nfp.spec().island;
    for core in 1..=climbers {
        let first = (core / island * island).max(1);
        let last = (core / island * island + island - 1).min(climbers);
        let members = last + 1 - first;
        nfp.start(core, 0, climber, &[map::IMEM, core as u32 - 1, first as u32, members as u32]);
    }
    Ok((0..=climbers).map(|core| (core, 0)).collect())
}

/// Sends the job as the host does. Returns the best tour, and the time.
async fn ask(bench: &Bench, job: &TspJob, source: Source) -> Result<(Best, Duration), ExperimentError> {
    let (order, tour) =
        (bench.memory.allocate(job::ORDER as u64)?, bench.memory.allocate(MOST_CITIES as u64)?);
    bench.memory.write(order.address(), &words(head(job, source)))?;
    if let Cities::Plane(points) = &job.cities {
        let packed = points.iter().map(|&(x, y)| u32::from(x) | u32::from(y) << 16);
        bench.memory.write(order.address() + 64, &words(packed))?;
    }
    let table = match source {
        Source::Host(placement) => {
            let table = bench.memory.allocate(placement.bytes.into())?;
            bench.memory.write(table.address(), &placement.contents(&job.cities.table()))?;
            Some((table, placement.bytes))
        }
        Source::Roots | Source::Climbers => None,
    };

    let device = bench.card.open();
    let mut path = Path::from(bench.sim.now());
    let channel = device.subscribe(&mut path, TARGET).await?;
    let begun = bench.sim.now();
    device.send_indirect(&mut path, channel, order.address(), job::ORDER as u32, None).await?;
    if let Some((table, bytes)) = &table {
        device.send_indirect(&mut path, channel, table.address(), *bytes, None).await?;
    }
    let found = device.receive(&mut path, channel, 8, None).await?;
    let cities = job.cities.count();
    device.receive_indirect(&mut path, channel, tour.address(), cities as u32, None).await?;
    let time = bench.sim.now().since(begun);

    let word = |at: usize| u32::from_le_bytes(found[at..at + 4].try_into().expect("four bytes"));
    let mut cities = vec![0; cities];
    tour.bytes().expect("it is no phantom").read(0, &mut cities);
    Ok((Best { length: word(0), number: word(4), tour: cities }, time))
}

/// The words of the order in front of its coordinates.
fn head(job: &TspJob, source: Source) -> [u32; 9] {
    let [received, looked_up, bytes] = match source {
        Source::Host(placement) => [placement.received, placement.looked_up, placement.bytes],
        Source::Roots | Source::Climbers => [0; 3],
    };
    let (cities, climbers) = (job.cities.count() as u32, job.climbers as u32);
    [cities, job.climbs, job.first, job.seed, source.word(), climbers, received, looked_up, bytes]
}

/// Counts the climbs that the manager has given to climbers. The simulated cycles do not change.
async fn watch(nfp: Rc<Nfp>, climbs: u32, made: Arc<AtomicU32>, over: Rc<Cell<bool>>) {
    let mut known = 0;
    while known < climbs && !over.get() {
        nfp.sim().delay(LOOK_EVERY).await;
        let next = nfp.memory(MemoryKind::Imem, 0).peek_u32(job::NEXT).expect("the job lies there");
        made.fetch_add(next.min(climbs) - known, Ordering::Relaxed);
        known = next.min(climbs);
    }
}

fn words(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}
