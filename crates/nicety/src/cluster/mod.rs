//! A cluster: hosts with their cards, a network between them, and the programs on the hosts.
//!
//! - `mix.rs`: the cards by host, and the check that they speak the same protocol.
//! - `machine.rs`: the check that this machine has enough memory.
//! - `noise.rs`: background noise on the hosts' CPUs.
//! - `testers.rs`: traffic for hosts' cards, and what sends it.
//! - `pauses.rs`: when a run looks whether to go on.
//! - `parts.rs`: a run in several threads or processes.
//! - `undelivered.rs`, `refusals.rs`, `verdict.rs`: the outcome of a run: undelivered messages, commands that cards
//!   refused, and failures that were not allowed.

mod machine;
mod mix;
mod noise;
mod parts;
mod pauses;
mod refusals;
mod testers;
mod undelivered;
mod verdict;

pub use machine::LargeCluster;
pub use noise::Noise;
pub use parts::{Spread, in_parts};
pub use testers::TrafficReport;
pub(crate) use verdict::failures;
pub use verdict::{Allowed, Failure};

use crate::Error;
use crate::capture::{Capture, CapturedRun};
use crate::cards::Card as LoadedCard;
use crate::error::{END_OF_TIME, failure_lines};
use crate::host::{Failed, Host, HostParts};
use crate::record::Recording;
use machine::Gauge;
use mix::Mix;
use nicety_fabric::{Faults, FlowControl, Launcher, LinkSpec, Network, NetworkSpec, SwitchSpec, Symbol};
use nicety_host::{Cpus, Gpu, Memory, Traffic};
use nicety_kernel::{Config, Envelope, Interrupt, Parts, RunError, Summary, World};
use nicety_nic::{
    Card, CardReport, Design, FailureKind, Log, Logged, NodeSpec, ProgramFailure, RefusedCommand, Seat,
    SpinSpec,
};
use nicety_types::{Duration, Level, NodeId, Recorder, Time};
use pauses::Pauses;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use testers::Testers;

pub use nicety_fabric::{NetworkStatistics, PortStatistics, SwitchStatistics, Topology};

/// The configuration of a cluster.
#[derive(Clone)]
pub struct ClusterConfig {
    /// Number of hosts.
    pub nodes: u32,
    /// The card of each, by rank; a single one is in all.
    pub cards: Vec<LoadedCard>,
    /// The network's topology.
    pub topology: Topology,
    /// The rank whose card has all of its ports in use, in a star: the switch is then inside that card. It brings the packets of
    /// the ports together at once, keeps as many for each port as the card for all, and its way to the card is as fast as all
    /// ports.
    pub all_ports: Option<u32>,
    /// What keeps its buffers from overflowing; [`flow::parse`](crate::flow::parse) reads it.
    pub flow_control: FlowControl,
    /// The user of each host's operations, by rank; user 0 on every host if empty.
    pub uids: Vec<u32>,
    /// Background noise on the hosts' CPUs.
    pub noise: Option<Noise>,
    /// The faults that the network injects.
    pub faults: Faults,
    /// The seed of all random streams.
    pub seed: u64,
    /// Number of shards that the nodes are spread over; results do not depend on it.
    pub shards: usize,
    /// When set, building or running the cluster ends.
    pub interrupt: Option<Interrupt>,
    /// Receives the output of handlers.
    pub log: Log,
    /// Called early during the build of a cluster that takes 2 GiB of memory or more.
    pub large: fn(&LargeCluster),
    /// Failures that do not fail the run.
    pub allowed: Allowed,
    /// Whether packets that a full buffer drops are part of the experiment, and do not fail the run.
    pub drops_allowed: bool,
    /// Whether [`Host::path`] accounts for its time by stage, which costs memory and time; always on where messages are
    /// recorded.
    pub breakdown: bool,
    /// Level of recording.
    pub recording: Level,
    /// Most rows that each node keeps in each table of a recording; later rows are only counted. A message takes
    /// about 200 bytes, a packet 300, and every other row 120.
    pub recorded_rows: usize,
    /// Takes the packets of the network's links.
    pub capture: Option<Capture>,
    /// Traffic for hosts' cards while programs run: expressions, each with a tester of its own, which is a node behind the hosts
    /// and sends to the rank that it names by `to`, or to rank 0.
    pub traffic: Vec<String>,
}

/// Default for the rows that a node keeps in each table.
const RECORDED_ROWS: usize = 250_000;

