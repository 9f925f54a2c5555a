//! A cluster: hosts with their cards, a network between them, and the programs on the hosts.
//!
//! - `mix.rs`: which host has which card, and whether they understand each other.
//! - `machine.rs`: whether this machine has the memory for it.
//! - `noise.rs`: background noise on the hosts' CPUs.
//! - `undelivered.rs`, `refusals.rs`, `verdict.rs`: how a run ended: messages that the network did not deliver, commands
//!   that cards refused, and whether what failed was allowed to.

mod machine;
mod mix;
mod noise;
mod refusals;
mod undelivered;
mod verdict;

pub use machine::LargeCluster;
pub use noise::Noise;
pub use verdict::{Allowed, Failure};

use crate::Error;
use crate::cards::Card as LoadedCard;
use crate::error::{END_OF_TIME, fault_lines};
use crate::host::{Failed, Host, HostParts};
use crate::record::Recording;
use machine::Gauge;
use mix::Mix;
use nicety_fabric::{Faults, Launcher, Network, NetworkSpec, Symbol};
use nicety_host::{Cpus, Memory, Traffic};
use nicety_kernel::{Config, Interrupt, RunError, World};
use nicety_nic::{Card, CardReport, Design, Fault, Log, Logged, RefusedCommand, Seat, SpinSpec};
use nicety_types::{Level, NodeId, Recorder, Time};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

pub use nicety_fabric::{NetworkStatistics, PortStatistics, SwitchStatistics, Topology};

/// What a cluster is made of.
#[derive(Clone)]
pub struct ClusterConfig {
    /// Hosts.
    pub nodes: u32,
    /// The card in each of them, by rank; one alone is in all.
    pub cards: Vec<LoadedCard>,
    /// How they are joined.
    pub topology: Topology,
    /// On behalf of which user each host's operations are, by rank; of user 0 on every host where there are none.
    pub uids: Vec<u32>,
    /// Background noise on the hosts' CPUs.
    pub noise: Option<Noise>,
    /// What goes wrong in the network.
    pub faults: Faults,
    /// Where all random streams come from.
    pub seed: u64,
    /// Over how many shards the nodes are spread; results do not depend on it.
    pub shards: usize,
    /// Once it is set, building the cluster, or its run, ends.
    pub interrupt: Option<Interrupt>,
    /// Takes what handlers print.
    pub log: Log,
    /// Hears, while little of it is built, that the cluster takes 2 GiB of memory or more.
    pub large: fn(&LargeCluster),
    /// Failures of handlers and processes that a run may end with.
    pub allowed: Allowed,
    /// Whether [`Host::path`] accounts for its time stage by stage, which costs memory and time; always where messages are
    /// recorded.
    pub breakdown: bool,
    /// How much of the run is recorded.
    pub recording: Level,
    /// Most rows that each node keeps in each table of a recording; what comes after is counted only. A message takes
    /// about 1200 bytes until both of its ends are put together, a packet 300, and everything else 120.
    pub recorded_rows: usize,
}

/// Rows that a node keeps in each table unless told otherwise.
const RECORDED_ROWS: usize = 250_000;

impl ClusterConfig {
    /// Hosts without noise, no failure allowed, a pair unless there is one alone, seed 1, one shard; what handlers print goes to standard
    /// error, what a large cluster takes too, and nothing is recorded.
    pub fn new(nodes: u32, card: LoadedCard) -> ClusterConfig {
        ClusterConfig {
            nodes,
            cards: vec![card],
            topology: if nodes == 1 { Topology::Alone } else { Topology::Pair },
            uids: Vec::new(),
            noise: None,
            faults: Faults::default(),
            seed: 1,
            shards: 1,
            interrupt: None,
            allowed: Allowed::default(),
            log: Arc::new(|line| eprintln!("{line}")),
            large: |cluster| eprintln!("{cluster}"),
            breakdown: true,
            recording: Level::Summary,
            recorded_rows: RECORDED_ROWS,
        }
    }

    /// As [`ClusterConfig::new`], of a host for each of these cards.
    ///
    /// # Panics
    /// When there is none.
    pub fn of(cards: Vec<LoadedCard>) -> ClusterConfig {
        let first = cards.first().expect("a cluster has a host").clone();
        let nodes = cards.len() as u32;
        ClusterConfig { cards, ..ClusterConfig::new(nodes, first) }
    }

    /// The card of a rank.
    ///
    /// # Panics
    /// When there is none.
    pub fn card(&self, rank: u32) -> &LoadedCard {
        &self.cards[if self.cards.len() == 1 { 0 } else { rank as usize }]
    }
}

