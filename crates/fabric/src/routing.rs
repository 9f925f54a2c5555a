//! Routing: the port and the virtual channel by which a packet leaves a switch.

use crate::Transit;
use nicety_types::NodeId;

/// A packet's way out of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The port.
    pub port: usize,
    /// The virtual channel of the port's link. A control packet ignores it.
    pub channel: u8,
    /// The mark for the next switch, which reads it as [`Transit::mark`].
    pub mark: u8,
}

impl Route {
    /// Returns a route by this port, on virtual channel 0, without a mark.
    pub const fn by(port: usize) -> Route {
        Route { port, channel: 0, mark: 0 }
    }
}

/// A switch's routing. It depends on the packet and its input port alone, so the same packet takes the same path in
/// every run.
pub trait Routing {
    /// Returns the route of `packet`, which arrived at port `from`.
    ///
    /// # Panics
    /// When the destination cannot be reached: cards refuse to send to ranks that do not exist.
    fn route(&self, packet: &Transit, from: usize) -> Route;
}

/// One port for each destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingTable {
    /// The port of each node, by node; `None` for nodes that receive no packets.
    ports: Vec<Option<u16>>,
}

impl RoutingTable {
    /// Returns a table from destinations to ports. A later entry for a destination replaces an earlier entry.
    ///
    /// # Panics
    /// When a port's number is above 65 535.
    pub fn new(routes: impl IntoIterator<Item = (NodeId, usize)>) -> RoutingTable {
        let mut ports = Vec::new();
        for (node, port) in routes {
            let index = node.0 as usize;
            if ports.len() <= index {
                ports.resize(index + 1, None);
            }
            ports[index] = Some(u16::try_from(port).expect("fewer than 2^16 ports"));
        }
        RoutingTable { ports }
    }
}

impl Routing for RoutingTable {
    fn route(&self, packet: &Transit, _: usize) -> Route {
        let to = packet.destination;
        match self.ports.get(to.0 as usize) {
            Some(Some(port)) => Route::by(usize::from(*port)),
            _ => panic!("a switch has no route to {to}, where a packet of {} is for", packet.message.source),
        }
    }
}