impl ClusterConfig {
    /// Defaults: credits, no noise, no failure allowed, a pair (or a single host), seed 1, one shard, no recording. The output
    /// of handlers and the announcement of a large cluster go to standard error.
    pub fn new(nodes: u32, card: LoadedCard) -> ClusterConfig {
        ClusterConfig {
            nodes,
            cards: vec![card],
            topology: if nodes == 1 { Topology::Alone } else { Topology::Pair },
            all_ports: None,
            flow_control: FlowControl::Credits,
            uids: Vec::new(),
            noise: None,
            faults: Faults::default(),
            seed: 1,
            shards: 1,
            interrupt: None,
            allowed: Allowed::default(),
            drops_allowed: false,
            log: Arc::new(|line| eprintln!("{line}")),
            large: |cluster| eprintln!("{cluster}"),
            breakdown: true,
            recording: Level::Summary,
            recorded_rows: RECORDED_ROWS,
            capture: None,
            traffic: Vec::new(),
        }
    }

    /// As [`ClusterConfig::new`], with a host for each of these cards.
    ///
    /// # Panics
    /// When there are no cards.
    pub fn of(cards: Vec<LoadedCard>) -> ClusterConfig {
        let first = cards.first().expect("a cluster has a host").clone();
        let nodes = cards.len() as u32;
        ClusterConfig { cards, ..ClusterConfig::new(nodes, first) }
    }

    /// The card of a rank.
    ///
    /// # Panics
    /// When there are no cards.
    pub fn card(&self, rank: u32) -> &LoadedCard {
        &self.cards[if self.cards.len() == 1 { 0 } else { rank as usize }]
    }
}

/// A node's results of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The name of its card.
    pub nic: Arc<str>,
    /// Bytes that went through host memory.
    pub memory: Traffic,
    /// Traps and failures of handlers and processes, and packets of the node that were lost.
    pub failures: Vec<ProgramFailure>,
    /// Commands of handlers that the card refused.
    pub refused_commands: Vec<RefusedCommand>,
    /// Messages that found no cycles left in their application's budget: the application, and their number.
    pub unserved: Vec<(String, u64)>,
    /// Counters of the card.
    pub card: CardReport,
}

impl NodeReport {
    /// The counters in one design's type; the default if the card is of another design.
    pub fn of<R: Clone + Default + 'static>(&self) -> R {
        self.card.of::<R>().cloned().unwrap_or_default()
    }
}

/// A completed run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The time of the last event.
    pub end: Time,
    /// Number of events that the kernel processed.
    pub events: u64,
    /// The nodes, by rank.
    pub nodes: Vec<NodeReport>,
    /// What became of the traffic for hosts' cards.
    pub traffic: Vec<TrafficReport>,
    /// Counters of the network's ports: those of hosts by rank, and behind them those of testers.
    pub network: NetworkStatistics,
    /// The recording of the run.
    pub recording: Recording,
}

/// Hosts with their cards, and the programs to be run.
pub struct Cluster {
    world: World<Symbol>,
    pauses: Arc<Pauses>,
    network: Network,
    /// With the description of the run.
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
    /// Failures on the nodes, by rank: traps and failures of handlers and processes, refused commands, messages
    /// without budget, lost packets.
    pub fn failures(&self) -> Vec<Failure> {
        (0..).zip(&self.nodes).flat_map(|(rank, node)| verdict::failures(rank, node)).collect()
    }
}

impl Cluster {
    /// Builds the cluster at time zero.
    ///
    /// # Errors
    /// [`Error::Input`] when the topology does not allow that many nodes, this machine has too little memory, or
    /// noise, faults, flow control or users are invalid; [`Error::Interrupted`] when interrupted.
    pub fn new(config: ClusterConfig) -> Result<Cluster, Error> {
        Cluster::build(config, None)
    }

