//! Clusters for the benchmarks of sockets, and counters of their hosts before and after the measured time.

use super::Manifest;
use super::request::Resolved;
use super::usage::Counted;
use crate::{PeerManifest, cluster_of};
use nicety::cards::{self, Card};
use nicety::{Cluster, ClusterConfig, Environment, Error, Host};
use nicety_nic::ethernet::Report;
use nicety_types::{Duration, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// The measured time at a host: from when to when, and the counters at either end.
#[derive(Clone)]
pub(super) struct Window {
    warmup: Duration,
    length: Duration,
    /// Of both ranks, before and after.
    counted: Rc<RefCell<[[Option<Report>; 2]; 2]>>,
}

/// When the measured time begins and ends.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) begin: Time,
    pub(super) end: Time,
}

impl Bounds {
    pub(super) fn contain(&self, now: Time) -> bool {
        (self.begin..self.end).contains(&now)
    }
}

impl Window {
    pub(super) fn new(resolved: &Resolved) -> Window {
        Window { warmup: resolved.warmup, length: resolved.window, counted: Rc::default() }
    }

    /// Where the first byte goes out now.
    pub(super) fn bounds(&self, now: Time) -> Bounds {
        let begin = now + self.warmup;
        Bounds { begin, end: begin + self.length }
    }

    /// Counts at both ends of the measured time. The thread's program only watches: it takes no CPU.
    pub(super) async fn count(&self, host: &Host, bounds: Bounds) -> Result<(), Error> {
        let sockets = host.socket()?;
        for (number, time) in [bounds.begin, bounds.end].into_iter().enumerate() {
            host.pause(time.since(host.now())).await;
            self.counted.borrow_mut()[number][host.rank() as usize] = Some(sockets.report());
        }
        Ok(())
    }

    /// The counters before and after.
    ///
    /// # Panics
    /// Before both ranks have counted.
    pub(super) fn counted(&self) -> [Counted; 2] {
        self.counted.take().map(|[own, peer]| {
            let of = |report: Option<Report>| report.expect("both ranks have counted");
            Counted { own: of(own), peer: of(peer) }
        })
    }
}

/// Two hosts: one with this card, and the peer.
pub(super) fn cluster(
    resolved: &Resolved,
    card: &Card,
    seed: u64,
    environment: &Environment<'_>,
    point: &str,
) -> Result<Cluster, Error> {
    Cluster::new(ClusterConfig {
        topology: resolved.topology,
        flow_control: resolved.flow_control,
        faults: resolved.faults.clone(),
        seed,
        interrupt: environment.interrupt.clone().map(Into::into),
        log: environment.log.clone(),
        capture: environment.capture_of(point),
        ..cluster_of(card, resolved.peer.as_ref(), 2)
    })
}

/// The same card with so many CPUs for its operating system.
pub(super) fn with_cpus(name: &str, overrides: &[String], cpus: u64) -> Result<Card, Error> {
    cards::load(name, &[overrides, &[format!("threads.cpus={cpus}")]].concat())
}

pub(super) fn manifest(
    resolved: &Resolved,
    overrides: &[String],
    flow_control: Option<&str>,
    faults: Option<&str>,
) -> Manifest {
    let own = nicety::Manifest::of(resolved.cards.iter().map(|(nic, card)| (nic, card)), overrides);
    Manifest {
        specs: own.specs,
        peer: resolved
            .peer
            .as_ref()
            .map(|card| PeerManifest { nic: card.listing.name.clone(), card: card.into() }),
        overrides: own.overrides,
        topology: resolved.topology.to_string(),
        flow_control: flow_control.map(str::to_owned),
        faults: faults.map(str::to_owned),
        warmup_ns: resolved.warmup.ps() as f64 / 1e3,
        duration_ns: resolved.window.ps() as f64 / 1e3,
    }
}
