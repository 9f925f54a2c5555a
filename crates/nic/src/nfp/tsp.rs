//! The travelling salesman by 2-opt with random restarts: `handlers/nfp/tsp.c` on microengines, and the same climb
//! natively.

use super::experiment::{self, ExperimentError};
use super::{ContextCounters, MemoryKind, NfpSpec, crc32, map};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Most cities of the card's program.
pub const MOST_CITIES: usize = 256;
/// Most climbers of the card's program.
pub const MOST_CLIMBERS: usize = 64;

/// Where the job's parts lie, as `tsp.h` has them.
mod job {
    pub(super) const NEXT: u64 = 24;
    pub(super) const CITY: u64 = 64;
    pub(super) const TOUR: u64 = CITY + 4 * super::MOST_CITIES as u64;
}

/// How a climber knows distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distances {
    /// By an integer square root each time.
    Root,
    /// From a table in CLS.
    Table,
}

/// What is to be climbed.
#[derive(Clone, Debug)]
pub struct TspJob {
    /// Coordinates, all below 32768.
    pub cities: Vec<(u16, u16)>,
    /// Climbs to make in all.
    pub climbs: u32,
    /// Climbers, each on a microengine of its own; the manager has one more.
    pub climbers: usize,
    /// From which the climbs' random numbers come.
    pub seed: u32,
    /// How distances are known.
    pub distances: Distances,
}

/// What climbing came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TspRun {
    /// The shortest tour's length.
    pub length: u32,
    /// Its cities in order.
    pub tour: Vec<u8>,
    /// Cycles from the start to when the manager knew.
    pub cycles: u64,
    /// Where the climbers' cycles went, all together.
    pub climbers: ContextCounters,
    /// Instructions of all processes.
    pub instructions: u64,
}

impl TspJob {
    fn check(&self, spec: &NfpSpec) -> Result<(), ExperimentError> {
        let wrong = |text: String| Err(ExperimentError::Input(text));
        let (cities, climbers) = (self.cities.len(), self.climbers);
        if !(5..=MOST_CITIES).contains(&cities) {
            return wrong(format!("{cities} cities; the card's program takes 5 to {MOST_CITIES}"));
        }
        if let Some(&(x, y)) = self.cities.iter().find(|&&(x, y)| x.max(y) >= 1 << 15) {
            return wrong(format!("a city at ({x}, {y}); the card's program takes coordinates below 32768"));
        }
        let most = MOST_CLIMBERS.min(spec.cores - 1);
        if !(1..=most).contains(&climbers) {
            return wrong(format!(
                "{climbers} climbers on {} microengines, one of which is the manager's; write 1 to {most}",
                spec.cores
            ));
        }
        let (table, cls) = (64 + 2 * cities * cities, spec.memory(MemoryKind::Cls).size);
        if self.distances == Distances::Table && table as u64 > u64::from(cls) {
            return wrong(format!(
                "the distances of {cities} cities take {table} bytes, and CLS has {cls}; compute the roots instead"
            ));
        }
        Ok(())
    }
}

