//! Topologies: the nodes in addition to the hosts, and the links between all nodes.

use crate::capture::{CapturedLink, CardPorts, Tap};
use crate::ethernet;
use crate::ethernet::{FlowControl, PausedRing, Plan, QueueStatistics, Station, Wait, ring};
use crate::faults::{Cause, Faults, FaultsError, Injector, IsData, Losses, LostData, LostPacket, Place};
use crate::link::{card, link_between, loopback, planned_link};
use crate::meter::{Meter, NetworkStatistics};
use crate::{
    Delivery, FatTree, LinkSpec, NetworkSpec, Packet, Port, Ring, RoutingTable, Switch, SwitchSpec, Symbol,
    Terminal, TopologyError, Torus,
};
use nicety_kernel::World;
use nicety_types::{NodeId, Recorder};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

/// The topology of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Topology {
    /// One host. A cable connects its port to itself.
    Alone,
    /// Two hosts and one link.
    #[default]
    Pair,
    /// Hosts around one switch.
    Star,
    /// Levels of switches with full bandwidth for every host.
    FatTree(FatTree),
    /// Hosts with their own routers, in a grid in which each row is closed to a ring.
    Torus(Torus),
    /// Hosts at switches that form a ring.
    Ring(Ring),
}

impl Topology {
    /// The names of all topologies.
    pub const NAMES: &'static [&'static str] = &["pair", "star", "fat-tree", "torus", "ring", "alone"];

    /// Whether packets from one host to another arrive in the order in which they were sent, unless a fault delays a
    /// packet.
    pub fn keeps_order(self) -> bool {
        match self {
            Topology::FatTree(tree) => tree.keeps_order(),
            Topology::Alone | Topology::Pair | Topology::Star | Topology::Torus(_) | Topology::Ring(_) => {
                true
            }
        }
    }

    /// Checks that this topology can have this number of hosts.
    ///
    /// # Errors
    /// When it cannot. The error has the possible number of hosts, and a correction.
    pub fn check(self, hosts: usize, spec: &SwitchSpec) -> Result<(), TopologyError> {
        let ports = spec.ports as usize;
        let wrong = TopologyError::new;
        Err(match self {
            Topology::Pair if hosts > 2 => wrong(format!("a pair has 2 nodes, not {hosts}"))
                .nodes("2")
                .topology(format!("star for up to {ports}"))
                .topology("fat-tree"),
            Topology::Pair if hosts < 2 => {
                wrong(format!("a pair has 2 nodes, not {hosts}")).nodes("2").topology("alone for one")
            }
            Topology::Alone if hosts != 1 => {
                let why = format!("topology alone has 1 node, not {hosts}");
                wrong(why).nodes("1").topology("pair").topology("star")
            }
            Topology::Star if hosts < 2 => {
                wrong(format!("a star has 2 nodes at least, not {hosts}")).nodes("2 or more")
            }
            Topology::Star if hosts > ports => wrong(format!(
                "a star of {hosts} nodes needs a switch of {hosts} ports, but switch.ports is {ports}"
            ))
            .nodes(format!("{ports} or fewer"))
            .set(format!("switch.ports={hosts}"))
            .topology("fat-tree"),
            Topology::FatTree(tree) => return tree.shape(hosts, spec).map(|_| ()),
            Topology::Torus(torus) => return torus.shape(hosts).map(|_| ()),
            Topology::Ring(ring) => return ring.check(hosts, spec),
            Topology::Alone | Topology::Pair | Topology::Star => return Ok(()),
        })
    }

    /// Joins these hosts. Switches become new nodes of the world, after the existing nodes. Routers are on the hosts'
    /// own nodes.
    ///
    /// # Errors
    /// Like [`Topology::check`].
    ///
    /// # Panics
    /// When the link has no latency, or a buffer has no slot.
    pub fn build(
        self,
        world: &mut World<Symbol>,
        hosts: &[NodeId],
        spec: &NetworkSpec,
    ) -> Result<(Vec<Port>, Network), TopologyError> {
        let hosts: Vec<_> = hosts.iter().map(|&host| (host, spec.link)).collect();
        self.build_for(world, &hosts, spec)
    }

    /// Joins hosts with different cards, each with its own link. On a cable between two hosts or two routers, each
    /// direction uses the link of its sender. A cable between a host and a switch uses the host's link in both
    /// directions. A cable between switches uses [`NetworkSpec::link`].
    ///
    /// # Errors
    /// Like [`Topology::check`].
    ///
    /// # Panics
    /// Like [`Topology::build`].
    pub fn build_for(
        self,
        world: &mut World<Symbol>,
        hosts: &[(NodeId, LinkSpec)],
        spec: &NetworkSpec,
    ) -> Result<(Vec<Port>, Network), TopologyError> {
        self.build_with(world, hosts, spec, (FlowControl::Credits, 0))
    }

    /// Like [`Topology::build_for`], with this flow control. Packets have at most `payload` bytes of payload.
    ///
    /// # Errors
    /// Like [`Topology::check`], and when the flow control does not fit this network.
    ///
    /// # Panics
    /// Like [`Topology::build`].
    pub fn build_with(
        self,
        world: &mut World<Symbol>,
        hosts: &[(NodeId, LinkSpec)],
        spec: &NetworkSpec,
        (flow, payload): (FlowControl, u64),
    ) -> Result<(Vec<Port>, Network), TopologyError> {
        self.check(hosts.len(), &spec.switch)?;
        let plan = self.plan(hosts.iter().map(|host| &host.1), spec, (flow, payload))?;
        let mut ports = Vec::with_capacity(hosts.len());
        let mut switches = Vec::new();
        match self {
            Topology::Alone => ports.push(Port::new(loopback(world, card(&hosts[0]), hosts[0].1))),
            Topology::Pair => {
                let (a, b) =
                    link_between(world, (card(&hosts[0]), hosts[0].1), (card(&hosts[1]), hosts[1].1));
                ports.extend([Port::new(a), Port::new(b)]);
            }
            Topology::Star => {
                let node = world.add_node_beside(hosts[0].0);
                let switch = Terminal { node, buffer: spec.switch.buffer, delivery: Delivery::Head };
                let mut ends = Vec::with_capacity(hosts.len());
                for host in hosts {
                    let (near, end) = planned_link(world, (card(host), switch), host.1, plan);
                    ports.push(Port::new(near));
                    ends.push(end);
                }
                let routing = RoutingTable::new(hosts.iter().enumerate().map(|(port, host)| (host.0, port)));
                switches.push(Switch::install(&spec.switch, ends, Box::new(routing)));
            }
            Topology::FatTree(tree) => {
                let shape = tree.shape(hosts.len(), &spec.switch)?;
                (ports, switches) = tree.build(shape, world, hosts, (spec, plan));
            }
            Topology::Torus(torus) => (ports, switches) = torus.build(world, hosts, spec)?,
            Topology::Ring(ring) => (ports, switches) = ring.build(world, hosts, spec, plan),
        }
        let meters = ports.iter().map(Port::meter).collect();
        let stations = ports.iter().filter_map(Port::station).collect();
        let mut network = Network { hosts: meters, switches, stations, faults: Vec::new(), taps: Vec::new() };
        let links = hosts.iter().map(|host| &host.1).chain([&spec.link]);
        let media = spec.router.iter().flat_map(|router| &router.axes);
        let on_axes = |link: &LinkSpec| media.clone().any(|medium| link.on(medium).protocol.has_bit_errors());
        if links.clone().any(|link| link.protocol.has_bit_errors() || on_axes(link)) {
            network.inject(&Faults::default(), &mut ports).expect("no link is named");
        }
        Ok((ports, network))
    }
}