/// What happened on a node during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The name of its card.
    pub nic: Arc<str>,
    /// Bytes that went through host memory.
    pub memory: Traffic,
    /// Handlers and processes that failed.
    pub faults: Vec<Fault>,
    /// Commands of handlers that the card refused.
    pub refused_commands: Vec<RefusedCommand>,
    /// Messages for which an application's budget had no cycles left: the application, and how many.
    pub unserved: Vec<(String, u64)>,
    /// What the card counted.
    pub card: CardReport,
}

impl NodeReport {
    /// What cards of one design count; nothing where the card is of another.
    pub fn of<R: Clone + Default + 'static>(&self) -> R {
        self.card.of::<R>().cloned().unwrap_or_default()
    }
}

/// A run that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// When the last thing happened.
    pub end: Time,
    /// How many events the kernel went through.
    pub events: u64,
    /// The nodes, by rank.
    pub nodes: Vec<NodeReport>,
    /// What the network's ports have seen.
    pub network: NetworkStatistics,
    /// What the run left to look at.
    pub recording: Recording,
}

/// Hosts with their cards, and programs that wait to be run.
pub struct Cluster {
    world: World<Symbol>,
    network: Network,
    mix: Mix,
    recording: Level,
    /// What each node keeps, by node.
    recorders: Vec<(NodeId, Recorder)>,
    hosts: Vec<Host>,
    cards: Vec<Rc<dyn Card>>,
    memories: Vec<Rc<Memory>>,
    /// Programs that failed: rank and why.
    failed: Failed,
    log: Log,
    allowed: Allowed,
}

impl Run {
    /// What failed on the nodes, by rank: handlers and processes, commands that cards refused, messages for which a
    /// budget had no cycles left.
    pub fn failures(&self) -> Vec<Failure> {
        (0..).zip(&self.nodes).flat_map(|(rank, node)| verdict::failures(rank, node)).collect()
    }
}

