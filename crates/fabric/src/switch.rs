//! A switch: virtual cut-through with a buffer at each input and a queue before each output.
//!
//! - A packet's head is routed `latency` after it has come in, and its bytes follow as they come: a free
//!   switch delays a packet by its latency and nothing else.
//! - An output sends one packet at a time, in the order in which their heads came in. Of heads that come in at the same
//!   instant, that of the link with the smaller number is first, as everywhere.
//! - The packets of an input that wait for different outputs wait in different queues (virtual output
//!   queues), so there is no head-of-line blocking between outputs. But they share the input's buffer: an
//!   input whose packets for one busy output fill it takes no other packet either (back-pressure).
//! - A packet leaves an output only with a credit for the buffer at the far end. Its own slot is free when
//!   its last byte has left, and its credit takes the latency of the incoming link.
//!
//! - A link may have virtual channels: each has its own buffer at the input, and its own queue and credits at the output,
//!   and the routing chooses among them. Channels share the serialiser, in the order in which packets have heads and credits.
//!
//! A queue has no overtaking, so a packet that has its credit has its time, too: the switch gives it to the
//! wire at once, with the instants at which it will begin and end. A packet costs one event, and a credit one
//! where a packet waits for it: otherwise credits are collected only when those at hand have been used.

use crate::faults::{Faults, Injector, Place};
use crate::lane::{Lane, Waiting};
use crate::link::{Held, Line, Sent, Use};
use crate::meter::SwitchStatistics;
use crate::protocol::Framing;
use crate::transit::{Span, Trace, Transit};
use crate::{Channel, LinkEnd, PortStatistics, Route, Routing, Symbol};
use nicety_kernel::{Handler, Preparation, Sim, WireRx, WireTx, prefetch};
use nicety_types::{Account, Duration, Gap, NodeId, Occupancy, Recorder, Resource, Stage, Time};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The specification of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchSpec {
    /// From the arrival of a packet's head at an input to its routed head at an output.
    pub latency: Duration,
    /// How many ports there are.
    pub ports: u32,
    /// Packets that the input buffer of each port holds.
    pub buffer: u32,
}

/// A switch of the network; it works by itself, and this handle reads its state.
pub struct Switch {
    inside: Rc<Inside>,
    level: u32,
    index: u32,
    /// The names of a router's ports; a switch has numbers.
    names: Arc<[&'static str]>,
}

struct Inside {
    sim: Sim,
    latency: Duration,
    routing: Box<dyn Routing>,
    ports: RefCell<Vec<SwitchPort>>,
}

/// A port of the switch: an input and an output.
struct SwitchPort {
    end: Outgoing,
    /// The current and the last sender.
    output: Occupancy<Trace>,
    /// The first virtual channel.
    first: Lane,
    /// The other virtual channels, and the wires that take the credits for slots of their buffers; those of the first are between
    /// its packets.
    further: Box<[(Lane, WireTx<Symbol>)]>,
    meter: PortStatistics,
}

/// A link's end without its incoming wires, whose symbols come to [`Inside`].
struct Outgoing {
    latency: Duration,
    gap: Gap,
    /// Of packets sent and received.
    framing: [Framing; 2],
    line: Line,
}

/// What is prefetched for returning a credit, each by a pointer in the one before.
#[derive(Clone, Copy)]
enum Step {
    Wire,
    Receiver,
    Units,
}

/// How the switch calls an incoming wire: the port, and the virtual channel whose credits come by it.
fn number(port: u32, channel: u8) -> u32 {
    u32::from(channel) << 24 | port
}

/// Port and virtual channel of an incoming wire.
fn port_of(number: u32) -> (usize, u8) {
    ((number & 0x00ff_ffff) as usize, (number >> 24) as u8)
}

impl Switch {
    /// Starts a switch whose ports are these ends of links, in this order.
    ///
    /// # Panics
    /// When there are more ends than the specification has ports, or none, or they are of different nodes.
    pub fn install(spec: &SwitchSpec, ends: Vec<LinkEnd>, routing: Box<dyn Routing>) -> Switch {
        assert!(
            ends.len() <= spec.ports as usize,
            "{} links on a switch of {} ports",
            ends.len(),
            spec.ports
        );
        let sim = ends.first().expect("a switch has a link").sim.clone();
        assert!(ends.iter().all(|end| end.sim.node() == sim.node()), "links of different nodes");
        let ports = RefCell::new(Vec::with_capacity(ends.len()));
        let inside = Rc::new(Inside { sim, latency: spec.latency, routing, ports });
        for (port, end) in (0..).zip(ends) {
            let LinkEnd { spec, framing_in, far, buffer, outgoing, incoming, further, inner, .. } = end;
            let lane = |channel, incoming: WireRx<Symbol>| {
                let freed = incoming.handle(inside.clone(), number(port, channel));
                Lane::new(buffer, far.buffer, freed)
            };
            let further = (1..).zip(further).map(|(channel, (back, wire))| (lane(channel, wire), back));
            let port = SwitchPort {
                end: Outgoing {
                    latency: spec.latency,
                    gap: spec.gap,
                    framing: [Framing::of(&spec), framing_in],
                    line: Line::new(&inside.sim, outgoing, far.delivery, &spec, inner),
                },
                output: Occupancy::new(Stage::LINK, Stage::SWITCH_QUEUED),
                first: lane(0, incoming),
                further: further.collect(),
                meter: PortStatistics::default(),
            };
            inside.ports.borrow_mut().push(port);
        }
        Switch { inside, level: 0, index: 0, names: Arc::new([]) }
    }

