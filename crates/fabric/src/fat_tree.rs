//! Fat trees: folded Clos networks of equal switches. A switch below the top level has as many uplinks as downlinks.
//!
//! Let k be the number of ports of a switch and h = k/2. A *subtree* of level l holds h^(l+1) hosts. A subtree of level
//! 0 is a switch with h hosts, and a subtree of level l joins h subtrees of level l - 1. A subtree has h^l switches at
//! its top, numbered by *plane*. Uplink u of plane p of level l leads to plane p + u h^l of level l + 1. A downlink of
//! plane p leads to plane p mod h^(l-1) of the subtree below. So the path up determines the path down. A switch of the
//! highest level has k downlinks, so a tree of L levels holds 2 h^L hosts.
//!
//! Hosts take the places in order. A switch that no packet can reach is not built: a switch without hosts below, and
//! levels above a subtree that has all hosts. Every built switch below the top has all its uplinks. So between two
//! levels there are at least as many links as hosts below: full bisection bandwidth for any number of hosts.
//!
//! A packet goes up until its destination is below, then down, and never up again. A packet on its way up waits for
//! buffers further up or on the path down. A packet on its way down waits for buffers further down. Every path ends at
//! a card. So packets cannot wait for each other in a cycle, and a fat tree cannot deadlock, however small its buffers.

use crate::ethernet::Plan;
use crate::link::{beside, card, planned_link};
use crate::{
    Delivery, LinkEnd, LinkSpec, NetworkSpec, Port, Route, Routing, Switch, SwitchSpec, Symbol, Terminal,
    TopologyError, Transit,
};
use nicety_kernel::World;
use nicety_types::NodeId;
use std::fmt;
use std::rc::Rc;

/// Maximum number of ports of a switch, as in the specification.
const MOST_PORTS: u32 = 4096;
/// Maximum number of levels. With more than two ports, far fewer levels hold 2^32 hosts.
const MOST_LEVELS: u32 = 32;

/// Policy that selects an uplink; all uplinks reach the destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UpRouting {
    /// By the destination alone. At level l, the packet takes uplink (d / h^l) mod h for the destination's rank d.
    /// Every destination has its own path down, so flows to different destinations never share a downlink.
    #[default]
    DModK,
    /// By a hash of source and destination. Flows are spread, and the packets of a flow stay in order.
    Hash,
    /// By a hash of source, destination and message. Messages are spread. Packets of a message stay in order, but
    /// messages between two nodes can overtake each other.
    HashMessage,
}

impl UpRouting {
    /// All routings.
    pub const ALL: &'static [UpRouting] = &[UpRouting::DModK, UpRouting::Hash, UpRouting::HashMessage];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            UpRouting::DModK => "d-mod-k",
            UpRouting::Hash => "hash",
            UpRouting::HashMessage => "hash-message",
        }
    }
}

/// A fat tree, without hosts yet. By default, its switches have [`SwitchSpec::ports`] ports, it has as many levels as
/// the hosts need, and it uses [`UpRouting::DModK`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FatTree {
    /// Number of ports of a switch, and number of levels. `None` for a value means its default.
    size: Option<(u16, Option<u8>)>,
    up: UpRouting,
}

impl FatTree {
    /// Returns a fat tree of switches with `ports` ports. It has `levels` levels, or as many levels as the hosts need.
    ///
    /// # Errors
    /// When there is no such tree.
    pub fn new(ports: u32, levels: Option<u32>) -> Result<FatTree, TopologyError> {
        check_ports(ports)?;
        if let Some(levels) = levels.filter(|levels| !(1..=MOST_LEVELS).contains(levels)) {
            return Err(TopologyError::new(format!(
                "a fat tree has 1 to {MOST_LEVELS} levels, not {levels}; write fat-tree:{ports} for as many levels as the nodes need"
            )));
        }
        Ok(FatTree {
            size: Some((ports as u16, levels.map(|levels| levels as u8))),
            up: UpRouting::default(),
        })
    }

    /// Returns the same tree with another choice among uplinks.
    pub fn routed(self, up: UpRouting) -> FatTree {
        FatTree { up, ..self }
    }

