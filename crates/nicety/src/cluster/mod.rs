//! A cluster: hosts with their cards, a network between them, and the programs on the hosts.
//!
//! - `config.rs`: the configuration.
//! - `build.rs`: the construction.
//! - `mix.rs`: the cards by host, and the check that they speak the same protocol.
//! - `machine.rs`: the check that this machine has enough memory.
//! - `noise.rs`: background noise on the hosts' CPUs.
//! - `testers.rs`: traffic for hosts' cards, and its senders.
//! - `pauses.rs`: the checks for an interrupt or a pause of a run.
//! - `parts.rs`: a run in several threads or processes.
//! - `outcome.rs`: the outcome of a run. It uses `undelivered.rs` for undelivered messages, `refusals.rs` for refused commands,
//!   and `verdict.rs` for failures that were not allowed.

mod build;
mod config;
mod machine;
mod mix;
mod noise;
mod outcome;
mod parts;
mod pauses;
mod refusals;
mod testers;
mod undelivered;
mod verdict;

pub use config::ClusterConfig;
pub use machine::LargeCluster;
pub use noise::Noise;
pub use parts::{Spread, in_parts};
pub use testers::TrafficReport;
pub(crate) use verdict::failures;
pub use verdict::{Allowed, Failure};

use crate::Error;
use crate::capture::Capture;
use crate::host::{Failed, Host};
use crate::record::Recording;
use mix::Mix;
use nicety_fabric::{Network, Symbol};
use nicety_host::{Memory, Traffic};
use nicety_kernel::{Envelope, Parts, RunError, World};
use nicety_nic_core::{Card, CardReport, Log, ProgramFailure, RefusedCommand};
use nicety_types::{Level, NodeId, Recorder, Time};
use pauses::Pauses;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use testers::Testers;

pub use nicety_fabric::{NetworkStatistics, PortStatistics, SwitchStatistics, Topology};

/// Results of a run for one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The name of its card.
    pub nic: Arc<str>,
    /// Bytes read from and written to host memory.
    pub memory: Traffic,
    /// Failures of this node: of its handlers and processes, and lost packets that it sent.
    pub failures: Vec<ProgramFailure>,
    /// Commands of handlers that the card refused.
    pub refused_commands: Vec<RefusedCommand>,
    /// Messages that handlers did not process, because the application of the handlers had used up its budget of
    /// cycles. Each item is an application and the number of its messages.
    pub unserved: Vec<(String, u64)>,
    /// Counters of the card.
    pub card: CardReport,
}

impl NodeReport {
    /// Returns the counters of the card as the type `R` of one card design. If the card is of another design, returns
    /// the default of `R`.
    pub fn of<R: Clone + Default + 'static>(&self) -> R {
        self.card.of::<R>().cloned().unwrap_or_default()
    }
}

/// The results of a completed run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The virtual time of the last event.
    pub end: Time,
    /// Events that the kernel processed.
    pub events: u64,
    /// The nodes, by rank.
    pub nodes: Vec<NodeReport>,
    /// Packet dispositions of the traffic for hosts' cards.
    pub traffic: Vec<TrafficReport>,
    /// Counters of the network's ports. Ports of hosts come first, by rank, then those of testers.
    pub network: NetworkStatistics,
    /// The recording of the run.
    pub recording: Recording,
}

/// A cluster: hosts with their cards, and their programs.
pub struct Cluster {
    world: World<Symbol>,
    pauses: Arc<Pauses>,
    network: Network,
    /// The requested capture, and the description of the run in its interfaces.
    capture: Option<(Capture, String)>,
    mix: Mix,
    recording: Level,
    /// The recorder of each node.
    recorders: Vec<(NodeId, Recorder)>,
    hosts: Vec<Host>,
    cards: Vec<Rc<dyn Card>>,
    memories: Vec<Rc<Memory>>,
    /// The programs that failed, each with its rank and reason.
    failed: Failed,
    testers: Testers,
    log: Log,
    allowed: Allowed,
    drops_allowed: bool,
}

impl Run {
    /// Returns the failures on the nodes, sorted by rank. They are traps and failures of handlers and processes,
    /// refused commands, messages without budget, and lost packets.
    pub fn failures(&self) -> Vec<Failure> {
        (0..).zip(&self.nodes).flat_map(|(rank, node)| verdict::failures(rank, node)).collect()
    }
}

impl Cluster {
    /// Builds the cluster at virtual time zero.
    ///
    /// # Errors
    /// [`Error::Input`] when the topology does not allow this number of nodes, or this machine has too little memory. Also when
    /// the noise, faults, flow control or users are invalid. [`Error::Interrupted`] when the configured interrupt is set.
    pub fn new(config: ClusterConfig) -> Result<Cluster, Error> {
        Cluster::build(config, None)
    }

    /// Builds the cluster for one part of a run. Each part is in its own thread or process, and builds the same
    /// cluster. A part runs the programs of a block of hosts (see [`Cluster::runs`]), and the switches next to these
    /// hosts. The report of a part counts only the events of this part.
    ///
    /// # Errors
    /// Those of [`Cluster::new`].
    pub fn part(config: ClusterConfig, parts: Box<dyn Parts<Envelope<Symbol>>>) -> Result<Cluster, Error> {
        Cluster::build(config, Some(parts))
    }

