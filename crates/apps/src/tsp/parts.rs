//! The jobs of a run. Several CPUs of this machine simulate them at the same time.

use super::card::{self, TspJob};
use super::state::{Part, State};
use nicety::{Environment, Error};
use nicety_nic_nfp::NfpSpec;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Real time between reports of progress.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// All climbs of a run, and their division into jobs.
pub(super) struct Plan<'p> {
    pub(super) spec: &'p NfpSpec,
    pub(super) elf: &'p [u8],
    pub(super) job: &'p TspJob,
    /// Number of climbs in a job.
    pub(super) each: u32,
}

impl Plan<'_> {
    /// Returns the first climb and the number of climbs of each job.
    fn cut(&self) -> impl Iterator<Item = (u32, u32)> {
        let all = self.job.climbs;
        (0..all).step_by(self.each as usize).map(move |first| (first, self.each.min(all - first)))
    }

    /// Runs the jobs that are missing in `state`, and adds each finished job to it. Returns all jobs in order.
    pub(super) fn run(&self, state: &mut State, environment: &Environment<'_>) -> Result<Vec<Part>, Error> {
        let missing: Vec<(u32, u32)> =
            self.cut().filter(|&(first, climbs)| state.find(first, climbs).is_none()).collect();
        let known: u32 = self.job.climbs - missing.iter().map(|&(_, climbs)| climbs).sum::<u32>();
        // An error or an interrupt stops the other threads.
        let stop = Arc::new(AtomicBool::new(false));
        let (next, made) = (AtomicUsize::new(0), Arc::new(AtomicU32::new(0)));
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(missing.len());
        let (tell, told) = channel();
        let mut failed = None;
        thread::scope(|scope| {
            for _ in 0..threads {
                let (tell, next, missing, stop, made) = (tell.clone(), &next, &missing, &stop, &made);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let Some(&part) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                        // After a failure nobody receives the result.
                        let _ = tell.send(self.simulate(part, stop, made));
                    }
                });
            }
            drop(tell);
            loop {
                let total = self.job.climbs as usize;
                let done = known.saturating_add(made.load(Ordering::Relaxed)) as usize;
                (environment.progress)(done.min(total), total);
                if environment.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(Error::Interrupted);
                }
                let kept = match told.recv_timeout(TELL_EVERY) {
                    Err(RecvTimeoutError::Timeout) => Ok(()),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Ok(done) => done.and_then(|part| state.keep(part)),
                };
                if let Err(error) = kept {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(error);
                }
            }
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(self
                .cut()
                .map(|(first, climbs)| state.find(first, climbs).expect("all are done").clone())
                .collect()),
        }
    }

    fn simulate(
        &self,
        (first, climbs): (u32, u32),
        stop: &Arc<AtomicBool>,
        made: &Arc<AtomicU32>,
    ) -> Result<Part, Error> {
        let job = TspJob { first, climbs, ..self.job.clone() };
        let run = card::run_watched(self.spec, self.elf, &job, Some(stop.clone()), Some(made.clone()))?;
        Ok(Part {
            first,
            climbs,
            best: run.best,
            time_ps: run.time.ps(),
            computing: run.climbers.computing,
            asleep: run.climbers.asleep,
            instructions: run.instructions,
        })
    }
}