    /// Whether all packets from one host to another take the same path.
    pub(crate) fn keeps_order(self) -> bool {
        self.up != UpRouting::HashMessage
    }

    /// The choice among uplinks.
    pub fn up(self) -> UpRouting {
        self.up
    }

    /// Parses the text after `fat-tree`: `:PORTS`, `:LEVELS`, `:ROUTING`. Each field is optional. The order is fixed.
    pub(crate) fn parse(text: &str) -> Result<FatTree, TopologyError> {
        let wrong = |why: String| {
            let shown: String = text.chars().take(32).collect();
            Err(TopologyError::new(format!(
                "fat-tree{shown}: {why}; write fat-tree:PORTS or fat-tree:PORTS:LEVELS, optionally with :d-mod-k, \
                 :hash or :hash-message after it, as in fat-tree:36:3:hash"
            )))
        };
        let mut fields = text.split(':').skip(1).peekable();
        let mut number = |what: &str| {
            // A field that begins like a number is a number. Any other word is a routing.
            let numeric = |field: &&str| field.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            match fields.next_if(numeric) {
                None => Ok(None),
                Some(field) => match field.parse::<u32>() {
                    Ok(number) if !field.starts_with('+') => Ok(Some(number)),
                    _ => Err(format!("the number of {what} is a whole number")),
                },
            }
        };
        let (ports, levels) = match (number("ports"), number("levels")) {
            (Ok(ports), Ok(levels)) => (ports, levels),
            (Err(why), _) | (_, Err(why)) => return wrong(why),
        };
        let tree = match ports {
            Some(ports) => FatTree::new(ports, levels)?,
            None => FatTree::default(),
        };
        let up = match fields.next() {
            None => UpRouting::default(),
            Some(word) => match UpRouting::ALL.iter().find(|up| up.name() == word) {
                Some(up) => *up,
                None if word.is_empty() => {
                    return wrong("a field between two colons or after the last colon is empty".into());
                }
                None => return wrong("unknown routing".into()),
            },
        };
        match fields.next() {
            None => Ok(tree.routed(up)),
            Some(_) => wrong("there is more text after the routing".into()),
        }
    }

    /// Returns the shape of the tree with this number of hosts.
    pub(crate) fn shape(self, hosts: usize, spec: &SwitchSpec) -> Result<Shape, TopologyError> {
        let wrong = |text| Err(TopologyError::new(text));
        let (ports, levels) = match self.size {
            Some((ports, levels)) => (u32::from(ports), levels.map(u32::from)),
            None => (spec.ports, None),
        };
        check_ports(ports)?;
        if ports > spec.ports {
            return Err(TopologyError::new(format!(
                "{self} is made of switches with {ports} ports, but switch.ports is {}",
                spec.ports
            ))
            .topology(format!("fat-tree:{}", spec.ports & !1))
            .set(format!("switch.ports={ports}")));
        }
        if hosts < 2 {
            let why = format!("a fat tree has 2 nodes at least, not {hosts}");
            return Err(TopologyError::new(why).nodes("2 or more"));
        }
        let half = u64::from(ports / 2);
        let holds = |levels: u32| half.saturating_pow(levels).saturating_mul(2);
        let needed = (1..=MOST_LEVELS).find(|&levels| holds(levels) >= hosts as u64);
        match (needed, levels) {
            (None, _) => wrong(format!(
                "a fat tree of {ports}-port switches holds {} nodes at most, not {hosts}; write a tree of larger \
                 switches, as in fat-tree:36",
                holds(MOST_LEVELS)
            )),
            (Some(needed), Some(levels)) if needed > levels => {
                let (plural, most) = (if levels == 1 { "" } else { "s" }, holds(levels));
                Err(TopologyError::new(format!(
                    "a fat tree of {ports}-port switches with {levels} level{plural} holds {most} nodes, not {hosts}"
                ))
                .nodes(format!("{most} or fewer"))
                .topology(format!("fat-tree:{ports}:{needed}"))
                .topology(format!("fat-tree:{ports} for as many levels as the nodes need")))
            }
            (Some(needed), levels) => {
                let last = levels.unwrap_or(needed) - 1;
                // No packet would reach a level above the first level with a single subtree.
                let top = (0..last).find(|&l| half.saturating_pow(l + 1) >= hosts as u64).unwrap_or(last);
                Ok(Shape { half, hosts: hosts as u64, top })
            }
        }
    }