    /// Returns a host, for set-up before the run.
    ///
    /// # Panics
    /// When the rank does not exist.
    pub fn host(&self, rank: u32) -> &Host {
        &self.hosts[rank as usize]
    }

    /// The hosts' memories, by rank.
    pub fn memories(&self) -> &[Rc<Memory>] {
        &self.memories
    }

    /// Whether the programs of a rank run in this part.
    ///
    /// # Panics
    /// When the rank does not exist.
    pub fn runs(&self, rank: u32) -> bool {
        self.world.runs(NodeId(rank))
    }

    /// Whether this part runs all hosts.
    pub fn is_whole(&self) -> bool {
        (0..self.hosts.len() as u32).all(|rank| self.runs(rank))
    }

    /// Adds a host's program, which starts at virtual time zero. Does nothing if the host does not [run in this
    /// part](Cluster::runs). When the last program of a host ends, the host's sockets are closed.
    ///
    /// # Panics
    /// When the rank does not exist.
    pub fn program<F>(&mut self, rank: u32, program: impl FnOnce(Host) -> F)
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        self.begin_program(self.host(rank).clone(), None, program);
    }

    /// Adds the program of one process, as [`Cluster::program`], for a host with several processes. Texts call the process
    /// `name`. The processes of a host share its memory, CPUs, card and message library, so their messages must have different
    /// tags. Each process has its own thread and path.
    ///
    /// # Panics
    /// When the rank does not exist.
    pub fn process<F>(&mut self, rank: u32, name: &str, program: impl FnOnce(Host) -> F)
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let first = self.host(rank);
        let host = if first.is_running() { first.another_thread() } else { first.clone() };
        self.begin_program(host, Some(name.to_owned()), program);
    }

    fn begin_program<F>(&self, host: Host, name: Option<String>, program: impl FnOnce(Host) -> F)
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let rank = host.rank();
        if !self.runs(rank) {
            return;
        }
        let (running, failed) = (program(host.clone()), self.failed.clone());
        host.begins();
        let label = name.clone().unwrap_or_else(|| self.mix.label(rank));
        self.world.sim(NodeId(rank)).spawn_program(label, async move {
            if let Err(error) = running.await {
                failed.borrow_mut().push((rank, name, error));
            }
            host.ended().await;
        });
    }

    /// Runs until no events are left.
    ///
    /// After an error, a [capture](ClusterConfig::capture) has the packets until then.
    ///
    /// # Errors
    /// The first of these that applies:
    ///
    /// 1. The error of a program. It comes first, because other programs often wait as a consequence of this error.
    /// 2. A failed handler.
    /// 3. Messages that a network with faults did not deliver. This includes packets that a full switch or card dropped and that
    ///    nothing resends, unless [drops are allowed](ClusterConfig::drops_allowed).
    /// 4. A deadlock. Ports that pause each other in a circle are a deadlock, even if all programs have ended.
    /// 5. Failures that did not affect a program, unless their kind is [allowed](ClusterConfig::allowed).
    /// 6. Data that the network lost or damaged and that nothing resends, unless this kind of failure is allowed.
    /// 7. A capture that cannot be written.
    pub fn run(&mut self) -> Result<Run, Error> {
        self.begin();
        let outcome = self.world.run();
        self.end(outcome)
    }

    /// Does the same as [`Cluster::run`], but calls `go_on` after every few hundred thousand events. If `go_on` returns
    /// false, the run is interrupted.
    ///
    /// # Errors
    /// Those of [`Cluster::run`].
    pub fn run_while(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<Run, Error> {
        self.begin();
        self.pauses.active.store(true, Ordering::Relaxed);
        let outcome = loop {
            match self.world.run() {
                Err(RunError::Interrupted { .. }) if self.pauses.is_over() && go_on() => {}
                outcome => break outcome,
            }
        };
        self.end(outcome)
    }

    /// Does the same as [`Cluster::run`], but calls `more` when no events are left and programs wait. `more` may cause
    /// events from outside the simulation, such as the notification of a [signal](Host::signal). If `more` returns
    /// false, the run ends.
    ///
    /// # Errors
    /// Those of [`Cluster::run`].
    pub fn run_with(&mut self, more: &mut dyn FnMut() -> bool) -> Result<Run, Error> {
        self.begin();
        let outcome = loop {
            match self.world.run() {
                Err(RunError::Deadlock { .. }) if more() => {}
                outcome => break outcome,
            }
        };
        self.end(outcome)
    }

    /// Starts the traffic. The testers stop when the last program ends. If there are no programs, they send all of
    /// their traffic.
    fn begin(&self) {
        let hosts = || self.hosts.iter().filter(|host| self.runs(host.rank()));
        if !self.testers.is_empty() && hosts().any(Host::is_running) {
            hosts().filter(|host| !host.is_running()).for_each(Host::over);
        }
    }
}
