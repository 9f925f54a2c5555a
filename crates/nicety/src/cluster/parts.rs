//! A run in several threads or processes, each with a block of the hosts.
//!
//! Each builds the whole cluster and runs its part of it, so they share nothing but messages. A run that fails is run again
//! as a whole, in one thread, or in each process: it is the same run, and who sees all of it can say why.

use super::{Cluster, ClusterConfig};
use crate::Error;
use crate::peers::{Outcome, Peers};
use nicety_fabric::Symbol;
use nicety_kernel::{Envelope, Threads};
use nicety_nic::Logged;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Progress, in units of the caller's: told how much is done, says whether to go on.
type Tell<'t> = dyn FnMut(u64) -> bool + 't;

/// How a run is spread. Whoever names processes and threads gets processes, each of one thread.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// Threads, of which there is one at least.
    pub threads: usize,
    /// The processes that all run it.
    pub peers: Option<Peers>,
}

impl Spread {
    /// So many threads.
    pub fn threads(threads: usize) -> Spread {
        Spread { threads, peers: None }
    }

    /// Over how many parts so many hosts are spread.
    pub fn parts(&self, hosts: u32) -> usize {
        let parts = self.peers.as_ref().map_or(self.threads, Peers::count);
        parts.clamp(1, hosts.max(1) as usize)
    }
}

/// Runs a cluster in parts, as many as `spread` says or as it has hosts. In each, `body` is given the
/// [part](Cluster::part): it starts programs, runs the cluster, and returns what came of its hosts. The results are in the order
/// of ranks, and all processes have all of them. In the caller's thread `go_on` is called with what all bodies have told; from
/// a process, with an estimate of it.
///
/// With a capture, one part does all. So it does for a run that has failed, which is thereby run twice.
///
/// # Errors
/// As [`Cluster::new`] and `body`; the other processes are out of reach.
///
/// # Panics
/// When `body` does.
pub fn in_parts<T: Send + Serialize + DeserializeOwned>(
    config: &ClusterConfig,
    spread: &Spread,
    go_on: &mut Tell<'_>,
    body: impl Fn(&mut Cluster, &mut Tell<'_>) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let parts = if config.capture.is_some() { 1 } else { spread.parts(config.nodes) };
    if parts > 1 {
        let results = match &spread.peers {
            // Hosts are fewer than processes at times: then every one runs all of them.
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

/// The configuration of part `number`, whose handlers' output is kept.
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

/// Prints what handlers did, in one piece, in the order of time.
fn print(config: &ClusterConfig, mut printed: Vec<Logged>) {
    printed.sort_by_key(Logged::order);
    printed.iter().for_each(|line| (config.log)(line));
}

fn taken(printed: &Mutex<Vec<Logged>>) -> Vec<Logged> {
    std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The results of all processes; none if one of them failed.
fn in_processes<T: Serialize + DeserializeOwned>(
    config: &ClusterConfig,
    peers: &Peers,
    go_on: &mut Tell<'_>,
    body: &impl Fn(&mut Cluster, &mut Tell<'_>) -> Result<T, Error>,
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
    go_on: &mut Tell<'_>,
    body: &(impl Fn(&mut Cluster, &mut Tell<'_>) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let told: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let printed = Arc::default();
    let part = |number: usize, threads: Threads<Envelope<Symbol>>, tell: &mut Tell<'_>| {
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
    // One that failed lets the others go, which then seem to be interrupted.
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