impl Topology {
    /// Checks that hosts with these links can be joined with this flow control. Packets have at most `payload` bytes of
    /// payload.
    ///
    /// # Errors
    /// Like [`Topology::build_with`].
    pub fn check_flow(
        self,
        hosts: &[LinkSpec],
        spec: &NetworkSpec,
        flow: (FlowControl, u64),
    ) -> Result<(), TopologyError> {
        self.check(hosts.len(), &spec.switch)?;
        self.plan(hosts.iter(), spec, flow).map(drop)
    }

    fn plan<'l>(
        self,
        hosts: impl ExactSizeIterator<Item = &'l LinkSpec> + Clone,
        spec: &'l NetworkSpec,
        (flow, payload): (FlowControl, u64),
    ) -> Result<Option<Plan>, TopologyError> {
        let between_switches = matches!(self, Topology::FatTree(_) | Topology::Ring(_)).then_some(&spec.link);
        let links_of_switch = self.switch_links(hosts.len(), &spec.switch)?;
        let count = hosts.len() as u32;
        flow.plan((count, payload), hosts.chain(between_switches), &spec.switch, links_of_switch)
    }

    /// Returns the shard of each host, by rank. A shard is a block of neighbouring ranks, so that few links lead to
    /// other shards. A block consists of whole groups if there are at least as many groups as shards. A group is a leaf
    /// of a fat tree, a slab of a torus, or a ring switch with its hosts.
    ///
    /// # Errors
    /// Like [`Topology::check`].
    pub fn shards(self, hosts: usize, spec: &SwitchSpec, shards: usize) -> Result<Vec<usize>, TopologyError> {
        self.check(hosts, spec)?;
        let group = |rank: usize| -> Result<usize, TopologyError> {
            Ok(match self {
                Topology::FatTree(tree) => tree.shape(hosts, spec)?.leaf(rank as u64) as usize,
                Topology::Torus(torus) => torus.shape(hosts)?.slab(rank as u32) as usize,
                Topology::Ring(ring) => ring.switch_of(rank, hosts),
                Topology::Alone | Topology::Pair | Topology::Star => rank,
            })
        };
        let groups = hosts.checked_sub(1).map_or(Ok(0), group)? + 1;
        let spread =
            |rank| Ok(if groups < shards { rank * shards / hosts } else { group(rank)? * shards / groups });
        (0..hosts).map(spread).collect()
    }

    /// Maximum number of links of a switch, or `None` without switches.
    fn switch_links(self, hosts: usize, spec: &SwitchSpec) -> Result<Option<u64>, TopologyError> {
        Ok(match self {
            Topology::Alone | Topology::Pair | Topology::Torus(_) => None,
            Topology::Star => Some(hosts as u64),
            Topology::FatTree(tree) => Some(tree.shape(hosts, spec)?.links()),
            Topology::Ring(ring) => Some(ring.links(hosts) as u64),
        })
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topology::Alone => f.write_str("alone"),
            Topology::Pair => f.write_str("pair"),
            Topology::Star => f.write_str("star"),
            Topology::FatTree(tree) => tree.fmt(f),
            Topology::Torus(torus) => torus.fmt(f),
            Topology::Ring(ring) => ring.fmt(f),
        }
    }
}

