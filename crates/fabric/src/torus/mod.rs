//! Tori: grids of one to three dimensions in which each row is closed to a ring, with a router at every host.
//!
//! - `shape.rs`: places of hosts, and the routing rule.
//! - `dependencies.rs`: the check for deadlocks.
//! - This file: the parser of a torus, and its construction.
//!
//! A router is a [`Switch`] on its host's own node. Its first port leads to the card over a link inside the node. The
//! other ports lead to the routers of the neighbours, over links with two virtual channels each.

mod dependencies;
mod shape;

pub use dependencies::{Cycle, TorusChannel};
pub use shape::{Hop, TorusShape, most_cubic};

use crate::link::{card, inner_link, link_between};
use crate::spec::{Medium, RouterSpec};
use crate::{
    Delivery, LinkEnd, LinkProtocol, LinkSpec, NetworkSpec, Port, Route, Routing, Switch, SwitchSpec, Symbol,
    Terminal, TopologyError, Transit,
};
use nicety_kernel::World;
use nicety_types::{Duration, NodeId};
use shape::{Coordinates, DIMENSIONS, Way};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Number of virtual channels of a link between routers.
const CHANNELS: u8 = 2;
/// The latency of the link between card and router. It is the smallest possible, because the router's latency includes
/// it.
const INNER_LATENCY: Duration = Duration::from_ps(1);
/// The names of a router's ports after `local`: two for each dimension.
const NAMES: [[&str; 2]; DIMENSIONS] = [["x+", "x-"], ["y+", "y-"], ["z+", "z-"]];

impl NetworkSpec {
    /// The specification of every host's router on a torus.
    pub fn torus_router(&self) -> RouterSpec {
        self.router.unwrap_or(RouterSpec::like(&self.switch))
    }
}

impl RouterSpec {
    /// Returns the default of [`RouterSpec::entry`] for a buffer of this size: a quarter of the buffer.
    pub const fn usual_entry(buffer: u32) -> u32 {
        if buffer < 4 { 1 } else { buffer / 4 }
    }

    /// Returns a router with the parameters of this switch.
    pub const fn like(switch: &SwitchSpec) -> RouterSpec {
        let &SwitchSpec { latency, buffer, .. } = switch;
        RouterSpec {
            latency,
            buffer,
            entry: RouterSpec::usual_entry(buffer),
            gap: None,
            axes: [Medium::LINK; DIMENSIONS],
        }
    }

    /// The latency of a packet without other traffic. The packet has `bytes` bytes of payload, and crosses `links`
    /// links of each axis and the routers at their ends. All links have the rate of `link`.
    pub fn alone(&self, link: &LinkSpec, links: [u32; DIMENSIONS], bytes: u64) -> Duration {
        let inside = self.latency + INNER_LATENCY + INNER_LATENCY;
        let axes = self.axes.iter().zip(links);
        let passed = axes.map(|(axis, links)| (link.on(axis).latency + self.latency) * u64::from(links));
        passed.fold(link.serialisation(bytes) + inside, |sum, axis| sum + axis)
    }

    /// Whether the links of all axes have the rate of `link`.
    pub fn has_one_rate(&self, link: &LinkSpec) -> bool {
        self.axes.iter().all(|axis| link.on(axis).gap == link.gap)
    }

    /// Returns the throughput limits that the router's buffers set, for packets with `bytes` bytes of payload. The
    /// first limit is for a sending card. The second limit is for a link with all its virtual channels. Both are
    /// fractions of the link's bandwidth, and may be above 1.
    ///
    /// All links have the rate of `link`. A slot is occupied from a packet's start until its credit is back. This time
    /// is the sum of the link's latency in both directions, the router's latency, and the packet's serialisation time.
    pub fn passes(&self, link: &LinkSpec, bytes: u64) -> [f64; 2] {
        let bytes = link.serialisation(bytes);
        let share = |places: u32, latency: Duration| {
            let held = latency + latency + self.latency + bytes;
            f64::from(places) * bytes.ps() as f64 / held.ps() as f64
        };
        let longest = self.axes.iter().map(|axis| link.on(axis).latency).max().unwrap_or(link.latency);
        [share(self.entry, INNER_LATENCY), share(u32::from(CHANNELS) * self.buffer, longest)]
    }
}

/// A torus, without hosts yet. By default, it has three dimensions with sizes as equal as the number of hosts allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Torus {
    /// The sizes, and the number of sizes that the user wrote. The other sizes are 1.
    sizes: Option<(Coordinates, u8)>,
    dateline: bool,
}

