//! Clusters for the benchmarks of sockets, and the counters of their hosts at both ends of the measured time.

use super::request::Resolved;
use super::usage::Counted;
use super::{Manifest, PORT};
use crate::PeerManifest;
use crate::measure::cluster_of;
use nicety::cards::{self, Card};
use nicety::{Cluster, ClusterConfig, Environment, Error, Host, Sockets};
use nicety_nic_ethernet::{Report, Setting, SocketKind};
use nicety_types::{Duration, Time};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

/// The measured time of a host: its length, and the counters at its begin and end.
#[derive(Clone)]
pub(super) struct Window {
    warmup: Duration,
    length: Duration,
    /// The counters of both ranks, first at the begin and then at the end.
    counted: Rc<RefCell<[[Option<Report>; 2]; 2]>>,
}

/// The begin and end of the measured time.
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

    /// Returns the bounds of the measured time, if the first byte is sent at `now`.
    pub(super) fn bounds(&self, now: Time) -> Bounds {
        let begin = now + self.warmup;
        Bounds { begin, end: begin + self.length }
    }

    /// Reads the counters at the begin and the end of the measured time. The thread only observes: it takes no CPU time.
    pub(super) async fn count(&self, host: &Host, bounds: Bounds) -> Result<(), Error> {
        let sockets = host.socket()?;
        for (number, time) in [bounds.begin, bounds.end].into_iter().enumerate() {
            host.pause(time.since(host.now())).await;
            self.counted.borrow_mut()[number][host.rank() as usize] = Some(sockets.report());
        }
        Ok(())
    }

    /// Returns the counters at the begin and at the end.
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

/// Connections between two hosts. Each has a thread at both ends.
#[derive(Clone)]
pub(super) struct Connections {
    pub(super) number: u64,
    /// Whether TCP sends the last segment without a wait for acknowledgements (TCP_NODELAY).
    pub(super) nodelay: bool,
    pub(super) window: Window,
}

impl Connections {
    /// Listens for connections. When all are established, runs `serve` on each.
    pub(super) async fn accept<F>(
        &self,
        host: Host,
        serve: impl Fn(Host, u32, Bounds) -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let sockets = host.socket()?;
        let listening = sockets.open(SocketKind::Stream);
        // Accepted sockets inherit the option from the listening socket.
        sockets.set(listening, Setting::NoDelay(self.nodelay)).await?;
        sockets.bind(listening, PORT).await?;
        sockets.listen(listening, self.number as u32).await?;
        host.barrier().await;
        let mut accepted = Vec::new();
        for _ in 0..self.number {
            accepted.push(sockets.accept(listening).await?);
        }
        self.run(&host, accepted, serve).await?;
        sockets.close(listening).await
    }

    /// Connects to a rank that accepts connections. When all are established, runs `serve` on each.
    pub(super) async fn connect<F>(
        &self,
        host: Host,
        to: u32,
        serve: impl Fn(Host, u32, Bounds) -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let sockets = host.socket()?;
        // After the barrier, the other host listens.
        host.barrier().await;
        let mut connected = Vec::new();
        for _ in 0..self.number {
            let socket = sockets.open(SocketKind::Stream);
            sockets.set(socket, Setting::NoDelay(self.nodelay)).await?;
            sockets.connect(socket, SocketAddr::new(Sockets::address(to), PORT)).await?;
            connected.push(socket);
        }
        self.run(&host, connected, serve).await
    }

    async fn run<F>(
        &self,
        host: &Host,
        ends: Vec<u32>,
        serve: impl Fn(Host, u32, Bounds) -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        host.barrier().await;
        let bounds = self.window.bounds(host.now());
        let spawn = |socket| host.spawn(|host| serve(host, socket, bounds));
        let threads: Vec<_> = ends.into_iter().map(spawn).collect();
        self.window.count(host, bounds).await?;
        for thread in threads {
            thread.join().await?;
        }
        Ok(())
    }
}

/// Builds two hosts: one has this card, and the other has the peer's card.
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
        // No figure of these benchmarks needs stages.
        breakdown: false,
        ..cluster_of(card, resolved.peer.as_ref(), 2)
    })
}

/// Returns the same card, with `cpus` CPUs for the operating system of its host.
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
