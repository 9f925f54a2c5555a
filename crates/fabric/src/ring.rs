//! A ring of switches, each with links to the next and the previous one.
//!
//! A packet takes the shorter way round the ring, clockwise if both ways are equal. No rule breaks cycles: packets in
//! the ring can wait for each other for ever, with credits and with pauses. The topology exists to show such deadlocks.

use crate::ethernet::Plan;
use crate::link::{beside, card, planned_link};
use crate::{
    Delivery, LinkSpec, NetworkSpec, Port, Route, Routing, Switch, SwitchSpec, Symbol, Terminal,
    TopologyError, Transit,
};
use nicety_kernel::World;
use nicety_types::NodeId;
use std::fmt;
use std::rc::Rc;

/// Maximum number of switches of a ring.
const MOST: u32 = 4096;

/// A ring of switches, without hosts yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    switches: u16,
}

impl Ring {
    /// Returns a ring of `switches` switches.
    ///
    /// # Errors
    /// When `switches` is less than 3 or more than 4096.
    pub fn new(switches: u32) -> Result<Ring, TopologyError> {
        match switches {
            3..=MOST => Ok(Ring { switches: switches as u16 }),
            _ => {
                let why = format!("a ring has 3 to {MOST} switches, not {switches}");
                Err(TopologyError::new(why).topology("ring:4").topology("star for one switch"))
            }
        }
    }

    /// Parses the text after `ring`: `:SWITCHES`.
    pub(crate) fn parse(text: &str) -> Result<Ring, TopologyError> {
        let number = text.strip_prefix(':').filter(|text| !text.starts_with('+'));
        match number.and_then(|text| text.parse().ok()) {
            Some(switches) => Ring::new(switches),
            None => {
                let shown: String = text.chars().take(32).collect();
                Err(TopologyError::new(format!(
                    "ring{shown}: the number of switches is a whole number; write ring:SWITCHES, as in ring:4"
                )))
            }
        }
    }

    /// Returns the switch of a host, by rank. Hosts are spread over the switches in the order of their ranks.
    pub(crate) fn switch_of(self, rank: usize, hosts: usize) -> usize {
        rank * usize::from(self.switches) / hosts
    }

    /// Maximum number of links of a switch.
    pub(crate) fn links(self, hosts: usize) -> usize {
        hosts.div_ceil(usize::from(self.switches)) + 2
    }

    /// Checks that the ring can have `hosts` hosts.
    pub(crate) fn check(self, hosts: usize, spec: &SwitchSpec) -> Result<(), TopologyError> {
        let (links, ports) = (self.links(hosts), spec.ports as usize);
        if hosts < 2 {
            return Err(
                TopologyError::new(format!("a ring has 2 nodes at least, not {hosts}")).nodes("2 or more")
            );
        }
        if links > ports {
            let fewer = ports.saturating_sub(2) * usize::from(self.switches);
            let why = format!(
                "{self} with {hosts} nodes needs switches of {links} ports, but switch.ports is {ports}"
            );
            return Err(TopologyError::new(why)
                .nodes(format!("{fewer} or fewer"))
                .set(format!("switch.ports={links}")));
        }
        Ok(())
    }

    /// Builds the switches and joins the hosts to them.
    pub(crate) fn build(
        self,
        world: &mut World<Symbol>,
        hosts: &[(NodeId, LinkSpec)],
        spec: &NetworkSpec,
        plan: Option<Plan>,
    ) -> (Vec<Port>, Vec<Switch>) {
        let count = usize::from(self.switches);
        let nodes = beside(world, hosts, count);
        let terminal =
            |at: usize| Terminal { node: nodes[at], buffer: spec.switch.buffer, delivery: Delivery::Head };
        let mut ends: Vec<Vec<_>> = nodes.iter().map(|_| Vec::new()).collect();
        let mut ports = Vec::with_capacity(hosts.len());
        // By node: the host's switch, and the host's port at this switch.
        let mut places = vec![None; hosts.iter().map(|host| host.0.0 as usize + 1).max().unwrap_or(0)];
        for (rank, host) in hosts.iter().enumerate() {
            let at = self.switch_of(rank, hosts.len());
            let (near, far) = planned_link(world, (card(host), terminal(at)), host.1, plan);
            ports.push(Port::new(near));
            places[host.0.0 as usize] = Some((at, ends[at].len()));
            ends[at].push(far);
        }
        let below: Vec<usize> = ends.iter().map(Vec::len).collect();
        let mut before: Vec<_> = nodes.iter().map(|_| None).collect();
        for (at, ends) in ends.iter_mut().enumerate() {
            let next = (at + 1) % count;
            let (near, far) = planned_link(world, (terminal(at), terminal(next)), spec.link, plan);
            ends.push(near);
            before[next] = Some(far);
        }
        let places: Rc<[Option<(usize, usize)>]> = places.into();
        let each = ends.into_iter().zip(before).zip(below).enumerate();
        let install = |(here, ((mut ends, before), below)): (usize, ((Vec<_>, Option<_>), usize))| {
            ends.extend(before);
            let way = SwitchRouting { places: places.clone(), here, count, below };
            Switch::install(&spec.switch, ends, Box::new(way)).placed(0, here as u32)
        };
        (ports, each.map(install).collect())
    }
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ring:{}", self.switches)
    }
}

/// The routing of one switch.
struct SwitchRouting {
    /// By node: the node's switch, and its port at this switch; `None` for nodes that receive no packets.
    places: Rc<[Option<(usize, usize)>]>,
    here: usize,
    count: usize,
    /// Number of hosts at this switch. The two ports after the hosts' ports lead to the next and to the previous
    /// switch.
    below: usize,
}

impl Routing for SwitchRouting {
    fn route(&self, packet: &Transit, _: usize) -> Route {
        let to = packet.destination;
        let Some((at, port)) = self.places.get(to.0 as usize).copied().flatten() else {
            panic!("a switch has no route to {to}, where a packet of {} is for", packet.message.source)
        };
        let clockwise = (at + self.count - self.here) % self.count;
        match clockwise {
            0 => Route::by(port),
            _ if 2 * clockwise <= self.count => Route::by(self.below),
            _ => Route::by(self.below + 1),
        }
    }
}