impl Default for Torus {
    fn default() -> Torus {
        Torus { sizes: None, dateline: true }
    }
}

impl Torus {
    /// Returns a torus with these sizes of one to three dimensions. A dimension of size 1 has no links. In a dimension
    /// of size 2, each host has two links to the same neighbour.
    ///
    /// # Errors
    /// When there is no such torus.
    pub fn new(sizes: &[u32]) -> Result<Torus, TopologyError> {
        let text = sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
        let wrong = |why: &str| Err(wrong(&text, why));
        if sizes.is_empty() || sizes.len() > DIMENSIONS {
            return wrong("a torus has 1 to 3 dimensions");
        }
        if sizes.contains(&0) {
            return wrong("a dimension has 1 node at least");
        }
        let nodes = sizes.iter().try_fold(1u32, |nodes, &size| nodes.checked_mul(size));
        if nodes.is_none() {
            return wrong("that is more than 2^32 nodes");
        }
        let mut all = [1; DIMENSIONS];
        all[..sizes.len()].copy_from_slice(sizes);
        Ok(Torus { sizes: Some((all, sizes.len() as u8)), ..Torus::default() })
    }

    /// Number of hosts, or `None` if the torus has no sizes.
    pub fn hosts(self) -> Option<u32> {
        self.sizes.map(|(sizes, _)| sizes.iter().product())
    }

    /// Returns the same torus, in which packets use a single virtual channel. Packets in a ring can then wait for each
    /// other for ever. This shows the need for the dateline.
    pub fn without_dateline(self) -> Torus {
        Torus { dateline: false, ..self }
    }

    /// Parses the text after `torus`: `:SIZExSIZExSIZE` or nothing.
    pub(crate) fn parse(text: &str) -> Result<Torus, TopologyError> {
        let Some(sizes) = text.strip_prefix(':') else { return Ok(Torus::default()) };
        let size = |text: &str| match text.parse::<u32>() {
            Ok(size) if !text.starts_with('+') => Ok(size),
            _ => Err(wrong(sizes, "sizes are whole numbers")),
        };
        Torus::new(&sizes.split('x').take(DIMENSIONS + 1).map(size).collect::<Result<Vec<u32>, _>>()?)
    }

    /// Returns the shape of the torus with this number of hosts.
    ///
    /// # Errors
    /// When the torus has sizes for another number of hosts.
    pub fn shape(self, hosts: usize) -> Result<TorusShape, TopologyError> {
        let most_cubic = || {
            u32::try_from(hosts).ok().filter(|&hosts| hosts > 0).map(shape::most_cubic).ok_or_else(|| {
                TopologyError::new(format!("a torus has 1 node at least, not {hosts}")).nodes("1 or more")
            })
        };
        let sizes = match self.sizes {
            None => most_cubic()?,
            Some((sizes, _)) => sizes,
        };
        let nodes = sizes.iter().map(|&size| u64::from(size)).product::<u64>();
        if nodes != hosts as u64 {
            let [x, y, z] = most_cubic()?;
            let plural = if nodes == 1 { "" } else { "s" };
            return Err(TopologyError::new(format!("{self} has {nodes} node{plural}, not {hosts}"))
                .nodes(nodes.to_string())
                .topology(format!("torus:{x}x{y}x{z}")));
        }
        Ok(TorusShape::new(sizes, self.dateline))
    }

