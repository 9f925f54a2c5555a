//! A cluster: hosts with their cards, a network between them, and the programs on the hosts.
//!
//! - `config.rs`: the configuration.
//! - `mix.rs`: the cards by host, and the check that they speak the same protocol.
//! - `machine.rs`: the check that this machine has enough memory.
//! - `noise.rs`: background noise on the hosts' CPUs.
//! - `testers.rs`: traffic for hosts' cards, and its senders.
//! - `pauses.rs`: the checks for an interrupt or a pause of a run.
//! - `parts.rs`: a run in several threads or processes.
//! - `outcome.rs`: the outcome of a run. It uses `undelivered.rs` for undelivered messages, `refusals.rs` for refused commands,
//!   and `verdict.rs` for failures that were not allowed.

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
use crate::host::{Failed, Host, HostParts};
use crate::record::Recording;
use machine::Gauge;
use mix::Mix;
use nicety_fabric::{Launcher, LinkSpec, Network, NetworkSpec, SwitchSpec, Symbol};
use nicety_host::{Cpus, Gpu, Memory, Traffic};
use nicety_kernel::{Config, Envelope, Interrupt, Parts, RunError, World};
use nicety_nic_core::{Card, CardReport, Log, NodeContext, NodeSpec, ProgramFailure, RefusedCommand};
use nicety_nic_spin::SpinSpec;
use nicety_types::{Duration, Level, NodeId, Recorder, Time};
use pauses::Pauses;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use testers::Testers;

pub use nicety_fabric::{NetworkStatistics, PortStatistics, SwitchStatistics, Topology};

/// A node's results of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The name of its card.
    pub nic: Arc<str>,
    /// Bytes read from and written to host memory.
    pub memory: Traffic,
    /// Traps and failures of handlers and processes, and lost packets of the node.
    pub failures: Vec<ProgramFailure>,
    /// Commands of handlers that the card refused.
    pub refused_commands: Vec<RefusedCommand>,
    /// Messages without cycles left in their application's budget: the application, and their number.
    pub unserved: Vec<(String, u64)>,
    /// Counters of the card.
    pub card: CardReport,
}

impl NodeReport {
    /// Returns the counters in one design's type; the default if the card is of another design.
    pub fn of<R: Clone + Default + 'static>(&self) -> R {
        self.card.of::<R>().cloned().unwrap_or_default()
    }
}

/// The results of a completed run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The time of the last event.
    pub end: Time,
    /// Events that the kernel processed.
    pub events: u64,
    /// The nodes, by rank.
    pub nodes: Vec<NodeReport>,
    /// Packet dispositions of the traffic for hosts' cards.
    pub traffic: Vec<TrafficReport>,
    /// Counters of the network's ports: hosts by rank, then testers.
    pub network: NetworkStatistics,
    /// The recording of the run.
    pub recording: Recording,
}

/// A cluster: hosts with their cards, and their programs.
pub struct Cluster {
    world: World<Symbol>,
    pauses: Arc<Pauses>,
    network: Network,
    /// The capture, and the description of the run.
    capture: Option<(Capture, String)>,
    mix: Mix,
    recording: Level,
    /// The recorder of each node.
    recorders: Vec<(NodeId, Recorder)>,
    hosts: Vec<Host>,
    cards: Vec<Rc<dyn Card>>,
    memories: Vec<Rc<Memory>>,
    /// Failed programs: rank and reason.
    failed: Failed,
    testers: Testers,
    log: Log,
    allowed: Allowed,
    drops_allowed: bool,
}

impl Run {
    /// Returns failures on the nodes, by rank: traps and failures of handlers and processes, refused commands, messages without
    /// budget, lost packets.
    pub fn failures(&self) -> Vec<Failure> {
        (0..).zip(&self.nodes).flat_map(|(rank, node)| verdict::failures(rank, node)).collect()
    }
}

impl Cluster {
    /// Builds the cluster at time zero.
    ///
    /// # Errors
    /// [`Error::Input`] when the topology does not allow this number of nodes, or this machine has too little memory. Also when
    /// the noise, faults, flow control or users are invalid. [`Error::Interrupted`] when interrupted.
    pub fn new(config: ClusterConfig) -> Result<Cluster, Error> {
        Cluster::build(config, None)
    }

    /// Builds one part of a cluster. All parts are built alike, each in its own thread or process. A part runs the programs of a
    /// block of hosts (see [`Cluster::runs`]), and the switches beside them. Its report counts its own events.
    ///
    /// # Errors
    /// As [`Cluster::new`].
    pub fn part(config: ClusterConfig, parts: Box<dyn Parts<Envelope<Symbol>>>) -> Result<Cluster, Error> {
        Cluster::build(config, Some(parts))
    }