impl FromStr for Topology {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Topology, TopologyError> {
        let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
        match (name, rest) {
            ("alone", "") => return Ok(Topology::Alone),
            ("pair", "") => return Ok(Topology::Pair),
            ("star", "") => return Ok(Topology::Star),
            ("fat-tree", _) => return FatTree::parse(rest).map(Topology::FatTree),
            ("ring", _) => return Ring::parse(rest).map(Topology::Ring),
            ("torus", _) => return Torus::parse(rest).map(Topology::Torus),
            _ => {}
        }
        // The distance takes quadratic time, so it is not computed for a name that is far longer than all topology
        // names.
        let distance = |t: &str| strsim::damerau_levenshtein(&name.to_lowercase(), t);
        let near = Topology::NAMES
            .iter()
            .filter(|t| name.len() < 32 && distance(t) <= t.len() / 2)
            .min_by_key(|t| distance(t));
        let meant = near.map_or(String::new(), |t| format!("; did you mean {t}?"));
        Err(TopologyError::new(format!(
            "no topology '{text}'; there are: {}{meant}",
            Topology::NAMES.join(", ")
        )))
    }
}

/// The network of a cluster. The network works by itself, and this handle reads its state.
pub struct Network {
    hosts: Vec<Meter>,
    switches: Vec<Switch>,
    /// The hosts' ends of their links, in a network without credits.
    stations: Vec<Rc<Station>>,
    faults: Vec<Rc<Injector>>,
    taps: Vec<Rc<Tap>>,
}

