//! Links: two wires between two nodes, and each end's view of the other.

use crate::faults::{Faults, Injector, Place, Verdict};
use crate::transit::{Span, Transit};
use crate::{Channel, LinkSpec, Symbol};
use nicety_kernel::{Sim, WireRx, WireTx, World};
use nicety_types::{Account, NodeId, Stage, Time};
use std::rc::Rc;

/// When a packet is given to the node at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// When its last byte has arrived: a card works from its packet buffer.
    Whole,
    /// When its first byte has arrived: a switch forwards it while it comes.
    Head,
}

/// The node at an end of a link, seen from the other end.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// The node.
    pub node: NodeId,
    /// Packets that its buffer for each virtual channel of this link holds.
    pub buffer: u32,
    /// When it is given a packet.
    pub delivery: Delivery,
}

/// One direction of a link, seen from where it begins.
pub(crate) struct Line {
    wire: WireTx<Symbol>,
    delivery: Delivery,
    /// Whether it is inside a node, where no fault strikes.
    inner: bool,
    faults: Option<Rc<Injector>>,
}

impl Line {
    pub(crate) fn new(wire: WireTx<Symbol>, delivery: Delivery, inner: bool) -> Line {
        Line { wire, delivery, inner, faults: None }
    }

    /// Its two ends in a network of so many hosts, `from` being the near one; none where it is inside a node.
    pub(crate) fn direction(&self, from: NodeId, hosts: u32) -> Option<(Place, Place)> {
        (!self.inner).then(|| (Place::of(from, hosts), Place::of(self.wire.to(), hosts)))
    }

    /// Injects faults, where `faults` has any for it.
    pub(crate) fn inject(&mut self, faults: &Faults, from: NodeId, hosts: u32) -> Option<Rc<Injector>> {
        let (from, to) = self.direction(from, hosts)?;
        self.faults = Injector::new(faults, self.wire.link(), from, to);
        self.faults.clone()
    }

    /// Whether a packet may be duplicated.
    pub(crate) fn duplicates(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.duplicates())
    }

    /// Gives a packet to the wire, to come out as `span` says. Returns a copy where it is duplicated, to be
    /// sent by [`Line::repeat`].
    pub(crate) fn send(&self, mut packet: Transit, mut span: Span) -> Option<Transit> {
        let Some(faults) = &self.faults else {
            self.give(packet, span);
            return None;
        };
        let start = Time::from_ps(span.head.ps() - self.wire.min_latency().ps());
        let intact = faults.duplicates().then(|| packet.share());
        let Verdict { lost, delay, again } = faults.judge(packet.inside(), start);
        if lost {
            if let Channel::Data(channel) = packet.channel {
                self.wire.send(span.tail, Symbol::Lost(channel));
            }
            return None;
        }
        (span.head, span.tail) = (span.head + delay, span.tail + delay);
        packet.trace.advance(Stage::LINK, span.head);
        self.give(packet, span);
        intact.filter(|_| again)
    }

    /// Gives the copy of a packet to the wire.
    pub(crate) fn repeat(&self, packet: Transit, span: Span) {
        if let Some(faults) = &self.faults {
            faults.duplicated();
        }
        self.give(packet, span);
    }

    fn give(&self, packet: Transit, Span { head, tail, slowest }: Span) {
        match self.delivery {
            Delivery::Whole => self.wire.send(tail, Symbol::Packet(packet.end(slowest, tail))),
            Delivery::Head => self.wire.send(head, Symbol::Head { packet, tail, slowest }),
        }
    }

    /// Prefetches the state that sending needs; see [`WireTx::prefetch`].
    pub(crate) fn prefetch(&self, again: bool) {
        self.wire.prefetch(again);
    }

    /// Returns the credit for a slot of this end's buffer, free from `when` on.
    pub(crate) fn credit(&self, when: Time) {
        self.wire.send_unit(when + self.wire.min_latency());
    }
}

