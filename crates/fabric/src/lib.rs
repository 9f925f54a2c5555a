//! The network: what carries packets from one node to another.
//!
//! - [`Packet`] is the only thing that ever passes between nodes, by value, with real header bytes.
//! - [`Port`] is a node's end of a link: serialisation, latency, and credits for the buffer at the other end.
//! - [`pair`] wires two nodes.
//! - [`Launcher`] is the job launcher's out-of-band network, for barriers outside anything measured.

mod launcher;
mod packet;
mod port;

pub use launcher::{Barrier, Launcher};
pub use packet::{HeaderBytes, Packet, Symbol};
pub use port::{LinkSpec, Port, Turn, pair};