impl Network {
    /// Sets the faults of the network. `ports` are the hosts' ports, by rank.
    ///
    /// # Errors
    /// When a named link or node does not exist.
    pub fn inject(&mut self, faults: &Faults, ports: &mut [Port]) -> Result<(), FaultsError> {
        let hosts = ports.len() as u32;
        let of_switches = self.switches.iter().flat_map(|switch| switch.directions(hosts));
        let of_ports = ports.iter().filter_map(|port| port.direction(hosts));
        let directions: Vec<_> = of_ports.chain(of_switches).collect();
        faults.check(&directions, hosts)?;
        self.faults = ports.iter_mut().filter_map(|port| port.inject(faults, hosts)).collect();
        self.faults.extend(self.switches.iter().flat_map(|switch| switch.inject(faults, hosts)));
        Ok(())
    }

    /// Captures the packets of links from now on. Each node has an equal share of `memory` bytes. `ports` are the
    /// hosts' ports, by rank. Links inside a node are not captured.
    ///
    /// If `card` names a host, the switch of a star counts as part of this host's card. The links to the other hosts
    /// are then the card's ports, numbered by rank. The link between the card and the switch is not captured. Drops of
    /// the card and of the switch are assigned to ports.
    pub fn capture(&mut self, memory: u64, ports: &mut [Port], card: Option<NodeId>) {
        let hosts = ports.len() as u32;
        let nodes = ports.iter().map(Port::node).chain(self.switches.iter().map(Switch::node));
        let mut left: BTreeMap<NodeId, Rc<Cell<u64>>> = nodes.map(|node| (node, Rc::default())).collect();
        let share = memory / left.len().max(1) as u64;
        left.values_mut().for_each(|left| left.set(share));
        let card = CardPorts::of(card, ports.iter().map(Port::node));
        let mut taps: Vec<(NodeId, Rc<Tap>)> = Vec::new();
        for port in ports.iter_mut().filter(|port| !card.is_at(port.node())) {
            taps.extend(port.capture(&left[&port.node()], hosts).map(|tap| (port.node(), tap)));
        }
        for switch in &self.switches {
            taps.extend(switch.capture(&left[&switch.node()], hosts, |node| !card.is_at(node)));
        }
        self.taps = taps.into_iter().map(|(end, tap)| card.name(end, tap)).collect();
        for (station, port) in self.stations.iter().zip(ports.iter()) {
            let taps = card.drops(port.node(), &left[&port.node()]);
            self.taps.extend(taps.iter().map(|(_, tap)| tap.clone()));
            station.tap(taps);
        }
        for switch in &self.switches {
            if let Some(dropping) = switch.ethernet() {
                let taps = card.drops(switch.node(), &left[&switch.node()]);
                self.taps.extend(taps.iter().map(|(_, tap)| tap.clone()));
                dropping.tap(taps);
            }
        }
    }

    /// Takes the packets captured so far. First come the directions of links that carried packets, with the hosts'
    /// links first. Then come the nodes that dropped packets.
    pub fn captured(&self) -> Vec<CapturedLink> {
        self.taps.iter().map(|tap| tap.take()).filter(|link| !link.is_empty()).collect()
    }

    /// Returns the results of `read` for every log of lost packets: logs of links with faults, and logs of cards and
    /// switches that drop packets.
    fn losses<T>(&self, read: impl Fn(&Losses) -> Vec<T>) -> Vec<T> {
        let of_faults = self.faults.iter().map(|link| read(&link.losses()));
        let of_stations = self.stations.iter().map(|station| station.losses(&read));
        let switches = self.switches.iter().filter_map(Switch::ethernet);
        of_faults.chain(of_stations).chain(switches.map(|switch| switch.losses(&read))).flatten().collect()
    }