    /// Builds the routers and joins the hosts to them.
    pub(crate) fn build(
        self,
        world: &mut World<Symbol>,
        hosts: &[(NodeId, LinkSpec)],
        spec: &NetworkSpec,
    ) -> Result<(Vec<Port>, Vec<Switch>), TopologyError> {
        let shape = self.shape(hosts.len())?;
        if let Some(cycle) = shape.dependency_cycle().filter(|_| self.dateline) {
            return Err(TopologyError::new(format!(
                "{self}: packets can wait for each other in a cycle: {cycle}; this is a defect of nicety's routing, \
                 please report it"
            )));
        }
        let router = spec.torus_router();
        let at = |node| Terminal { node, buffer: router.buffer, delivery: Delivery::Head };
        let entry = |node| Terminal { buffer: router.entry, ..at(node) };
        let mut ports = Vec::with_capacity(hosts.len());
        // The link ends of each router: first the link to the card, then for each dimension the links to the next and
        // the previous host.
        let mut ends: Vec<Vec<Option<LinkEnd>>> = Vec::with_capacity(hosts.len());
        for host in hosts {
            let gap = router.gap.unwrap_or(host.1.gap);
            let protocol = LinkProtocol::NONE;
            let inner = LinkSpec { latency: INNER_LATENCY, gap, channels: 1, protocol, ..host.1 };
            let (near, far) = inner_link(world, card(host), entry(host.0), inner);
            ports.push(Port::new(near));
            ends.push(std::iter::once(Some(far)).chain((0..2 * DIMENSIONS).map(|_| None)).collect());
        }
        let link_of = |rank: u32, dimension: usize| {
            let (node, link) = hosts[rank as usize];
            (at(node), LinkSpec { channels: CHANNELS, ..link.on(&router.axes[dimension]) })
        };
        for rank in 0..hosts.len() as u32 {
            for dimension in (0..DIMENSIONS).filter(|&dimension| shape.sizes()[dimension] > 1) {
                let next = shape.neighbour(rank, dimension, true);
                let (near, far) = link_between(world, link_of(rank, dimension), link_of(next, dimension));
                ends[rank as usize][1 + 2 * dimension] = Some(near);
                ends[next as usize][2 + 2 * dimension] = Some(far);
            }
        }
        let places = places(shape, hosts);
        let spec =
            SwitchSpec { latency: router.latency, ports: 1 + 2 * DIMENSIONS as u32, buffer: router.buffer };
        let mut first = [0; DIMENSIONS];
        let mut names = vec!["local"];
        for dimension in (0..DIMENSIONS).filter(|&dimension| shape.sizes()[dimension] > 1) {
            first[dimension] = names.len() as u8;
            names.extend(NAMES[dimension]);
        }
        let names: Arc<[&'static str]> = names.into();
        let install = |(rank, ends): (u32, Vec<Option<LinkEnd>>)| {
            let routing = Router { places: places.clone(), here: shape.coordinates(rank), shape, first };
            let ends = ends.into_iter().flatten().collect();
            Switch::install(&spec, ends, Box::new(routing)).named(rank, names.clone())
        };
        Ok((ports, (0..).zip(ends).map(install).collect()))
    }
}

/// An error in the text after `torus:`.
fn wrong(sizes: &str, why: &str) -> TopologyError {
    let shown: String = sizes.chars().take(32).collect();
    TopologyError::new(format!("torus:{shown}: {why}; write torus:XxYxZ, as in torus:4x4x4"))
}

impl fmt::Display for Torus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("torus")?;
        if let Some((sizes, written)) = self.sizes {
            let sizes: Vec<String> = sizes[..usize::from(written)].iter().map(u32::to_string).collect();
            write!(f, ":{}", sizes.join("x"))?;
        }
        Ok(())
    }
}

/// The coordinates of a node that is not a host.
const NOWHERE: Coordinates = [u32::MAX; DIMENSIONS];

/// Returns the coordinates of each node, by node.
fn places(shape: TorusShape, hosts: &[(NodeId, LinkSpec)]) -> Rc<[Coordinates]> {
    let mut places = vec![NOWHERE; hosts.iter().map(|host| host.0.0 as usize + 1).max().unwrap_or(0)];
    for (rank, host) in (0..).zip(hosts) {
        places[host.0.0 as usize] = shape.coordinates(rank);
    }
    places.into()
}

/// The routing of one router. A packet's mark has its direction round each ring. The router at the packet's source sets
/// the mark.
struct Router {
    places: Rc<[Coordinates]>,
    here: Coordinates,
    shape: TorusShape,
    /// The number of the first of the two ports of each dimension.
    first: [u8; DIMENSIONS],
}

impl Routing for Router {
    fn route(&self, packet: &Transit, from: usize) -> Route {
        let node = packet.destination;
        let Some(to) = self.places.get(node.0 as usize).filter(|&&to| to != NOWHERE) else {
            panic!("a router has no route to {node}, where a packet of {} is for", packet.message.source)
        };
        let mark = if from == 0 { self.shape.directions(self.here, *to) } else { packet.mark };
        match self.shape.step(self.here, *to, mark) {
            None => Route { port: 0, channel: 0, mark },
            Some(Way { dimension, plus, channel }) => {
                let port = usize::from(self.first[dimension]) + usize::from(!plus);
                Route { port, channel, mark }
            }
        }
    }
}