    /// One of the parts of a cluster, which are built alike, each in a thread or process of its own: it runs the block of hosts
    /// whose programs [run here](Cluster::runs), and the switches beside them. Its report counts what happened here.
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
        // Settings shared by all hosts come from the first one's card.
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
            // More shards than hosts would be empty.
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
        let capture = capture.map(|capture| {
            network.capture(capture.memory(), &mut ports);
            let hosts = if nodes == 1 { "1 host" } else { &format!("{nodes} hosts") };
            (capture, format!("{hosts} with {}, topology {topology}, seed {seed}", mix.names()))
        });
        let barriers = Launcher::install(&mut world, ids, around.barrier);
        // The launcher tells testers that all programs have ended.
        let mut over = match of_testers {
            [] => Vec::new(),
            _ => Launcher::install(&mut world, &ends, around.barrier),
        }
        .into_iter();
        let mut of_hosts = ports;
        let of_testers_ports = of_hosts.split_off(ids.len());
        let mut recorders: Vec<(NodeId, Recorder)> = Vec::new();
        let mut recorder_of = |node: NodeId| {
            // Nodes come in their order; only a router is on a node that has come before, its host's.
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
            let seat = Seat {
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
            let card = spec.clone().install(seat).map_err(|error| mix.about(rank, error.into()))?;
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

    /// A host, for set-up before the run.
    ///
    /// # Panics
    /// When there is no such rank.
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
    /// When there is no such rank.
    pub fn runs(&self, rank: u32) -> bool {
        self.world.runs(NodeId(rank))
    }

    /// Whether all hosts run here.
    pub fn is_whole(&self) -> bool {
        (0..self.hosts.len() as u32).all(|rank| self.runs(rank))
    }

    /// Gives a host a program, which starts at time zero; nothing where it does not [run here](Cluster::runs). When the last
    /// program of a host has ended, its sockets are closed.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn program<F>(&mut self, rank: u32, program: impl FnOnce(Host) -> F)
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        self.begin_program(self.host(rank).clone(), None, program);
    }

    /// As [`Cluster::program`], for one of several processes of a host, with its name in texts. They share the host's memory, its CPUs, its
    /// card and the card's library of messages: tags have to tell their messages apart. Each has a thread and a path of its own.
    ///
    /// # Panics
    /// When there is no such rank.
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
    /// # Errors
    /// A program's own error first, since it is often why others wait; then a failed handler; then messages that a
    /// network with faults did not deliver; then a deadlock; then failures that no program noticed, unless they are
    /// [allowed](ClusterConfig::allowed); then packets that were lost to cards whose programs go on as if they had come,
    /// unless that is allowed. A [capture](ClusterConfig::capture) has what happened until then; one that cannot
    /// be written is the last of errors. A packet that a switch or card had no room for, and that nothing sends again, was not
    /// delivered, unless [drops are allowed](ClusterConfig::drops_allowed); ports that have paused each other in a circle are a deadlock even where all programs have ended.
    pub fn run(&mut self) -> Result<Run, Error> {
        self.begin();
        let outcome = self.world.run();
        self.end(outcome)
    }

    /// As [`Cluster::run`]; every so often, some hundred thousand events, `go_on` is called, and where it returns false, the
    /// run is interrupted.
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

    /// As [`Cluster::run`]; when nothing is left to happen and programs wait, `more` is called, which may have something happen that
    /// does not come of the simulation, such as the notification of a [signal](Host::signal). Where it returns false, that is the end.
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

    /// Traffic ends with the last program; without any it is sent to its end.
    fn begin(&self) {
        let hosts = || self.hosts.iter().filter(|host| self.runs(host.rank()));
        if !self.testers.is_empty() && hosts().any(Host::is_running) {
            hosts().filter(|host| !host.is_running()).for_each(Host::over);
        }
    }

    fn end(&mut self, outcome: Result<Summary, RunError>) -> Result<Run, Error> {
        let captured = self.write_capture();
        self.conclude(outcome).and_then(|run| captured.map(|()| run))
    }

    fn write_capture(&self) -> Result<(), Error> {
        let Some((capture, description)) = &self.capture else { return Ok(()) };
        capture.append(&CapturedRun {
            description: description.clone(),
            layer: self.mix.card(0).spec.link_layer(),
            end: self.world.now(),
            links: &self.network.captured(),
        })
    }

    fn conclude(&mut self, outcome: Result<Summary, RunError>) -> Result<Run, Error> {
        for (card, rank) in self.cards.iter().zip(0..) {
            let lines = card.lines_left_out();
            if lines > 0 {
                (self.log)(&Logged::LeftOut { node: NodeId(rank), lines });
            }
        }
        let failures: Vec<ProgramFailure> = self.cards.iter().flat_map(|card| card.failures()).collect();
        if let Err(RunError::Interrupted { .. } | RunError::Left { .. }) = outcome {
            return Err(Error::Interrupted);
        }
        let undelivered = match self.drops_allowed {
            true => None,
            false => undelivered::undelivered(&self.network, &self.cards),
        };
        if let Some((rank, name, error)) = self.failed.borrow_mut().drain(..).next() {
            let who = name.unwrap_or_else(|| self.mix.label(rank));
            return Err(self.explain_failure(&who, error, &failures, undelivered));
        }
        if let Some(error) = self.testers.error() {
            return Err(error);
        }
        let records = self.recorders.iter().map(|(node, recorder)| (*node, recorder.take())).collect();
        match outcome {
            Ok(_) if undelivered.is_some() => {
                Err(Error::Undelivered(undelivered.unwrap_or_default() + &self.ring_note()))
            }
            // A circle may go through other parts.
            Ok(_)
                if self.network.paused_ring().is_some() || !self.is_whole() && self.network.has_paused() =>
            {
                Err(Error::Deadlock(format!(
                    "the programs ended, and packets never arrived{}",
                    self.ring_note()
                )))
            }
            Ok(summary) => {
                let found = self.cards.iter().zip(&self.memories).zip(0..);
                let report = |(node, rank)| node_report(node, self.mix.name(rank));
                let mut nodes: Vec<NodeReport> = found.map(report).collect();
                verdict::check(&nodes, self.allowed, |rank| self.mix.label(rank))?;
                if let Some((text, failure)) = undelivered::missed(&self.network, &self.cards) {
                    if !self.allowed.has(FailureKind::Lost) {
                        return Err(Error::Undelivered(text));
                    }
                    nodes[failure.node.0 as usize].failures.push(failure);
                }
                Ok(Run {
                    end: summary.end,
                    events: summary.events,
                    nodes,
                    traffic: self.testers.reports(&self.cards, &self.network),
                    network: self.network.statistics(),
                    recording: Recording::of(
                        self.recording,
                        nicety_nic::stages(self.cards.iter().map(|card| card.design())),
                        records,
                    ),
                })
            }
            Err(RunError::TimeLimit { .. }) if failures.is_empty() && undelivered.is_none() => {
                Err(Error::Program(END_OF_TIME.to_owned()))
            }
            Err(error) if !failures.is_empty() => {
                Err(Error::HandlerTrap(format!("{}\nso that there was a {error}", failure_lines(&failures))))
            }
            Err(error) => Err(match undelivered {
                Some(text) => {
                    Error::Undelivered(format!("{text}\nso that there was a {error}{}", self.ring_note()))
                }
                None => Error::Deadlock(format!(
                    "{error}{}{}{}{}",
                    self.ring_note(),
                    hints(&self.cards),
                    refusals::notes(&self.cards),
                    self.fault_notes()
                )),
            }),
        }
    }

    /// The ports that have paused each other in a circle; empty if there are none.
    fn ring_note(&self) -> String {
        self.network.paused_ring().map_or_else(String::new, |ring| {
            format!(
                "\n  note: ports are paused in a circle, each until packets have gone by the next one: {ring}; a topology \
                 without a circle, such as star or fat-tree, or flow control none cannot stop so"
            )
        })
    }

    /// The effects of faults and full buffers on packets so far; only those of failed links and nodes, if cards send again.
    /// Empty if there are none.
    pub fn fault_notes(&self) -> String {
        undelivered::notes(&self.network, &self.cards)
    }

    fn explain_failure(
        &self,
        who: &str,
        error: Error,
        failures: &[ProgramFailure],
        undelivered: Option<String>,
    ) -> Error {
        let because = |text: &str| match failures {
            [] => format!("{who}: {text}"),
            failures => format!("{}\nso that {who} failed: {text}", failure_lines(failures)),
        };
        match error {
            Error::Program(text) if failures.is_empty() => match undelivered {
                Some(cause) => Error::Undelivered(format!("{cause}\nso that {who} failed: {text}")),
                None => Error::Program(because(&text) + &self.fault_notes()),
            },
            Error::Program(text) => Error::HandlerTrap(because(&text)),
            Error::Input(text) => Error::Input(because(&text)),
            Error::System { name, text } => Error::System { name, text: text + &self.fault_notes() },
            Error::TimedOut(text) if failures.is_empty() => Error::TimedOut(because(&text)),
            Error::TimedOut(text) => Error::HandlerTrap(because(&text)),
            other => other,
        }
    }
}

/// What brings the packets of a card's ports together.
fn inside(card: &NodeSpec) -> SwitchSpec {
    SwitchSpec { latency: Duration::ZERO, ports: card.ports + 1, buffer: card.link.buffer }
}

fn node_report((card, memory): (&Rc<dyn Card>, &Rc<Memory>), nic: Arc<str>) -> NodeReport {
    NodeReport {
        nic,
        memory: memory.traffic(),
        failures: card.failures(),
        refused_commands: card.refused_commands(),
        unserved: card.unserved(),
        card: card.report(),
    }
}

/// Deadlock hints from the cards of each design.
fn hints(cards: &[Rc<dyn Card>]) -> String {
    let mut designs: Vec<&'static dyn Design> = Vec::new();
    for card in cards {
        if !designs.contains(&card.design()) {
            designs.push(card.design());
        }
    }
    let of_design = |design: &&'static dyn Design| {
        let same = (0..).zip(cards).filter(|(_, card)| card.design() == *design);
        design.hints(&same.map(|(rank, card)| (rank, card.clone())).collect::<Vec<_>>())
    };
    designs.iter().map(of_design).collect()
}