    /// Lost packets in the order of time. Each direction of a link and each node that drops packets has a log. A log
    /// has the first 100 packets lost by a failure, and the first 100 packets lost for another reason.
    pub fn lost_packets(&self) -> Vec<LostPacket> {
        let mut lost = self.losses(Losses::first);
        lost.sort_by_key(|packet| (packet.time, packet.from, packet.to));
        lost
    }

    /// Lost or damaged packets, including acknowledgements: the last 1000 of each direction of a link and of each node
    /// that drops packets.
    pub fn recent_losses(&self) -> Vec<LostPacket> {
        self.losses(Losses::recent)
    }

    /// Number of lost or damaged packets for each cause and for the two nodes between which they were lost.
    pub fn causes(&self) -> Vec<(Place, Place, Cause, u64)> {
        self.losses(Losses::causes)
    }

    /// Sets the test for packets with data that is never sent again. Without a test, all packets except
    /// [control](crate::Channel::Control) packets count. Call this after [`Network::inject`].
    pub fn set_data(&self, is_data: impl Fn(&Packet) -> bool + 'static) {
        let is_data: IsData = Rc::new(is_data);
        self.faults.iter().for_each(|link| link.set_data(is_data.clone()));
        self.stations.iter().for_each(|station| station.set_data(is_data.clone()));
        let switches = self.switches.iter().filter_map(Switch::ethernet);
        switches.for_each(|switch| switch.set_data(is_data.clone()));
    }

    /// Lost or damaged packets with data that is never sent again, by place and cause, in the order of the first loss of
    /// each entry.
    pub fn lost_data(&self) -> Vec<LostData> {
        let mut lost = self.losses(Losses::data);
        lost.sort_by_key(|LostData { first, .. }| (first.time, first.from, first.to));
        lost
    }

    /// Number of packets from `source` that switches and cards dropped for lack of room.
    pub fn dropped_from(&self, source: NodeId) -> u64 {
        self.losses(|losses| vec![losses.dropped_from(source)]).into_iter().sum()
    }

    /// The counters of the ports of a network without credits. The hosts' ports come first, by rank. The switches'
    /// ports follow in the order of the switches.
    pub fn queues(&self) -> Vec<QueueStatistics> {
        let of_switches =
            self.switches.iter().filter_map(Switch::ethernet).flat_map(ethernet::Inside::queues);
        self.stations.iter().map(|station| station.queue()).chain(of_switches).collect()
    }

    /// Returns a cycle of ports that wait for each other, if there is one. Each of these ports is paused until a frame
    /// resumes it.
    pub fn paused_ring(&self) -> Option<PausedRing> {
        ring(&self.waits().collect::<Vec<_>>())
    }

    /// Whether a port with packets to send is paused until a frame resumes it.
    pub fn has_paused(&self) -> bool {
        self.waits().next().is_some()
    }

    fn waits(&self) -> impl Iterator<Item = Wait> {
        let of_switches = self.switches.iter().filter_map(Switch::ethernet).flat_map(ethernet::Inside::waits);
        self.stations.iter().filter_map(|station| station.waits()).chain(of_switches)
    }

    /// Records the use of the switches' ports, for each switch with the recorder of its node.
    pub fn record(&self, mut recorder_of: impl FnMut(NodeId) -> Recorder) {
        for switch in &self.switches {
            switch.record(&recorder_of(switch.node()));
        }
    }

    /// Whether no packet is in a switch's buffer, and every credit that the switches have spent is back or on its way.
    pub fn is_idle(&self) -> bool {
        self.switches.iter().all(Switch::is_idle)
    }

    /// The counters of all ports of the network so far.
    pub fn statistics(&self) -> NetworkStatistics {
        NetworkStatistics {
            hosts: self.hosts.iter().map(Meter::read).collect(),
            switches: self.switches.iter().map(Switch::statistics).collect(),
            queues: self.queues(),
            faults: self
                .faults
                .iter()
                .filter(|link| !link.is_silent())
                .map(|link| link.statistics())
                .collect(),
        }
    }
}
