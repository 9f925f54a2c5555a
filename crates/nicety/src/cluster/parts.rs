//! Runs a cluster in several threads or processes. Each has a block of the hosts.
//!
//! Each thread or process builds the whole cluster and runs one part of it. The parts exchange only messages. A failed run is
//! repeated with all hosts in one thread, or in each process. The repetition fails in the same way, and only a run with all hosts
//! can explain the failure.

use super::{Cluster, ClusterConfig};
use crate::Error;
use crate::peers::{Outcome, Peers};
use nicety_fabric::Symbol;
use nicety_kernel::{Envelope, Threads};
use nicety_nic_core::Logged;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A function that receives the progress of a run, in units of the caller. It returns whether to continue.
type Progress<'t> = dyn FnMut(u64) -> bool + 't;

/// The threads or processes of a run. Each process has one thread.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// Number of threads, at least one.
    pub threads: usize,
    /// The processes of the run, if any.
    pub peers: Option<Peers>,
}

impl Spread {
    /// Returns a spread over `threads` threads.
    pub fn threads(threads: usize) -> Spread {
        Spread { threads, peers: None }
    }

    /// The number of parts for `hosts` hosts.
    pub fn parts(&self, hosts: u32) -> usize {
        let parts = self.peers.as_ref().map_or(self.threads, Peers::count);
        parts.clamp(1, hosts.max(1) as usize)
    }
}

/// Runs a cluster in parts. `spread` determines their number, and each part has at least one host. `body` gets one
/// [part](Cluster::part) of the cluster. It starts programs, runs the part, and returns the results of the part's
/// hosts.
///
/// Results are in the order of ranks. Every process gets all results. `go_on` is called in the caller's thread. It gets the sum
/// of the progress of all parts, which is an estimate if they are processes. A run with a capture has one part with all hosts,
/// and so has the repetition of a failed run.
///
/// # Errors
/// Those of [`Cluster::new`] and `body`. Also when another process is out of reach.
///
/// # Panics
/// When `body` panics.
pub fn in_parts<T: Send + Serialize + DeserializeOwned>(
    config: &ClusterConfig,
    spread: &Spread,
    go_on: &mut Progress<'_>,
    body: impl Fn(&mut Cluster, &mut Progress<'_>) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let parts = if config.capture.is_some() { 1 } else { spread.parts(config.nodes) };
    if parts > 1 {
        let results = match &spread.peers {
            // If there are fewer hosts than processes, every process runs all hosts.
            Some(peers) if parts == peers.count() => in_processes(config, peers, go_on, &body)?,
            Some(_) => None,
            None => match in_threads(config, parts, go_on, &body) {
                Ok(results) => Some(results),
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(_) => None,
            },
        };
        if let Some(results) = results {
            return Ok(results);
        }
    }
    let mut config = config.clone();
    if spread.peers.as_ref().is_some_and(|peers| peers.number() > 0) {
        config.large = |_| ();
    }
    body(&mut Cluster::new(config)?, go_on).map(|whole| vec![whole])
}

/// Returns the configuration of part `number`. The output of its handlers is kept in `printed`.
fn config_of(config: &ClusterConfig, number: usize, printed: &Arc<Mutex<Vec<Logged>>>) -> ClusterConfig {
    let printed = printed.clone();
    ClusterConfig {
        large: if number == 0 { config.large } else { |_| () },
        log: Arc::new(move |line| {
            printed.lock().unwrap_or_else(PoisonError::into_inner).push(line.clone());
        }),
        ..config.clone()
    }
}

/// Prints the output of handlers, sorted by virtual time.
fn print(config: &ClusterConfig, mut printed: Vec<Logged>) {
    printed.sort_by_key(Logged::order);
    printed.iter().for_each(|line| (config.log)(line));
}

fn taken(printed: &Mutex<Vec<Logged>>) -> Vec<Logged> {
    std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the results of all processes; `None` if a process failed.
fn in_processes<T: Serialize + DeserializeOwned>(
    config: &ClusterConfig,
    peers: &Peers,
    go_on: &mut Progress<'_>,
    body: &impl Fn(&mut Cluster, &mut Progress<'_>) -> Result<T, Error>,
) -> Result<Option<Vec<T>>, Error> {
    let outcome = peers.run(|connected| {
        let printed = Arc::default();
        let config = config_of(config, peers.number(), &printed);
        let mut cluster = Cluster::part(config, Box::new(connected))?;
        let result = body(&mut cluster, &mut |done| go_on(done.saturating_mul(peers.count() as u64)))?;
        Ok((result, taken(&printed)))
    })?;
    match outcome {
        Outcome::Ended(results) => {
            let (results, printed): (_, Vec<_>) = results.into_iter().unzip();
            print(config, printed.into_iter().flatten().collect());
            Ok(Some(results))
        }
        Outcome::Failed => Ok(None),
        Outcome::Interrupted => Err(Error::Interrupted),
    }
}

fn in_threads<T: Send>(
    config: &ClusterConfig,
    threads: usize,
    go_on: &mut Progress<'_>,
    body: &(impl Fn(&mut Cluster, &mut Progress<'_>) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let told: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let printed = Arc::default();
    let part = |number: usize, threads: Threads<Envelope<Symbol>>, tell: &mut Progress<'_>| {
        let mut cluster = Cluster::part(config_of(config, number, &printed), Box::new(threads))?;
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
    // A thread that failed has stopped the other threads, which report an interrupt. So the error of the failed thread
    // is preferred.
    let (failed, interrupted): (Vec<_>, Vec<_>) = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .partition(|error| **error != Error::Interrupted);
    if let Some(error) = failed.into_iter().chain(interrupted).next() {
        return Err(error.clone());
    }
    print(config, taken(&printed));
    results.into_iter().collect()
}
