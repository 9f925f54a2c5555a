//! Links: two wires between two nodes, and the state of each end.

use crate::capture::{Disposition, Tap};
use crate::ethernet::{Pause, Plan};
use crate::faults::{Cause, Faults, Injector, Place, Verdict};
use crate::protocol::{Course, Framing, Resending};
use crate::transit::{Span, Transit};
use crate::{Channel, LinkSpec, Symbol};
use nicety_kernel::{Sim, WireRx, WireTx, World};
use nicety_types::{Account, Duration, NodeId, Stage, Time};
use std::cell::Cell;
use std::rc::Rc;

/// The instant at which a node receives a packet from its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// When the packet's last byte has arrived. A card processes packets in its packet buffer.
    Whole,
    /// When the packet's first byte has arrived. A switch forwards a packet while the rest of it arrives.
    Head,
}

/// The node at one end of a link, as the other end sees it.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// The node.
    pub node: NodeId,
    /// Capacity in packets of the node's buffer, for each virtual channel of this link.
    pub buffer: u32,
    /// The instant at which the node receives a packet.
    pub delivery: Delivery,
}

/// One direction of a link, as its start sees it.
pub(crate) struct Line {
    /// The wire for packets, and for credits of the first virtual channel's buffer at this end.
    wire: WireTx<Symbol>,
    /// The wires for credits of the other virtual channels.
    further: Box<[WireTx<Symbol>]>,
    delivery: Delivery,
    /// Whether the link is inside a node, where faults do not apply.
    inner: bool,
    /// The tap and the faults, if the direction has any.
    watch: Option<Box<Watch>>,
    /// The protocol, if the link resends packets.
    resending: Option<Box<Resending>>,
}

/// The tap and the faults of a line. Few lines have any.
#[derive(Default)]
struct Watch {
    faults: Option<Rc<Injector>>,
    /// Captures the packets.
    tap: Option<Rc<Tap>>,
}

impl Watch {
    /// Captures a packet that leaves at `time`.
    fn keep(&self, packet: &Transit, time: Time, disposition: Disposition) {
        if let Some(tap) = &self.tap {
            tap.keep(packet, time, disposition);
        }
    }
}

/// A packet's use of its link.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    /// Size on the wire in bytes.
    pub(crate) bytes: u64,
    /// The time for which these bytes occupy the wire, if the packet lies complete in a buffer.
    pub(crate) occupied: Duration,
}

/// The result of sending a packet.
pub(crate) struct Sent {
    /// A copy, if a fault duplicates the packet. The caller sends the copy by [`Line::repeat`].
    pub(crate) again: Option<Box<Transit>>,
    /// The additional use of the serialiser by the link's protocol.
    pub(crate) held: Option<Held>,
}

impl Sent {
    const DONE: Sent = Sent { again: None, held: None };
}

/// A packet's additional use of the serialiser.
pub(crate) struct Held {
    /// Start of the last transmission.
    pub(crate) begin: Time,
    /// Earliest start of the next packet.
    pub(crate) until: Time,
    /// Number of resends of the packet.
    pub(crate) resent: u32,
}

impl Line {
    /// Returns the direction that starts at this end, and the wires that lead to this end.
    pub(crate) fn of(end: LinkEnd) -> (Line, Incoming) {
        let LinkEnd { sim, spec, far, outgoing: wire, incoming, further, inner, .. } = end;
        let (further, credits): (Vec<_>, Vec<_>) = further.into_iter().unzip();
        let resend = spec.protocol.resend;
        let resending =
            resend.map(|resend| Box::new(Resending::new(&sim, wire.link(), resend, spec.latency)));
        let further = further.into();
        let line = Line { wire, further, delivery: far.delivery, inner, watch: None, resending };
        (line, Incoming { packets: incoming, credits })
    }

    /// The propagation delay.
    pub(crate) fn latency(&self) -> Duration {
        self.wire.min_latency()
    }