    /// Builds the switches and joins the hosts to them.
    pub(crate) fn build(
        self,
        shape: Shape,
        world: &mut World<Symbol>,
        hosts: &[(NodeId, LinkSpec)],
        (spec, plan): (&NetworkSpec, Option<Plan>),
    ) -> (Vec<Port>, Vec<Switch>) {
        let terminal = |node| Terminal { node, buffer: spec.switch.buffer, delivery: Delivery::Head };
        // The switches by level. Within a level, the switches are ordered by subtree, then by plane.
        let mut levels: Vec<Vec<NodeId>> = Vec::new();
        for level in 0..=shape.top {
            // The last subtree may have fewer hosts than planes.
            let below = shape.below(level).min(shape.hosts) as usize;
            let planes = shape.planes(level) as usize;
            levels.push(hosts.chunks(below).flat_map(|hosts| beside(world, hosts, planes)).collect());
        }
        // The link ends of each switch: first its downlinks, in the order of the switches or hosts below, then its
        // uplinks.
        let mut ends: Vec<Vec<Vec<LinkEnd>>> =
            levels.iter().map(|switches| switches.iter().map(|_| Vec::new()).collect()).collect();
        let mut ports = Vec::with_capacity(hosts.len());
        for (rank, host) in (0..).zip(hosts) {
            let leaf = shape.leaf(rank) as usize;
            let (near, far) = planned_link(world, (card(host), terminal(levels[0][leaf])), host.1, plan);
            ports.push(Port::new(near));
            ends[0][leaf].push(far);
        }
        for level in 0..shape.top {
            let (l, planes) = (level as usize, shape.planes(level));
            for index in 0..shape.switches(level) {
                let (subtree, plane) = (index / planes, index % planes);
                for up in 0..shape.half {
                    let above = shape.parent(level, subtree) * shape.planes(level + 1) + plane + up * planes;
                    let (lower, upper) = (levels[l][index as usize], levels[l + 1][above as usize]);
                    let (near, far) =
                        planned_link(world, (terminal(lower), terminal(upper)), spec.link, plan);
                    ends[l][index as usize].push(near);
                    ends[l + 1][above as usize].push(far);
                }
            }
        }
        let ranks = ranks(hosts);
        let mut switches = Vec::new();
        for (level, of_level) in (0..).zip(ends) {
            for (index, ends) in (0..).zip(of_level) {
                let down = ends.len() as u64 - if level < shape.top { shape.half } else { 0 };
                let subtree = index / shape.planes(level);
                let way = SwitchRouting {
                    ranks: ranks.clone(),
                    first: subtree * shape.below(level),
                    below: shape.below(level),
                    stride: shape.planes(level),
                    half: shape.half,
                    down,
                    level,
                    up: self.up,
                };
                let switch = Switch::install(&spec.switch, ends, Box::new(way));
                switches.push(switch.placed(level, index as u32));
            }
        }
        (ports, switches)
    }
}

fn check_ports(ports: u32) -> Result<(), TopologyError> {
    let wrong = |text| Err(TopologyError::new(text));
    match ports {
        0 | 1 => {
            wrong(format!("a fat tree's switches have 2 ports at least, not {ports}; write fat-tree:36"))
        }
        _ if ports > MOST_PORTS => wrong(format!(
            "a fat tree's switches have {MOST_PORTS} ports at most, not {ports}; write fat-tree:36"
        )),
        _ if !ports.is_multiple_of(2) => wrong(format!(
            "a fat tree's switches have an even number of ports, half of them up, not {ports}; write fat-tree:{} or \
             fat-tree:{}",
            ports - 1,
            ports + 1
        )),
        _ => Ok(()),
    }
}