impl Cluster {
    /// Builds the cluster at time zero.
    ///
    /// # Errors
    /// [`Error::Input`] when the topology cannot have that many nodes, this machine has too little memory for them, or noise,
    /// faults or users cannot be; [`Error::Interrupted`] when it is.
    pub fn new(config: ClusterConfig) -> Result<Cluster, Error> {
        let ClusterConfig {
            nodes,
            cards,
            topology,
            uids,
            noise,
            faults,
            seed,
            shards,
            interrupt,
            log,
            large,
            allowed,
            breakdown,
            recording,
            recorded_rows,
        } = config;
        let mix = Mix::of(cards, nodes)?;
        // Of what is around all hosts, the first one's card says how it is.
        let around = mix.card(0).spec.node();
        topology.check(nodes as usize, &around.switch)?;
        if let Some(rank) = noise.and_then(|noise| noise.rank).filter(|&rank| rank >= nodes) {
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
        // More shards than hosts would only be empty.
        let mut world = World::new(Config {
            seed,
            shards: shards.min(nodes as usize),
            interrupt: interrupt.clone(),
            max_time: None,
        });
        let ids: Vec<NodeId> = (0..nodes).map(|_| world.add_node()).collect();
        let parts = NetworkSpec { link: around.link, switch: around.switch };
        let links: Vec<_> = ids.iter().map(|&id| (id, mix.card(id.0).spec.node().link)).collect();
        let (mut ports, mut network) = topology.build_for(&mut world, &links, &parts)?;
        network.inject(&faults, &mut ports)?;
        let barriers = Launcher::install(&mut world, &ids, around.barrier);
        let mut recorders = Vec::new();
        let mut recorder_of = |node: NodeId| {
            let recorder = Recorder::new(recording, recorded_rows);
            recorders.push((node, recorder.clone()));
            recorder
        };
        let failed = Failed::default();
        let (mut hosts, mut cards, mut memories) = (Vec::new(), Vec::new(), Vec::new());
        for ((&id, port), barrier) in ids.iter().zip(ports).zip(barriers) {
            if interrupt.as_ref().is_some_and(Interrupt::is_set) {
                return Err(Error::Interrupted);
            }
            let sim = world.sim(id);
            let recorder = recorder_of(id);
            let (spec, rank) = (&mix.card(id.0).spec, id.0);
            let host = spec.node().host;
            let memory = Rc::new(Memory::new(host.memory));
            let mut cpus = Cpus::new(&sim, host, &recorder);
            if let Some(noise) = noise.and_then(|noise| noise.on(id.0)) {
                cpus = cpus.with_noise(noise);
            }
            let cpus = Rc::new(cpus);
            let uid = uids.get(id.0 as usize).copied().unwrap_or_default();
            let seat = Seat {
                sim: &sim,
                nodes,
                memory: &memory,
                cpus: &cpus,
                port,
                packet_payload: mix.packet_payload(),
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
            let parts = HostParts { sim, ranks, card, memory, cpus, barrier, failed, recorder, breakdown };
            hosts.push(Host::new(parts));
            gauge.built(hosts.len() as u32)?;
        }
        network.record(recorder_of);
        Ok(Cluster {
            world,
            network,
            mix,
            recording,
            recorders,
            hosts,
            cards,
            memories,
            failed,
            log,
            allowed,
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

    /// Gives a host a program, which starts at time zero.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn program<F>(&mut self, rank: u32, program: impl FnOnce(Host) -> F)
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let running = program(self.hosts[rank as usize].clone());
        let failed = self.failed.clone();
        self.world.sim(NodeId(rank)).spawn_program(self.mix.label(rank), async move {
            if let Err(error) = running.await {
                failed.borrow_mut().push((rank, error));
            }
        });
    }

    /// Runs until nothing is left to happen.
    ///
    /// # Errors
    /// A program's own error first, since it is often why others wait; then a failed handler; then what a network with faults
    /// did not deliver; then a deadlock; then what failed without anybody waiting for it, unless it is
    /// [allowed](ClusterConfig::allowed).
    pub fn run(&mut self) -> Result<Run, Error> {
        let outcome = self.world.run();
        for (card, rank) in self.cards.iter().zip(0..) {
            let lines = card.lines_left_out();
            if lines > 0 {
                (self.log)(&Logged::LeftOut { node: NodeId(rank), lines });
            }
        }
        let faults: Vec<Fault> = self.cards.iter().flat_map(|card| card.faults()).collect();
        if let Err(RunError::Interrupted { .. }) = outcome {
            return Err(Error::Interrupted);
        }
        let undelivered = undelivered::undelivered(&self.network, &self.cards);
        if let Some((rank, error)) = self.failed.borrow_mut().drain(..).next() {
            return Err(self.explain_failure(rank, error, &faults, undelivered));
        }
        let records = self.recorders.iter().map(|(node, recorder)| (*node, recorder.take())).collect();
        match outcome {
            Ok(_) if undelivered.is_some() => Err(Error::Undelivered(undelivered.unwrap_or_default())),
            Ok(summary) => {
                let found = self.cards.iter().zip(&self.memories).zip(0..);
                let report = |(node, rank)| node_report(node, self.mix.name(rank));
                let nodes: Vec<NodeReport> = found.map(report).collect();
                verdict::check(&nodes, self.allowed, |rank| self.mix.label(rank))?;
                Ok(Run {
                    end: summary.end,
                    events: summary.events,
                    nodes,
                    network: self.network.statistics(),
                    recording: Recording::of(self.recording, records),
                })
            }
            Err(RunError::TimeLimit { .. }) if faults.is_empty() && undelivered.is_none() => {
                Err(Error::Program(END_OF_TIME.to_owned()))
            }
            Err(error) if !faults.is_empty() => {
                Err(Error::HandlerTrap(format!("{}\nso that there was a {error}", fault_lines(&faults))))
            }
            Err(error) => Err(match undelivered {
                Some(text) => Error::Undelivered(format!("{text}\nso that there was a {error}")),
                None => Error::Deadlock(format!(
                    "{error}{}{}{}",
                    hints(&self.cards),
                    refusals::notes(&self.cards),
                    self.fault_notes()
                )),
            }),
        }
    }

    /// What faults did to packets so far where cards do not make up for it; empty where that is nothing.
    pub fn fault_notes(&self) -> String {
        undelivered::notes(&self.network, &self.cards)
    }

    fn explain_failure(
        &self,
        rank: u32,
        error: Error,
        faults: &[Fault],
        undelivered: Option<String>,
    ) -> Error {
        let rank = self.mix.label(rank);
        let because = |text: &str| match faults {
            [] => format!("{rank}: {text}"),
            faults => format!("{}\nso that {rank} failed: {text}", fault_lines(faults)),
        };
        match error {
            Error::Program(text) if faults.is_empty() => match undelivered {
                Some(cause) => Error::Undelivered(format!("{cause}\nso that {rank} failed: {text}")),
                None => Error::Program(because(&text) + &self.fault_notes()),
            },
            Error::Program(text) => Error::HandlerTrap(because(&text)),
            Error::Input(text) => Error::Input(because(&text)),
            Error::TimedOut(text) if faults.is_empty() => Error::TimedOut(because(&text)),
            Error::TimedOut(text) => Error::HandlerTrap(because(&text)),
            other => other,
        }
    }
}

fn node_report((card, memory): (&Rc<dyn Card>, &Rc<Memory>), nic: Arc<str>) -> NodeReport {
    NodeReport {
        nic,
        memory: memory.traffic(),
        faults: card.faults(),
        refused_commands: card.refused_commands(),
        unserved: card.unserved(),
        card: card.report(),
    }
}

/// What may be why programs wait for what never comes, of the cards of each design.
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
