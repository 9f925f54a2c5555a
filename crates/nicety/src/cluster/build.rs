//! The construction of a cluster: its nodes, the network between them, and the hosts with their cards.

use super::machine::Gauge;
use super::mix::Mix;
use super::pauses::Pauses;
use super::testers::{self, Aimed, Testers};
use super::{Cluster, ClusterConfig};
use crate::Error;
use crate::capture::Capture;
use crate::host::{Failed, Host, HostParts};
use nicety_fabric::{Barrier, Launcher, LinkSpec, Network, NetworkSpec, Port, SwitchSpec, Symbol};
use nicety_host::{Cpus, Gpu, Memory};
use nicety_kernel::{Config, Envelope, Interrupt, Parts, Sim, World};
use nicety_nic_core::{Card, NodeContext, NodeSpec};
use nicety_nic_spin::SpinSpec;
use nicety_types::{Duration, Level, NodeId, Recorder};
use std::mem;
use std::rc::Rc;
use std::sync::Arc;

impl Cluster {
    pub(super) fn build(
        mut config: ClusterConfig,
        parts: Option<Box<dyn Parts<Envelope<Symbol>>>>,
    ) -> Result<Cluster, Error> {
        let nodes = config.nodes;
        let mix = Mix::of(mem::take(&mut config.cards), nodes)?;
        // Some settings are common to all hosts. They are those of the card of rank 0.
        let mut around = mix.card(0).spec.node();
        if let Some(rank) = config.all_ports {
            around.switch = inside(&mix.card(rank).spec.node());
        }
        let aimed = testers::aim(mem::take(&mut config.traffic), &mix, nodes, config.seed)?;
        check(&config, &mix, &around, aimed.len())?;
        let gauge = Gauge::new(nodes, &mix.names(), config.large)?;
        let pauses = Arc::new(Pauses::new(config.interrupt.clone()));
        let mut world = world(&config, pauses.clone(), parts);
        let ends = nodes as usize + aimed.len();
        let shards = config.topology.shards(ends, &around.switch, world.shards())?;
        let ends: Vec<NodeId> = shards.into_iter().map(|shard| world.add_node_in(shard)).collect();
        let (mut network, mut ports) = connect(&config, &mut world, &mix, &around, (&ends, &aimed))?;
        let (ids, of_testers) = ends.split_at(nodes as usize);
        let capture = capture(&mut config, &mix, &mut network, (ids, &mut ports));
        let barriers = Launcher::install(&mut world, ids, around.barrier);
        // The launcher signals to testers that all programs have ended.
        let mut over = match of_testers {
            [] => Vec::new(),
            _ => Launcher::install(&mut world, &ends, around.barrier),
        }
        .into_iter();
        let ports_of_testers = ports.split_off(ids.len());
        let mut built = Hosts::new(&config, &mix, ends.len() as u32);
        for ((&id, port), barrier) in ids.iter().zip(ports).zip(barriers) {
            if config.interrupt.as_ref().is_some_and(Interrupt::is_set) {
                return Err(Error::Interrupted);
            }
            built.add(id, world.sim(id), port, (barrier, over.next()))?;
            gauge.built(built.hosts.len() as u32)?;
        }
        let mut testers = Testers::default();
        for (((&id, port), aimed), over) in of_testers.iter().zip(ports_of_testers).zip(aimed).zip(over) {
            let recorder = built.recorder(id);
            let card = &built.cards[aimed.rank as usize];
            testers.add(aimed, card, (world.sim(id), port, &recorder), over)?;
        }
        network.record(|node| built.recorder(node));
        let Hosts { recorders, hosts, cards, memories, failed, .. } = built;
        let ClusterConfig { recording, log, allowed, drops_allowed, .. } = config;
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
}

/// Checks the configuration of a cluster with this number of testers.
fn check(config: &ClusterConfig, mix: &Mix, around: &NodeSpec, testers: usize) -> Result<(), Error> {
    let ClusterConfig { nodes, ref topology, ref noise, ref uids, .. } = *config;
    // Testers have links as hosts do.
    topology.check(nodes as usize + testers, &around.switch).map_err(|error| match testers {
        0 => error.into(),
        1 => Error::Input(format!("of {nodes} hosts and 1 traffic sender: {error}")),
        many => Error::Input(format!("of {nodes} hosts and {many} traffic senders: {error}")),
    })?;
    if let Some(rank) = noise.as_ref().and_then(|noise| noise.rank).filter(|&rank| rank >= nodes) {
        return Err(Error::Input(format!("noise on rank {rank}: the cluster has ranks 0 to {}", nodes - 1)));
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
    Ok(())
}

/// Returns the simulation of the whole cluster, or of one part.
fn world(
    config: &ClusterConfig,
    pauses: Arc<Pauses>,
    parts: Option<Box<dyn Parts<Envelope<Symbol>>>>,
) -> World<Symbol> {
    let config = Config {
        seed: config.seed,
        // If there were more shards than hosts, some shards would be empty.
        shards: config.shards.min(config.nodes as usize),
        interrupt: Some(Interrupt::new(move || pauses.is_due())),
        max_time: None,
    };
    match parts {
        None => World::new(config),
        Some(parts) => World::part(config, parts),
    }
}

/// Connects hosts and testers by a network with the configured faults. Returns the network, and the port of each host and tester.
fn connect(
    config: &ClusterConfig,
    world: &mut World<Symbol>,
    mix: &Mix,
    around: &NodeSpec,
    (ends, aimed): (&[NodeId], &[Aimed]),
) -> Result<(Network, Vec<Port>), Error> {
    let nodes = config.nodes;
    let parts = NetworkSpec { link: around.link, switch: around.switch, router: around.router };
    let ranks = (0..nodes).chain(aimed.iter().map(|aimed| aimed.rank));
    let link_of = |rank| {
        let NodeSpec { link, ports, .. } = mix.card(rank).spec.node();
        if config.all_ports == Some(rank) { LinkSpec { gap: link.gap.of_wires(ports), ..link } } else { link }
    };
    let links: Vec<_> = ends.iter().zip(ranks).map(|(&id, rank)| (id, link_of(rank))).collect();
    let flow = (config.flow_control, mix.largest_packet());
    let (mut ports, mut network) = config.topology.build_with(world, &links, &parts, flow)?;
    network.inject(&config.faults, &mut ports)?;
    let sender = mix.card(0).spec.clone();
    // The frames from and to testers are left out, because the traffic reports count them.
    network.set_data(move |packet| {
        let ends = [packet.label.message.source, packet.label.destination];
        ends.iter().all(|end| end.0 < nodes) && !sender.makes_up_for(packet)
    });
    Ok((network, ports))
}

/// Starts the requested capture. Returns the capture and the description of the run.
fn capture(
    config: &mut ClusterConfig,
    mix: &Mix,
    network: &mut Network,
    (ids, ports): (&[NodeId], &mut [Port]),
) -> Option<(Capture, String)> {
    let capture = config.capture.take()?;
    let ClusterConfig { nodes, all_ports, ref topology, seed, .. } = *config;
    network.capture(capture.memory(), ports, all_ports.map(|rank| ids[rank as usize]));
    let hosts = if nodes == 1 { "1 host" } else { &format!("{nodes} hosts") };
    Some((capture, format!("{hosts} with {}, topology {topology}, seed {seed}", mix.names())))
}

/// The hosts of a cluster, with their cards.
struct Hosts<'c> {
    config: &'c ClusterConfig,
    mix: &'c Mix,
    /// The number of nodes that are hosts or testers.
    ends: u32,
    /// The recorder of each node.
    recorders: Vec<(NodeId, Recorder)>,
    hosts: Vec<Host>,
    cards: Vec<Rc<dyn Card>>,
    memories: Vec<Rc<Memory>>,
    failed: Failed,
}

impl<'c> Hosts<'c> {
    fn new(config: &'c ClusterConfig, mix: &'c Mix, ends: u32) -> Hosts<'c> {
        let (hosts, cards, memories) = Default::default();
        Hosts { config, mix, ends, recorders: Vec::new(), hosts, cards, memories, failed: Failed::default() }
    }