/// Climbs on a processor by itself: the manager on microengine 0, a climber on each behind it. `elf` is `tsp.c`,
/// compiled for the spec's isa; set by somebody else, `interrupt` ends the run.
///
/// # Errors
/// When the job cannot be, the program does not fit, or a process is stopped.
pub fn run(
    spec: &NfpSpec,
    elf: &[u8],
    job: &TspJob,
    interrupt: Option<Arc<AtomicBool>>,
) -> Result<TspRun, ExperimentError> {
    job.check(spec)?;
    let job = job.clone();
    experiment::run(spec, elf, interrupt, move |nfp, program| async move {
        let imem = nfp.memory(MemoryKind::Imem, 0);
        let table = u32::from(job.distances == Distances::Table);
        let header = [job.cities.len() as u32, job.climbs, job.seed, table, job.climbers as u32, 0];
        let packed = job.cities.iter().map(|&(x, y)| u32::from(x) | u32::from(y) << 16);
        imem.poke(0, &words(header))?;
        imem.poke(job::NEXT, &words([0, u32::MAX, 0]))?;
        imem.poke(job::CITY, &words(packed))?;

        let [climber, manager] = ["tsp_climber", "tsp_manager"].map(|name| program.image().require(name));
        let (climber, manager) = (climber?, manager?);
        for core in 0..=job.climbers {
            nfp.load(core, &program, 1)?;
        }
        nfp.start(0, 0, manager, &[map::IMEM]);
        let island = nfp.spec().island;
        for core in 1..=job.climbers {
            let first = (core / island * island).max(1);
            let last = (core / island * island + island - 1).min(job.climbers);
            let members = last + 1 - first;
            nfp.start(core, 0, climber, &[map::IMEM, core as u32 - 1, first as u32, members as u32]);
        }
        // Whoever is stopped keeps the manager waiting for ever.
        for core in (1..=job.climbers).chain([0]) {
            nfp.finished(core, 0).await?;
        }
        let cycles = nfp.cycle();
        let best = nfp.finished(0, 0).await?;
        let (length, whose) = (best / MOST_CLIMBERS as u32, best as usize % MOST_CLIMBERS);
        let mut tour = vec![0; job.cities.len()];
        imem.peek(job::TOUR + (whose * MOST_CITIES) as u64, &mut tour)?;
        let counters = (1..=job.climbers).map(|core| nfp.context_counters(core, 0));
        let climbers = counters.fold(ContextCounters::default(), |a, b| a + b);
        Ok(TspRun { length, tour, cycles, climbers, instructions: nfp.instructions() })
    })
}

fn words(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// The distance of two cities, rounded to the nearest whole number (TSPLIB's EUC_2D).
pub fn distance(a: (u16, u16), b: (u16, u16)) -> u32 {
    let (dx, dy) = (u32::from(a.0.abs_diff(b.0)), u32::from(a.1.abs_diff(b.1)));
    let square = dx * dx + dy * dy;
    let root = square.isqrt();
    root + u32::from(square - root * root > root)
}

/// The climb of this number as the card makes it: its length and tour.
///
/// # Panics
/// With fewer than 5 cities or more than [`MOST_CITIES`].
pub fn climb(cities: &[(u16, u16)], seed: u32, number: u32) -> (u32, Vec<u8>) {
    let n = cities.len();
    assert!((5..=MOST_CITIES).contains(&n), "5 to {MOST_CITIES} cities");
    let table: Vec<u16> =
        cities.iter().flat_map(|&a| cities.iter().map(move |&b| distance(a, b) as u16)).collect();
    let mut random = crc32(seed, number) | 1;
    let mut below = |bound: u32| {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        ((u64::from(random) * u64::from(bound)) >> 32) as usize
    };
    let mut tour: Vec<u8> = (0..n).map(|k| k as u8).collect();
    for k in (1..n).rev() {
        tour.swap(k, below(k as u32 + 1));
    }
    let between = |tour: &[u8], i: usize, j: usize| {
        i32::from(table[usize::from(tour[i]) * n + usize::from(tour[j % n])])
    };
    loop {
        let (mut most, mut first, mut last) = (0, 0, 0);
        for i in 0..n - 2 {
            let road = between(&tour, i, i + 1);
            for j in i + 2..if i > 0 { n } else { n - 1 } {
                let saved =
                    road + between(&tour, j, j + 1) - between(&tour, i, j) - between(&tour, i + 1, j + 1);
                if saved > most {
                    (most, first, last) = (saved, i, j);
                }
            }
        }
        if most == 0 {
            let length = (0..n).map(|k| between(&tour, k, k + 1) as u32).sum();
            return (length, tour);
        }
        tour[first + 1..=last].reverse();
    }
}