/// Returns the rank of each node, by node.
fn ranks(hosts: &[(NodeId, LinkSpec)]) -> Rc<[u32]> {
    let mut ranks = vec![u32::MAX; hosts.iter().map(|host| host.0.0 as usize + 1).max().unwrap_or(0)];
    for (rank, host) in (0..).zip(hosts) {
        ranks[host.0.0 as usize] = rank;
    }
    ranks.into()
}

impl fmt::Display for FatTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fat-tree")?;
        if let Some((ports, levels)) = self.size {
            write!(f, ":{ports}")?;
            if let Some(levels) = levels {
                write!(f, ":{levels}")?;
            }
        }
        if self.up != UpRouting::default() {
            write!(f, ":{}", self.up.name())?;
        }
        Ok(())
    }
}

/// The shape of a fat tree with its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Half of a switch's ports.
    half: u64,
    hosts: u64,
    /// The highest level built, from 0.
    top: u32,
}

impl Shape {
    /// Maximum number of links of a switch.
    pub(crate) fn links(self) -> u64 {
        2 * self.half
    }

    /// Maximum number of hosts of a subtree of this level. `u64::MAX` at the top level, where one subtree has all
    /// hosts.
    fn below(self, level: u32) -> u64 {
        if level == self.top { u64::MAX } else { self.half.saturating_pow(level + 1) }
    }

    /// Returns the leaf switch of a host, by rank.
    pub(crate) fn leaf(self, rank: u64) -> u64 {
        rank / self.below(0)
    }

    /// Number of switches at the top of a subtree of this level.
    fn planes(self, level: u32) -> u64 {
        self.half.pow(level)
    }

    /// Number of switches at this level.
    fn switches(self, level: u32) -> u64 {
        self.hosts.div_ceil(self.below(level)) * self.planes(level)
    }

    /// Returns the subtree of the next level that contains a subtree.
    fn parent(self, level: u32, subtree: u64) -> u64 {
        if level + 1 == self.top { 0 } else { subtree / self.half }
    }
}

/// The routing of one switch: down by the destination's rank, up by the tree's [`UpRouting`].
struct SwitchRouting {
    /// The rank of each node, by node.
    ranks: Rc<[u32]>,
    /// The first rank below this switch, and the number of ranks below it.
    first: u64,
    below: u64,
    /// Number of ranks behind each downlink. It is also the place value of the digit of a rank by which this level
    /// routes.
    stride: u64,
    half: u64,
    /// Number of downlinks.
    down: u64,
    level: u32,
    up: UpRouting,
}

impl SwitchRouting {
    fn link_up(&self, packet: &Transit, rank: u64) -> u64 {
        let pair = u64::from(packet.message.source.0) << 32 | u64::from(packet.destination.0);
        let hash = match self.up {
            UpRouting::DModK => return rank / self.stride % self.half,
            UpRouting::Hash => mix(pair),
            UpRouting::HashMessage => mix(mix(pair) ^ packet.message.sequence),
        };
        // Every level hashes again. Otherwise flows that share a link at one level would also share links at all higher
        // levels.
        let drawn = mix(hash ^ u64::from(self.level));
        ((u128::from(drawn) * u128::from(self.half)) >> 64) as u64
    }
}

impl Routing for SwitchRouting {
    fn route(&self, packet: &Transit, _: usize) -> Route {
        let to = packet.destination;
        let Some(rank) = self.ranks.get(to.0 as usize).copied().filter(|&rank| rank != u32::MAX) else {
            panic!("a switch has no route to {to}, where a packet of {} is for", packet.message.source)
        };
        let place = u64::from(rank).wrapping_sub(self.first);
        let port = match place < self.below {
            true => place / self.stride,
            false => self.down + self.link_up(packet, u64::from(rank)),
        };
        Route::by(port as usize)
    }
}

/// The output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). A change of one input bit flips half of the
/// output bits on average.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::mix;

    #[test]
    fn the_hash_is_splitmix64() {
        // The expected values are the first two outputs from seed 0.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
    }
}
