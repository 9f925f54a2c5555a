//! A run in several threads, each with a block of the hosts.
//!
//! A thread builds the whole cluster and runs its part of it, so threads share nothing but messages. A run that fails is run
//! again in one thread, which sees all of it and can say why: it is the same run.

use super::{Cluster, ClusterConfig};
use crate::Error;
use nicety_fabric::Symbol;
use nicety_kernel::{Envelope, Threads};
use nicety_nic::Logged;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Progress, in units of the caller's: told how much is done, says whether to go on.
type Tell<'t> = dyn FnMut(u64) -> bool + 't;

/// Runs a cluster in `threads` threads, or in as many as it has hosts. In each, `body` is given the thread's
/// [part](Cluster::part): it starts programs, runs the cluster, and returns what came of its hosts. The results are in the order
/// of ranks. In the caller's thread `go_on` is called with what all bodies have told.
///
/// With a capture, one thread does all. So it does for a run that has failed, which is thereby run twice.
///
/// # Errors
/// As [`Cluster::new`] and `body`.
///
/// # Panics
/// When `body` does.
pub fn in_threads<T: Send>(
    config: &ClusterConfig,
    threads: usize,
    go_on: &mut Tell<'_>,
    body: impl Fn(&mut Cluster, &mut Tell<'_>) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let threads = if config.capture.is_some() { 1 } else { threads.min(config.nodes as usize) };
    if threads > 1 {
        match run_parts(config, threads, go_on, &body) {
            Ok(results) => return Ok(results),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(_) => {}
        }
    }
    body(&mut Cluster::new(config.clone())?, go_on).map(|whole| vec![whole])
}

fn run_parts<T: Send>(
    config: &ClusterConfig,
    threads: usize,
    go_on: &mut Tell<'_>,
    body: &(impl Fn(&mut Cluster, &mut Tell<'_>) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let told: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    // What handlers print comes out in one piece, in the order of time.
    let printed: Arc<Mutex<Vec<Logged>>> = Arc::default();
    let part = |number: usize, threads: Threads<Envelope<Symbol>>, tell: &mut Tell<'_>| {
        let printed = printed.clone();
        let config = ClusterConfig {
            large: if number == 0 { config.large } else { |_| () },
            log: Arc::new(move |line| {
                printed.lock().unwrap_or_else(PoisonError::into_inner).push(line.clone());
            }),
            ..config.clone()
        };
        let mut cluster = Cluster::part(config, Box::new(threads))?;
        body(&mut cluster, &mut |done| {
            told[number].store(done, Ordering::Relaxed);
            tell(told.iter().map(|part| part.load(Ordering::Relaxed)).sum())
        })
    };
    let mut connected = Threads::connected(threads).into_iter();
    let first = connected.next().expect("there are two at least");
    let results: Vec<Result<T, Error>> = thread::scope(|scope| {
        let others: Vec<_> = (1..)
            .zip(connected)
            .map(|(number, threads)| {
                let part = &part;
                scope.spawn(move || part(number, threads, &mut |_| true))
            })
            .collect();
        let first = part(0, first, go_on);
        let others =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(first).chain(others).collect()
    });
    // One that failed lets the others go, which then seem to be interrupted.
    let (failed, interrupted): (Vec<_>, Vec<_>) = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .partition(|error| **error != Error::Interrupted);
    if let Some(error) = failed.into_iter().chain(interrupted).next() {
        return Err(error.clone());
    }
    let mut printed = std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner));
    printed.sort_by_key(Logged::order);
    printed.iter().for_each(|line| (config.log)(line));
    results.into_iter().collect()
}