    /// The node at the far end.
    pub(crate) fn to(&self) -> NodeId {
        self.wire.to()
    }

    /// The two ends of the direction in a network of `hosts` hosts, or `None` if the link is inside a node. `from` is
    /// the start.
    pub(crate) fn direction(&self, from: NodeId, hosts: u32) -> Option<(Place, Place)> {
        (!self.inner).then(|| (Place::of(from, hosts), Place::of(self.wire.to(), hosts)))
    }

    /// Sets the faults that `faults` has for this direction.
    pub(crate) fn inject(&mut self, faults: &Faults, from: NodeId, hosts: u32) -> Option<Rc<Injector>> {
        let (from, to) = self.direction(from, hosts)?;
        let bit_errors = self.resending.as_ref().is_some_and(|resending| resending.has_bit_errors());
        let faults = Injector::new(faults, self.wire.link(), (from, to), bit_errors);
        if faults.is_some() || self.watch.is_some() {
            self.watch.get_or_insert_default().faults.clone_from(&faults);
        }
        faults
    }

    /// Captures the packets of this direction in the `left` bytes of memory. Returns `None` for a link inside a node.
    pub(crate) fn capture(&mut self, left: &Rc<Cell<u64>>, from: NodeId, hosts: u32) -> Option<Rc<Tap>> {
        let tap = Rc::new(Tap::new(self.direction(from, hosts)?, left.clone()));
        self.watch.get_or_insert_default().tap = Some(tap.clone());
        Some(tap)
    }

    /// Whether packets are neither watched nor resent. The disposition of each packet is then known in advance.
    pub(crate) fn is_plain(&self) -> bool {
        self.watch.is_none() && self.resending.is_none()
    }

    /// Whether a packet may be duplicated and its copy delivered.
    pub(crate) fn duplicates(&self) -> bool {
        self.resending.is_none() && self.faults().is_some_and(Injector::duplicates)
    }

    /// Puts a packet on the wire. It arrives at the times of `span`.
    pub(crate) fn send(&self, mut packet: Transit, mut span: Span, wire: Use) -> Sent {
        if let Some(resending) = &self.resending {
            return self.send_checked(resending, packet, span, wire);
        }
        let Some(watch) = &self.watch else {
            self.give(packet, span);
            return Sent::DONE;
        };
        let start = self.start(span);
        let Some(faults) = &watch.faults else {
            watch.keep(&packet, start, Disposition::default());
            self.give(packet, span);
            return Sent::DONE;
        };
        let intact = faults.duplicates().then(|| Box::new(packet.share()));
        let Verdict { lost, damaged, delay, again } = faults.judge(packet.inside(), start);
        watch.keep(
            &packet,
            start,
            Disposition { lost: lost.is_some(), damaged, late: delay, ..Disposition::default() },
        );
        if lost.is_some() {
            self.lose(&packet, span.tail);
            return Sent::DONE;
        }
        (span.head, span.tail) = (span.head + delay, span.tail + delay);
        packet.trace.advance(Stage::LINK, span.head);
        self.give(packet, span);
        Sent { again: intact.filter(|_| again), held: None }
    }

    /// Like [`Line::send`], on a link that resends damaged or lost packets.
    #[cold]
    fn send_checked(&self, resending: &Resending, mut packet: Transit, mut span: Span, wire: Use) -> Sent {
        let latency = self.wire.min_latency();
        let first = [span.head, span.tail].map(|time| Time::from_ps(time.ps() - latency.ps()));
        let course = resending.course(
            &mut packet,
            (self.faults(), self.watch.as_ref().and_then(|watch| watch.tap.as_deref())),
            wire.bytes,
            (first[0], first[1]),
            wire.occupied,
        );
        let Course { begin, end, free, resent, late } = course;
        let held = (free > first[1]).then_some(Held { begin, until: free, resent });
        if resent > 0 {
            packet.trace.advance(Stage::LINK_RESENT, begin + latency);
            span = Span { head: begin + latency, tail: end + latency, slowest: Stage::LINK };
        }
        match late {
            None => self.lose(&packet, span.tail),
            Some(late) => {
                (span.head, span.tail) = (span.head + late, span.tail + late);
                packet.trace.advance(Stage::LINK, span.head);
                self.give(packet, span);
            }
        }
        Sent { again: None, held }
    }

