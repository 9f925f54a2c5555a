//! Makes the same climbs on the CPUs of this machine, and measures the wall-clock time.

use crate::tsp::card::{Best, Climber, TspJob};
use nicety::{Environment, Error};
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// The time of the climbs on the CPUs of this machine. This is real time, so it differs from run to run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "CpuFigures")]
pub struct Cpu {
    /// The name of the processor, if the system gives it.
    pub processor: Option<String>,
    /// Number of threads that made climbs.
    pub threads: usize,
    /// Wall-clock time in seconds.
    pub wall_time_s: f64,
    /// Climbs per second.
    pub climbs_per_s: f64,
    /// The length of the shortest tour, which equals the card's.
    pub length: u32,
}

/// Number of climbs that a thread takes at once.
const TAKEN: u64 = 4;

/// Makes all climbs of a job.
///
/// # Errors
/// When the best tour differs from the card's, or the run is interrupted.
pub(super) fn climb(job: &TspJob, environment: &Environment<'_>, found: &Best) -> Result<Cpu, Error> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let end = u64::from(job.first) + u64::from(job.climbs);
    let next = AtomicU64::new(u64::from(job.first));
    let stopped = || environment.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
    let interrupt = environment.interrupt.clone();
    let begun = Instant::now();
    let best = thread::scope(|scope| {
        let climber = || {
            let mut climber = Climber::new(&job.cities, job.seed);
            let mut best: Option<Best> = None;
            loop {
                let first = next.fetch_add(TAKEN, Ordering::Relaxed);
                let stop = interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
                if first >= end || stop {
                    return best;
                }
                // All climb numbers are below `end`, so they fit 32 bits.
                let numbers = (first..end.min(first + TAKEN)).map(|number| number as u32);
                best = [best, climber.best(numbers)].into_iter().flatten().min();
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(climber)).collect();
        workers.into_iter().filter_map(|worker| worker.join().expect("climbing does not panic")).min()
    });
    let seconds = begun.elapsed().as_secs_f64();
    if stopped() {
        return Err(Error::Interrupted);
    }
    let best = best.expect("one climb at least");
    if best != *found {
        return Err(Error::Program(format!(
            "the card's best tour has length {}, from climb {}, but the CPUs' best tour has length {}, from \
             climb {}: the card's program is wrong",
            found.length, found.number, best.length, best.number
        )));
    }
    Ok(Cpu {
        processor: processor(),
        threads,
        wall_time_s: seconds,
        climbs_per_s: f64::from(job.climbs) / seconds,
        length: best.length,
    })
}

/// Returns the tour lengths of all climbs of a job, by their numbers.
///
/// # Errors
/// When the run is interrupted.
pub(super) fn lengths(job: &TspJob, environment: &Environment<'_>) -> Result<Vec<u32>, Error> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let each = (job.climbs as usize).div_ceil(threads).max(1);
    let mut lengths = vec![0; job.climbs as usize];
    let stopped = || environment.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
    let interrupt = environment.interrupt.clone();
    thread::scope(|scope| {
        for (lengths, first) in lengths.chunks_mut(each).zip((job.first..).step_by(each)) {
            let interrupt = interrupt.clone();
            scope.spawn(move || {
                let mut climber = Climber::new(&job.cities, job.seed);
                for (length, number) in lengths.iter_mut().zip(first..) {
                    if interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                        return;
                    }
                    *length = climber.climb(number).0;
                }
            });
        }
    });
    if stopped() { Err(Error::Interrupted) } else { Ok(lengths) }
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