    /// The same switch, as number `index` of this level.
    pub(crate) fn placed(self, level: u32, index: u32) -> Switch {
        Switch { level, index, ..self }
    }

    /// The same, as a host's router, whose ports have these names.
    pub(crate) fn named(self, index: u32, names: Arc<[&'static str]>) -> Switch {
        Switch { index, names, ..self }
    }

    /// The node it is.
    pub fn node(&self) -> NodeId {
        self.inside.sim.node()
    }

    /// Has the use of its outputs recorded, where such rows are kept.
    pub fn record(&self, recorder: &Recorder) {
        let resource = if self.names.is_empty() { Resource::SWITCH_PORT } else { Resource::ROUTER_PORT };
        for (number, port) in (0..).zip(self.inside.ports.borrow_mut().iter_mut()) {
            port.output.record(recorder, resource.numbered(number));
        }
    }

    /// The two ends of the transmit paths of its ports, in a network of so many hosts.
    pub(crate) fn directions(&self, hosts: u32) -> Vec<(Place, Place)> {
        self.inside
            .ports
            .borrow()
            .iter()
            .filter_map(|port| port.end.line.direction(self.node(), hosts))
            .collect()
    }

    /// Injects faults on the transmit paths of its ports, where `faults` has any for them.
    pub(crate) fn inject(&self, faults: &Faults, hosts: u32) -> Vec<Rc<Injector>> {
        let mut ports = self.inside.ports.borrow_mut();
        ports.iter_mut().filter_map(|port| port.end.line.inject(faults, self.node(), hosts)).collect()
    }

    /// Whether its buffers are empty, and the credits that it spends are back.
    pub(crate) fn is_idle(&self) -> bool {
        let (now, mut ports) = (self.inside.sim.now(), self.inside.ports.borrow_mut());
        ports
            .iter_mut()
            .all(|port| port.first.is_idle(now) && port.further.iter_mut().all(|(lane, _)| lane.is_idle(now)))
    }

    /// The counts of its ports so far.
    pub fn statistics(&self) -> SwitchStatistics {
        let ports = self.inside.ports.borrow();
        let Switch { level, index, ref names, .. } = *self;
        SwitchStatistics {
            node: self.node(),
            level,
            index,
            names: names.clone(),
            ports: ports.iter().map(|port| port.meter).collect(),
        }
    }
}

/// Serves the ports: packets and credits, as they come.
impl Handler<Symbol> for Inside {
    fn message(&self, wire: u32, symbol: Symbol) {
        let (port, _) = port_of(wire);
        match symbol {
            Symbol::Head { packet, tail, slowest } => self.enter(port, packet, tail, slowest),
            Symbol::Lost(channel) => self.ports.borrow()[port].credit(channel, self.sim.now()),
            Symbol::Packet(_) => unreachable!("switches are given heads"),
            Symbol::Barrier => unreachable!("a barrier symbol on a data link"),
        }
    }

    fn prepare(&self, wire: u32, step: Preparation<'_, Symbol>) {
        let ((from, _), ports) = (port_of(wire), self.ports.borrow());
        match step {
            Preparation::Wire => prefetch(&ports[from]),
            Preparation::Message(Symbol::Head { packet, .. }) => {
                prefetch(&ports[self.routing.route(packet, from).port]);
                ports[from].prepare_credit(packet.channel, Step::Wire);
            }
            Preparation::Again(Symbol::Head { packet, .. }) => {
                let Route { port, channel, .. } = self.routing.route(packet, from);
                if let Some((lane, _)) =
                    channel.checked_sub(1).map(|further| &ports[port].further[usize::from(further)])
                {
                    prefetch(lane);
                }
                ports[port].end.line.prefetch(false);
                ports[from].prepare_credit(packet.channel, Step::Receiver);
            }
            _ => (),
        }
    }