    /// Sends a pause frame, which occupies the wire for `took` from `start` on. A damaged frame counts as lost.
    pub(crate) fn pause(&self, pause: Pause, start: Time, took: Duration) {
        let verdict = self.faults().map(|faults| (faults, faults.judge_checked(start)));
        let bad = verdict.filter(|(_, verdict)| verdict.lost.is_some() || verdict.damaged);
        if let Some(tap) = self.watch.as_ref().and_then(|watch| watch.tap.as_ref()) {
            tap.keep_pause(pause, start, Disposition { lost: bad.is_some(), ..Disposition::default() });
        }
        if let Some((faults, verdict)) = bad {
            return faults.failed_transmission(verdict.lost.unwrap_or(Cause::BitErrors), false);
        }
        self.wire.send(start + took + self.wire.min_latency(), Symbol::Pause(pause));
    }

    /// Reports a lost packet to the far end. The packet's last byte would have arrived at `tail`.
    fn lose(&self, packet: &Transit, tail: Time) {
        if let Channel::Data(channel) = packet.channel {
            self.wire.send(tail, Symbol::Lost(channel));
        }
    }

    /// Puts the copy of a packet on the wire.
    pub(crate) fn repeat(&self, packet: Transit, span: Span) -> Sent {
        if let Some(watch) = &self.watch {
            if let Some(faults) = &watch.faults {
                faults.duplicated();
            }
            watch.keep(&packet, self.start(span), Disposition { again: true, ..Disposition::default() });
        }
        self.give(packet, span);
        Sent::DONE
    }

    fn faults(&self) -> Option<&Injector> {
        self.watch.as_ref()?.faults.as_deref()
    }

    /// Returns the time at which the first byte leaves, for a packet that arrives at the times of `span`.
    fn start(&self, span: Span) -> Time {
        Time::from_ps(span.head.ps() - self.wire.min_latency().ps())
    }

    fn give(&self, packet: Transit, Span { head, tail, slowest }: Span) {
        match self.delivery {
            Delivery::Whole => self.wire.send(tail, Symbol::Packet(packet.end(slowest, tail))),
            Delivery::Head => self.wire.send(head, Symbol::Head { packet, tail, slowest }),
        }
    }

    /// Returns the credit for a slot of a virtual channel's buffer at this end. The slot is free from `when` on.
    pub(crate) fn credit(&self, channel: u8, when: Time) {
        let wire = self.credits(channel);
        wire.send_unit(when + wire.min_latency());
    }

    /// The wire for the credits of a virtual channel.
    pub(crate) fn credits(&self, channel: u8) -> &WireTx<Symbol> {
        channel.checked_sub(1).map_or(&self.wire, |further| &self.further[usize::from(further)])
    }
}

/// The wires that lead to one end of a link.
pub(crate) struct Incoming {
    /// The wire for packets, and for the credits of the first virtual channel.
    pub(crate) packets: WireRx<Symbol>,
    /// The wires for the credits of the other virtual channels.
    pub(crate) credits: Vec<WireRx<Symbol>>,
}