    /// Returns the recorder of a node. Calls come in ascending order of nodes, except that a router is on the node of its host.
    fn recorder(&mut self, node: NodeId) -> Recorder {
        if let Some((known, recorder)) = self.recorders.get(node.0 as usize) {
            debug_assert_eq!(*known, node);
            return recorder.clone();
        }
        let recorder = Recorder::new(self.config.recording, self.config.recorded_rows);
        self.recorders.push((node, recorder.clone()));
        recorder
    }

    /// Adds a host with its card.
    fn add(
        &mut self,
        id: NodeId,
        sim: Sim,
        port: Port,
        (barrier, over): (Barrier, Option<Barrier>),
    ) -> Result<(), Error> {
        let recorder = self.recorder(id);
        let (config, mix, rank) = (self.config, self.mix, id.0);
        let spec = &mix.card(rank).spec;
        let host = spec.node().host;
        let memory = Rc::new(Memory::new(host.memory));
        let gpu = spec.gpu().map(Gpu::new);
        let mut cpus = Cpus::new(&sim, host, &recorder);
        if let Some(noise) = config.noise.as_ref().and_then(|noise| noise.on(rank)) {
            cpus = cpus.with_noise(noise);
        }
        let cpus = Rc::new(cpus);
        let node_context = NodeContext {
            sim: &sim,
            nodes: self.ends,
            ordered: config.topology.keeps_order(),
            memory: &memory,
            gpu: gpu.as_ref(),
            cpus: &cpus,
            port,
            packet_payload: mix.packet_payload(),
            eager: mix.eager(),
            uid: config.uids.get(rank as usize).copied().unwrap_or_default(),
            log: &config.log,
            recorder: &recorder,
        };
        let card = spec.clone().install(node_context).map_err(|error| mix.about(rank, error.into()))?;
        self.cards.push(card.clone());
        self.memories.push(memory.clone());
        self.hosts.push(Host::new(HostParts {
            sim,
            ranks: config.nodes,
            card,
            memory,
            gpu,
            cpus,
            barrier,
            over,
            failed: self.failed.clone(),
            recorder,
            breakdown: config.breakdown || config.recording >= Level::Messages,
        }));
        Ok(())
    }
}

/// Returns the switch inside a card, which merges the packets of the card's ports.
fn inside(card: &NodeSpec) -> SwitchSpec {
    SwitchSpec { latency: Duration::ZERO, ports: card.ports + 1, buffer: card.link.buffer }
}