    /// Slots at the far end of a port's link are free again, and packets wait for them.
    fn units(&self, wire: u32) {
        let (port, channel) = port_of(wire);
        let ports = &mut *self.ports.borrow_mut();
        ports[port].lane(channel).count_credits();
        while let Some(waiting) = ports[port].lane(channel).next() {
            forward(ports, port, waiting, self.sim.now());
        }
    }
}

impl Inside {
    /// A packet's head has arrived.
    fn enter(&self, from: usize, mut packet: Transit, tail: Time, slowest: Stage) {
        let now = self.sim.now();
        let Route { port: to, channel, mark } = self.routing.route(&packet, from);
        let ports = &mut *self.ports.borrow_mut();
        ports[to].end.line.prefetch(true);
        ports[from].prepare_credit(packet.channel, Step::Units);
        let input = &mut ports[from];
        let (came, in_buffer) = match packet.channel {
            Channel::Control => (0, input.first.buffer.used()),
            Channel::Data(came) => (came, input.lane(came).buffer.take(now)),
        };
        input.meter.received(input.end.framing[1].bytes(packet.bytes), in_buffer);

        // A stage with a latency and no gap: every byte leaves that much later.
        let span = Span { head: now + self.latency, tail: tail + self.latency, slowest };
        packet.trace.advance(Stage::SWITCH, span.head);
        packet.mark = mark;
        let control = packet.is_control();
        if !control {
            packet.channel = Channel::Data(channel);
        }
        let waiting = Waiting { packet, from: (from as u32, came), span };
        if control || ports[to].lane(channel).has_credit() {
            forward(ports, to, waiting, now);
        } else {
            ports[to].lane(channel).wait(waiting);
        }
    }
}

/// Gives a packet, which has had its credit since `granted` at the latest, its time on output `to`.
fn forward(ports: &mut [SwitchPort], to: usize, waiting: Waiting, granted: Time) {
    let Waiting { packet, from: (from, came), span } = waiting;
    let channel = packet.channel;
    let out = &mut ports[to];
    let trace = out.end.line.duplicates().then(|| packet.trace.clone());
    let (left, again) = out.send(packet, span, granted, Line::send);
    if let Some((mut again, trace)) = again.zip(trace).filter(|_| out.has_place(channel)) {
        again.trace = trace;
        out.send(again, span, granted, |line, packet, span, _| line.repeat(packet, span));
    }
    if channel != Channel::Control {
        let input = &mut ports[from as usize];
        input.lane(came).buffer.leaves(left);
        input.credit(came, left);
    }
}

impl SwitchPort {
    /// A virtual channel.
    fn lane(&mut self, channel: u8) -> &mut Lane {
        match channel.checked_sub(1) {
            None => &mut self.first,
            Some(further) => &mut self.further[usize::from(further)].0,
        }
    }

    /// Returns the credit for a slot of a virtual channel's buffer, free from `when` on.
    fn credit(&self, channel: u8, when: Time) {
        match channel.checked_sub(1) {
            None => self.end.line.credit(when),
            Some(further) => {
                let wire = &self.further[usize::from(further)].1;
                wire.send_unit(when + wire.min_latency());
            }
        }
    }

    /// Prefetches what it takes to free a slot of this channel's buffer.
    fn prepare_credit(&self, channel: Channel, step: Step) {
        let further = if let Channel::Data(further @ 1..) = channel { usize::from(further) } else { 0 };
        let lane = further.checked_sub(1).map(|further| &self.further[further]);
        match (step, lane) {
            (Step::Wire, None) => self.end.line.prefetch(false),
            (Step::Wire, Some(further)) => prefetch(further),
            (Step::Receiver, None) => {
                self.first.buffer.prepare();
                self.end.line.prefetch(true);
            }
            (Step::Receiver, Some((lane, wire))) => {
                lane.buffer.prepare();
                wire.prefetch(false);
            }
            (Step::Units, None) => self.end.line.prefetch_credit(),
            (Step::Units, Some((_, wire))) => wire.prefetch(true),
        }
    }

    /// Whether there is a slot at the far end for a packet of this channel that comes now.
    fn has_place(&mut self, channel: Channel) -> bool {
        match channel {
            Channel::Control => true,
            Channel::Data(channel) => self.lane(channel).has_credit(),
        }
    }

    /// Gives a packet its time on the output, and then to `give`. Returns when its last byte will have left,
    /// and the copy of a duplicated packet.
    fn send(
        &mut self,
        mut packet: Transit,
        Span { head, tail, slowest }: Span,
        granted: Time,
        give: impl FnOnce(&Line, Transit, Span, Use) -> Sent,
    ) -> (Time, Option<Transit>) {
        if let Channel::Data(channel) = packet.channel {
            self.lane(channel).spend();
        }
        let SwitchPort { end, output, meter, .. } = self;
        let bytes = end.framing[0].bytes(packet.bytes);
        let occupied = end.gap.cover(bytes);
        let start = output.claim_after(granted, packet.message, head, occupied, &mut packet.trace);
        // Bytes that come slower than the link takes them occupy it until the last one: there is no other packet between.
        let slowest = if tail > start + occupied { slowest } else { Stage::LINK };
        output.hold(tail);
        let left = output.free();
        meter.sent(bytes, start.since(head), output.busy());

        let out = Span { head: start + end.latency, tail: left + end.latency, slowest };
        packet.trace.advance(Stage::LINK, out.head);
        let sent = give(&end.line, packet, out, Use { bytes, occupied });
        if let Some(Held { begin, until, resent }) = sent.held {
            output.resend(Stage::LINK_RESENT, begin, until);
            meter.resent(resent, output.busy());
        }
        (left, sent.again)
    }
}
