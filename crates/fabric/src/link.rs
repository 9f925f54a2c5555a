//! Links: two wires between two nodes, and what each end knows of the other.

use crate::{LinkSpec, Symbol};
use nicety_kernel::{Sim, WireRx, WireTx, World};
use nicety_types::NodeId;

/// When a packet is given to what is at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// When its last byte is there: a card works from its packet buffer.
    Whole,
    /// When its first byte is there: a switch sends it on while it comes.
    Head,
}

/// What is at an end of a link, seen from the other end.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// The node.
    pub node: NodeId,
    /// Packets that its buffer for this link holds.
    pub buffer: u32,
    /// When it is given a packet.
    pub delivery: Delivery,
}

/// A node's end of a link, to be made into a port of a card or of a switch.
pub struct LinkEnd {
    pub(crate) sim: Sim,
    pub(crate) spec: LinkSpec,
    /// What this end sends to.
    pub(crate) far: Terminal,
    /// Packets that this end's buffer holds.
    pub(crate) buffer: u32,
    pub(crate) outgoing: WireTx<Symbol>,
    pub(crate) incoming: WireRx<Symbol>,
}

/// Joins two nodes by a link, both directions with the latency, gap and header of `spec`.
///
/// # Panics
/// When the latency is zero or a buffer holds nothing.
pub fn link(world: &mut World<Symbol>, a: Terminal, b: Terminal, spec: LinkSpec) -> (LinkEnd, LinkEnd) {
    assert!(!spec.latency.is_zero(), "a link takes time");
    assert!(a.buffer > 0 && b.buffer > 0, "a link without a buffer never carries a packet");
    let (a_to_b, b_from_a) = world.wire(a.node, b.node, spec.latency);
    let (b_to_a, a_from_b) = world.wire(b.node, a.node, spec.latency);
    let end = |near: Terminal, far, outgoing, incoming| LinkEnd {
        sim: world.sim(near.node),
        spec,
        far,
        buffer: near.buffer,
        outgoing,
        incoming,
    };
    (end(a, b, a_to_b, a_from_b), end(b, a, b_to_a, b_from_a))
}