    fn build(
        config: ClusterConfig,
        parts: Option<Box<dyn Parts<Envelope<Symbol>>>>,
    ) -> Result<Cluster, Error> {
        let ClusterConfig {
            nodes,
            cards,
            topology,
            all_ports,
            flow_control,
            uids,
            noise,
            faults,
            seed,
            shards,
            interrupt,
            log,
            large,
            allowed,
            drops_allowed,
            breakdown,
            recording,
            recorded_rows,
            capture,
            traffic,
        } = config;
        let mix = Mix::of(cards, nodes)?;
        // The first host's card gives the settings that all hosts share.
        let mut around = mix.card(0).spec.node();
        if let Some(rank) = all_ports {
            around.switch = inside(&mix.card(rank).spec.node());
        }
        let aimed = testers::aim(traffic, &mix, nodes, seed)?;
        // Testers have links as hosts do.
        let ends = nodes + aimed.len() as u32;
        topology.check(ends as usize, &around.switch).map_err(|error| match aimed.len() {
            0 => error.into(),
            many => {
                Error::Input(format!("of {nodes} hosts and {many} more ends of links, for traffic: {error}"))
            }
        })?;
        if let Some(rank) = noise.as_ref().and_then(|noise| noise.rank).filter(|&rank| rank >= nodes) {
            return Err(Error::Input(format!(
                "noise on rank {rank}: the cluster has ranks 0 to {}",
                nodes - 1
            )));
        }
        if !uids.is_empty() {
            (0..nodes).try_for_each(|rank| mix.card(rank).spec.of::<SpinSpec>().map(drop))?;
        }
        if !uids.is_empty() && uids.len() != nodes as usize {
            let many = uids.len();
            return Err(Error::Input(format!(
                "{many} user ids for {nodes} hosts; give one for each rank, or none"
            )));
        }
        let gauge = Gauge::new(nodes, &mix.names(), large)?;
        let pauses = Arc::new(Pauses::new(interrupt.clone()));
        let looking = pauses.clone();
        let config = Config {
            seed,
            // Shards beyond the number of hosts would be empty.
            shards: shards.min(nodes as usize),
            interrupt: Some(Interrupt::new(move || looking.is_due())),
            max_time: None,
        };
        let mut world = match parts {
            None => World::new(config),
            Some(parts) => World::part(config, parts),
        };
        let shards = topology.shards(ends as usize, &around.switch, world.shards())?;
        let ends: Vec<NodeId> = shards.into_iter().map(|shard| world.add_node_in(shard)).collect();
        let (ids, of_testers) = ends.split_at(nodes as usize);
        let parts = NetworkSpec { link: around.link, switch: around.switch, router: around.router };
        let ranks = (0..nodes).chain(aimed.iter().map(|aimed| aimed.rank));
        let link_of = |rank| {
            let NodeSpec { link, ports, .. } = mix.card(rank).spec.node();
            if all_ports == Some(rank) { LinkSpec { gap: link.gap.of_wires(ports), ..link } } else { link }
        };
        let links: Vec<_> = ends.iter().zip(ranks).map(|(&id, rank)| (id, link_of(rank))).collect();
        let flow = (flow_control, mix.largest_packet());
        let (mut ports, mut network) = topology.build_with(&mut world, &links, &parts, flow)?;
        network.inject(&faults, &mut ports)?;
        let sender = mix.card(0).spec.clone();
        // Reports of traffic count frames from and to testers.
        network.set_data(move |packet| {
            let ends = [packet.label.message.source, packet.label.destination];
            ends.iter().all(|end| end.0 < nodes) && !sender.makes_up_for(packet)
        });
        let capture = capture.map(|capture| {
            network.capture(capture.memory(), &mut ports, all_ports.map(|rank| ids[rank as usize]));
            let hosts = if nodes == 1 { "1 host" } else { &format!("{nodes} hosts") };
            (capture, format!("{hosts} with {}, topology {topology}, seed {seed}", mix.names()))
        });
        let barriers = Launcher::install(&mut world, ids, around.barrier);
        // The launcher signals to testers that all programs have ended.
        let mut over = match of_testers {
            [] => Vec::new(),
            _ => Launcher::install(&mut world, &ends, around.barrier),
        }
        .into_iter();
        let mut of_hosts = ports;
        let of_testers_ports = of_hosts.split_off(ids.len());
        let mut recorders: Vec<(NodeId, Recorder)> = Vec::new();
        let mut recorder_of = |node: NodeId| {
            // Nodes come in order. Only a router is on a known node, that of its host.
            if let Some((known, recorder)) = recorders.get(node.0 as usize) {
                debug_assert_eq!(*known, node);
                return recorder.clone();
            }
            let recorder = Recorder::new(recording, recorded_rows);
            recorders.push((node, recorder.clone()));
            recorder
        };
        let failed = Failed::default();
        let (mut hosts, mut cards, mut memories) = (Vec::new(), Vec::new(), Vec::new());
        for ((&id, port), barrier) in ids.iter().zip(of_hosts).zip(barriers) {
            if interrupt.as_ref().is_some_and(Interrupt::is_set) {
                return Err(Error::Interrupted);
            }
            let sim = world.sim(id);
            let recorder = recorder_of(id);
            let (spec, rank) = (&mix.card(id.0).spec, id.0);
            let host = spec.node().host;
            let memory = Rc::new(Memory::new(host.memory));
            let gpu = spec.gpu().map(Gpu::new);
            let mut cpus = Cpus::new(&sim, host, &recorder);
            if let Some(noise) = noise.as_ref().and_then(|noise| noise.on(id.0)) {
                cpus = cpus.with_noise(noise);
            }
            let cpus = Rc::new(cpus);
            let uid = uids.get(id.0 as usize).copied().unwrap_or_default();
            let node_context = NodeContext {
                sim: &sim,
                nodes: ends.len() as u32,
                ordered: topology.keeps_order(),
                memory: &memory,
                gpu: gpu.as_ref(),
                cpus: &cpus,
                port,
                packet_payload: mix.packet_payload(),
                eager: mix.eager(),
                uid,
                log: &log,
                recorder: &recorder,
            };
            let card = spec.clone().install(node_context).map_err(|error| mix.about(rank, error.into()))?;
            cards.push(card.clone());
            memories.push(memory.clone());
            let failed = failed.clone();
            let ranks = nodes;
            let breakdown = breakdown || recording >= Level::Messages;
            let parts = HostParts {
                sim,
                ranks,
                card,
                memory,
                gpu,
                cpus,
                barrier,
                over: over.next(),
                failed,
                recorder,
                breakdown,
            };
            hosts.push(Host::new(parts));
            gauge.built(hosts.len() as u32)?;
        }
        let mut testers = Testers::default();
        for (((&id, port), aimed), over) in of_testers.iter().zip(of_testers_ports).zip(aimed).zip(over) {
            let card = &cards[aimed.rank as usize];
            testers.add(aimed, card, (world.sim(id), port, &recorder_of(id)), over)?;
        }
        network.record(recorder_of);
        Ok(Cluster {
            world,
            pauses,
            network,
            capture,
            mix,
            recording,
            recorders,
            hosts,
            cards,
            memories,
            failed,
            testers,
            log,
            allowed,
            drops_allowed,
        })
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

    /// Whether the programs of a rank run here, and not in another [part](Cluster::part).
    ///
    /// # Panics
    /// When the rank does not exist.
    pub fn runs(&self, rank: u32) -> bool {
        self.world.runs(NodeId(rank))
    }

    /// Whether all hosts run here.
    pub fn is_whole(&self) -> bool {
        (0..self.hosts.len() as u32).all(|rank| self.runs(rank))
    }

    /// Adds a host's program, which starts at time zero. Does nothing for a host that does not [run here](Cluster::runs). When
    /// the last program of a host has ended, its sockets are closed.
    ///
    /// # Panics
    /// When the rank does not exist.
    pub fn program<F>(&mut self, rank: u32, program: impl FnOnce(Host) -> F)
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        self.begin_program(self.host(rank).clone(), None, program);
    }