/// A node's end of a link, to be made into a port of a card or of a switch.
pub struct LinkEnd {
    pub(crate) sim: Sim,
    /// The transmit path.
    pub(crate) spec: LinkSpec,
    /// Bytes of header and framing of received packets.
    pub(crate) header_in: u64,
    /// The node at the far end.
    pub(crate) far: Terminal,
    /// Packets that this end's buffer for each virtual channel holds.
    pub(crate) buffer: u32,
    pub(crate) outgoing: WireTx<Symbol>,
    pub(crate) incoming: WireRx<Symbol>,
    /// For the credits of each virtual channel but the first, whose credits are between its packets.
    pub(crate) further: Vec<(WireTx<Symbol>, WireRx<Symbol>)>,
    /// Whether the link is inside a node, where no fault strikes.
    pub(crate) inner: bool,
}

/// Joins two nodes by a link, both directions with the latency, gap and header of `spec`.
///
/// # Panics
/// When the latency is zero, a buffer holds nothing or there is no virtual channel.
pub fn link(world: &mut World<Symbol>, a: Terminal, b: Terminal, spec: LinkSpec) -> (LinkEnd, LinkEnd) {
    link_between(world, (a, spec), (b, spec))
}

/// Joins two nodes that differ: each direction has the latency, gap and header of the end that sends, and the
/// buffer of the other.
///
/// # Panics
/// As [`link`], and when the ends have different numbers of virtual channels.
pub fn link_between(
    world: &mut World<Symbol>,
    (a, of_a): (Terminal, LinkSpec),
    (b, of_b): (Terminal, LinkSpec),
) -> (LinkEnd, LinkEnd) {
    assert!(!of_a.latency.is_zero() && !of_b.latency.is_zero(), "a link takes time");
    assert!(a.buffer > 0 && b.buffer > 0, "a link without a buffer never carries a packet");
    assert!(of_a.channels > 0 && of_a.channels == of_b.channels, "both ends have the same virtual channels");
    let (a_to_b, b_from_a) = world.wire(a.node, b.node, of_a.latency);
    let (b_to_a, a_from_b) = world.wire(b.node, a.node, of_b.latency);
    let (mut further_a, mut further_b) = (Vec::new(), Vec::new());
    for _ in 1..of_a.channels {
        let (a_to_b, b_from_a) = world.wire(a.node, b.node, of_a.latency);
        let (b_to_a, a_from_b) = world.wire(b.node, a.node, of_b.latency);
        further_a.push((a_to_b, a_from_b));
        further_b.push((b_to_a, b_from_a));
    }
    let end = |near: Terminal, spec, far, header_in, (outgoing, incoming), further| LinkEnd {
        sim: world.sim(near.node),
        spec,
        header_in,
        far,
        buffer: near.buffer,
        outgoing,
        incoming,
        further,
        inner: false,
    };
    let near = end(a, of_a, b, of_b.header, (a_to_b, a_from_b), further_a);
    (near, end(b, of_b, a, of_a.header, (b_to_a, b_from_a), further_b))
}

/// Joins a node's card to its router, inside the node: both ends of the link are the node's.
///
/// # Panics
/// As [`link`].
pub(crate) fn inner_link(
    world: &mut World<Symbol>,
    card: Terminal,
    router: Terminal,
    spec: LinkSpec,
) -> (LinkEnd, LinkEnd) {
    let (card, router) = link(world, card, router, spec);
    (LinkEnd { inner: true, ..card }, LinkEnd { inner: true, ..router })
}

/// A port's cable that ends in the port itself.
///
/// # Panics
/// As [`link`].
pub(crate) fn loopback(world: &mut World<Symbol>, at: Terminal, spec: LinkSpec) -> LinkEnd {
    assert!(!spec.latency.is_zero(), "a link takes time");
    assert!(at.buffer > 0, "a link without a buffer never carries a packet");
    let (outgoing, incoming) = world.wire(at.node, at.node, spec.latency);
    let further = (1..spec.channels).map(|_| world.wire(at.node, at.node, spec.latency)).collect();
    LinkEnd {
        sim: world.sim(at.node),
        spec,
        header_in: spec.header,
        far: at,
        buffer: at.buffer,
        outgoing,
        incoming,
        further,
        inner: false,
    }
}
