//! The network: links and switches that carry packets between nodes.
//!
//! - A [`Packet`] is the only object that passes between nodes, by value. Its header and payload are real bytes, and
//!   the receiver reads nothing else. Its [`Label`] is for the network and for records.
//! - [`link`] joins two nodes. A [`Port`] is a card's end of a link: serialisation, latency, and credits for the buffer
//!   at the far end. [`pair`] joins two nodes and returns both ports.
//! - [`LinkProtocol`] is for links with bit errors: a checksum of each packet, and resending.
//! - A [`Switch`] has link ends as ports, and forwards packets by its [`Routing`].
//! - [`FlowControl`] selects the method against buffer overflow: credits, pauses (IEEE 802.1Qbb), or none. With none,
//!   switches drop packets.
//! - [`Faults`] are injected on links, by chance or by script.
//! - [`Topology`] joins hosts, with or without switches, into a [`Network`]. A [`FatTree`] has several levels, a
//!   [`Ring`] is a cycle of switches, and a [`Torus`] has a router at every host.
//! - [`Network::capture`] captures the packets of links.
//! - [`Launcher`] is the job launcher's out-of-band network, for barriers outside the measurement.

mod capture;
mod error;
mod ethernet;
mod fat_tree;
mod faults;
mod lane;
mod launcher;
mod link;
mod meter;
mod packet;
mod packet_box;
mod port;
mod protocol;
mod ring;
mod routing;
mod spec;
mod switch;
mod symbol;
mod topology;
mod torus;
mod transit;
mod transmit;

pub use capture::{Captured, CapturedLink, CardPort, Disposition};
pub use error::TopologyError;
pub use ethernet::{
    Alpha, Buffering, Drops, FlowControl, LEAST, Pause, PauseSpec, PausedRing, Per, QueueStatistics,
};
pub use fat_tree::{FatTree, UpRouting};
pub use faults::{
    Cause, FaultStatistics, Faults, FaultsError, LinkFaults, LostData, LostPacket, NodeFailure, Outage,
    Place, Rates,
};
pub use launcher::{Barrier, Launcher};
pub use link::{Delivery, LinkEnd, Terminal, link, link_between};
pub use meter::{NetworkStatistics, PortStatistics, SwitchStatistics};
pub use packet::{Channel, HeaderBytes, Label, Packet};
pub use packet_box::PacketBox;
pub use port::{Port, Turn, pair};
pub use ring::Ring;
pub use routing::{Route, Routing, RoutingTable};
pub use spec::{BitErrorRate, LinkProtocol, LinkSpec, Medium, NetworkSpec, Resend, RouterSpec, SwitchSpec};
pub use switch::Switch;
pub use symbol::Symbol;
pub use topology::{Network, Topology};
pub use torus::{Cycle, Hop, Torus, TorusChannel, TorusShape, most_cubic};
pub use transit::Transit;