    /// As [`Cluster::program`], for one of several processes of a host. `name` is its name in texts. They share the host's
    /// memory, its CPUs, its card and the card's message library, so tags must distinguish their messages. Each has its own
    /// thread and path.
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
    /// A [capture](ClusterConfig::capture) has the packets up to an error.
    ///
    /// # Errors
    /// The first of these:
    ///
    /// 1. A program's own error, since others often wait because of it.
    /// 2. A failed handler.
    /// 3. Messages that a network with faults did not deliver. A packet that a full switch or card dropped, and that nothing
    ///    sends again, is not delivered, unless [drops are allowed](ClusterConfig::drops_allowed).
    /// 4. A deadlock. Ports that have paused each other in a circle are a deadlock even after the end of all programs.
    /// 5. Failures that no program noticed, unless they are [allowed](ClusterConfig::allowed).
    /// 6. Data that the network lost or damaged and nothing sends again, unless that is allowed.
    /// 7. A capture that cannot be written.
    pub fn run(&mut self) -> Result<Run, Error> {
        self.begin();
        let outcome = self.world.run();
        self.end(outcome)
    }

    /// As [`Cluster::run`], and calls `go_on` at intervals of some hundred thousand events. When it returns false, the run is
    /// interrupted.
    ///
    /// # Errors
    /// As [`Cluster::run`].
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

    /// As [`Cluster::run`]. When no events are left and programs wait, calls `more`. It may cause events from outside the
    /// simulation, such as the notification of a [signal](Host::signal). When it returns false, the run ends.
    ///
    /// # Errors
    /// As [`Cluster::run`].
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

    /// Starts the traffic. It ends with the last program; without programs, all of it is sent.
    fn begin(&self) {
        let hosts = || self.hosts.iter().filter(|host| self.runs(host.rank()));
        if !self.testers.is_empty() && hosts().any(Host::is_running) {
            hosts().filter(|host| !host.is_running()).for_each(Host::over);
        }
    }
}

/// Returns the switch that merges the packets of a card's ports.
fn inside(card: &NodeSpec) -> SwitchSpec {
    SwitchSpec { latency: Duration::ZERO, ports: card.ports + 1, buffer: card.link.buffer }
}