/// A node's end of a link, from which a port of a card or switch is made.
pub struct LinkEnd {
    pub(crate) sim: Sim,
    /// The specification of the transmit path.
    pub(crate) spec: LinkSpec,
    /// The framing of received packets.
    pub(crate) framing_in: Framing,
    /// The node at the far end.
    pub(crate) far: Terminal,
    /// Capacity in packets of this end's buffer for each virtual channel.
    pub(crate) buffer: u32,
    pub(crate) outgoing: WireTx<Symbol>,
    pub(crate) incoming: WireRx<Symbol>,
    /// Wires for the credits of each virtual channel except the first. The wire for packets carries the first channel's
    /// credits.
    pub(crate) further: Vec<(WireTx<Symbol>, WireRx<Symbol>)>,
    /// Whether the link is inside a node, where faults do not apply.
    pub(crate) inner: bool,
    /// The plan of a network without credits.
    pub(crate) plan: Option<Plan>,
}

/// Joins two nodes by a link with the latency, gap and header of `spec` in both directions.
///
/// # Panics
/// When the latency is zero, a buffer has no slot or there is no virtual channel.
pub fn link(world: &mut World<Symbol>, a: Terminal, b: Terminal, spec: LinkSpec) -> (LinkEnd, LinkEnd) {
    link_between(world, (a, spec), (b, spec))
}

/// Like [`link`], in a network with this flow control.
pub(crate) fn planned_link(
    world: &mut World<Symbol>,
    (a, b): (Terminal, Terminal),
    spec: LinkSpec,
    plan: Option<Plan>,
) -> (LinkEnd, LinkEnd) {
    let (a, b) = link(world, a, b, spec);
    (LinkEnd { plan, ..a }, LinkEnd { plan, ..b })
}

/// Joins two different nodes. Each direction has the latency, gap and header of its sender, and the buffer of its
/// receiver.
///
/// # Panics
/// As for [`link`], and when the ends have different numbers of virtual channels.
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
    let end = |near: Terminal, spec, far, framing_in, (outgoing, incoming), further| LinkEnd {
        sim: world.sim(near.node),
        spec,
        framing_in,
        far,
        buffer: near.buffer,
        outgoing,
        incoming,
        further,
        inner: false,
        plan: None,
    };
    let near = end(a, of_a, b, Framing::of(&of_b), (a_to_b, a_from_b), further_a);
    (near, end(b, of_b, a, Framing::of(&of_a), (b_to_a, b_from_a), further_b))
}

/// Joins a node's card to the node's router. Both ends of the link are at this node.
///
/// # Panics
/// Like [`link`].
pub(crate) fn inner_link(
    world: &mut World<Symbol>,
    card: Terminal,
    router: Terminal,
    spec: LinkSpec,
) -> (LinkEnd, LinkEnd) {
    let (card, router) = link(world, card, router, spec);
    (LinkEnd { inner: true, ..card }, LinkEnd { inner: true, ..router })
}

/// Joins a port to itself by a cable.
///
/// # Panics
/// Like [`link`].
pub(crate) fn loopback(world: &mut World<Symbol>, at: Terminal, spec: LinkSpec) -> LinkEnd {
    assert!(!spec.latency.is_zero(), "a link takes time");
    assert!(at.buffer > 0, "a link without a buffer never carries a packet");
    let (outgoing, incoming) = world.wire(at.node, at.node, spec.latency);
    let further = (1..spec.channels).map(|_| world.wire(at.node, at.node, spec.latency)).collect();
    LinkEnd {
        sim: world.sim(at.node),
        spec,
        framing_in: Framing::of(&spec),
        far: at,
        buffer: at.buffer,
        outgoing,
        incoming,
        further,
        inner: false,
        plan: None,
    }
}

/// Adds `count` nodes to the world, and spreads them evenly over the shards of these hosts, in the order of the hosts.
pub(crate) fn beside(world: &mut World<Symbol>, hosts: &[(NodeId, LinkSpec)], count: usize) -> Vec<NodeId> {
    (0..count).map(|number| world.add_node_beside(hosts[number * hosts.len() / count].0)).collect()
}

/// Returns a card as the terminal of its link.
pub(crate) fn card((node, link): &(NodeId, LinkSpec)) -> Terminal {
    Terminal { node: *node, buffer: link.buffer, delivery: Delivery::Whole }
}
