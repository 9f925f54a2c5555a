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
//! A queue has no overtaking, so a packet that has its credit has its time, too: the switch gives it to the
//! wire at once, with the instants at which it will begin and end. A packet costs one event, and a credit one
//! where a packet waits for it: otherwise credits are collected only when those at hand have been used.

use crate::faults::{Faults, Injector, Place};
use crate::link::Line;
use crate::meter::SwitchStatistics;
use crate::transit::{Span, Trace, Transit};
use crate::{LinkEnd, PortStatistics, Routing, Symbol};
use nicety_kernel::{Handler, Preparation, Sim, Units, prefetch};
use nicety_types::{Account, Duration, NodeId, Occupancy, Recorder, Resource, Stage, Time};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

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
    buffer: InputBuffer,
    /// The current and the last sender.
    output: Occupancy<Trace>,
    /// Packets that have no credit yet, or wait behind one that has none.
    queue: VecDeque<Waiting>,
    /// Free slots at the far end; more may have been freed since they were last counted.
    credits: u32,
    /// The credits for them.
    freed: Units<Symbol>,
    meter: PortStatistics,
}

/// A link's end without its incoming wire, whose symbols come to [`Inside::symbol`].
struct Outgoing {
    spec: crate::LinkSpec,
    /// Bytes of header and framing of packets received by the same port.
    header_in: u64,
    line: Line,
}

/// A packet that has been routed.
struct Waiting {
    /// Accounted for until its first byte would leave a free switch.
    packet: Transit,
    /// The port it came in by.
    from: usize,
    /// Its times on leaving a free switch.
    span: Span,
}

/// The slots of a port's buffer that are in use.
struct InputBuffer {
    size: u32,
    used: u32,
    /// When the packets that have their time of sending will have left; the others are not among them. In
    /// order: they get their times in nearly that order.
    leaving: VecDeque<Time>,
}

impl InputBuffer {
    /// Takes a slot, and returns how many are in use.
    fn take(&mut self, now: Time) -> u32 {
        while self.leaving.front().is_some_and(|left| *left <= now) {
            self.leaving.pop_front();
            self.used -= 1;
        }
        self.used += 1;
        assert!(self.used <= self.size, "a packet came without a credit");
        self.used
    }

    /// A packet in it will have left at `left`.
    fn leaves(&mut self, left: Time) {
        match self.leaving.back() {
            Some(last) if *last > left => {
                let at = self.leaving.partition_point(|other| *other <= left);
                self.leaving.insert(at, left);
            }
            _ => self.leaving.push_back(left),
        }
    }
}

impl Switch {
    /// Starts a switch whose ports are these ends of links, in this order.
    ///
    /// # Panics
    /// When there are more ends than the specification has ports, or none, or they are of different nodes, or a link has
    /// more than one virtual channel.
    pub fn install(spec: &SwitchSpec, ends: Vec<LinkEnd>, routing: Box<dyn Routing>) -> Switch {
        assert!(
            ends.len() <= spec.ports as usize,
            "{} links on a switch of {} ports",
            ends.len(),
            spec.ports
        );
        let sim = ends.first().expect("a switch has a link").sim.clone();
        assert!(ends.iter().all(|end| end.sim.node() == sim.node()), "links of different nodes");
        assert!(
            ends.iter().all(|end| end.further.is_empty()),
            "the links of a switch have one virtual channel"
        );
        let ports = RefCell::new(Vec::with_capacity(ends.len()));
        let inside = Rc::new(Inside { sim, latency: spec.latency, routing, ports });
        for (number, end) in (0..).zip(ends) {
            let LinkEnd { spec, header_in, far, buffer, outgoing, incoming, .. } = end;
            let port = SwitchPort {
                end: Outgoing { spec, header_in, line: Line::new(outgoing, far.delivery) },
                buffer: InputBuffer { size: buffer, used: 0, leaving: VecDeque::new() },
                output: Occupancy::new(Stage::LINK, Stage::SWITCH_QUEUED),
                queue: VecDeque::new(),
                credits: far.buffer,
                freed: incoming.handle(inside.clone(), number),
                meter: PortStatistics::default(),
            };
            inside.ports.borrow_mut().push(port);
        }
        Switch { inside, level: 0, index: 0 }
    }

    /// The same switch, as number `index` of this level.
    pub(crate) fn placed(self, level: u32, index: u32) -> Switch {
        Switch { level, index, ..self }
    }

    /// The node it is.
    pub fn node(&self) -> NodeId {
        self.inside.sim.node()
    }

    /// Has the use of its outputs recorded, where such rows are kept.
    pub fn record(&self, recorder: &Recorder) {
        for (number, port) in (0..).zip(self.inside.ports.borrow_mut().iter_mut()) {
            port.output.record(recorder, Resource::SWITCH_PORT.numbered(number));
        }
    }

    /// The two ends of the transmit paths of its ports, in a network of so many hosts.
    pub(crate) fn directions(&self, hosts: u32) -> Vec<(Place, Place)> {
        let from = Place::of(self.node(), hosts);
        self.inside.ports.borrow().iter().map(|port| (from, Place::of(port.end.line.to(), hosts))).collect()
    }

    /// Injects faults on the transmit paths of its ports, where `faults` has any for them.
    pub(crate) fn inject(&self, faults: &Faults, hosts: u32) -> Vec<Rc<Injector>> {
        let from = Place::of(self.node(), hosts);
        let mut ports = self.inside.ports.borrow_mut();
        let inject = |port: &mut SwitchPort| {
            let to = Place::of(port.end.line.to(), hosts);
            port.end.line.inject(faults, from, to)
        };
        ports.iter_mut().filter_map(inject).collect()
    }

    /// The counts of its ports so far.
    pub fn statistics(&self) -> SwitchStatistics {
        let ports = self.inside.ports.borrow();
        let Switch { level, index, .. } = *self;
        SwitchStatistics {
            node: self.node(),
            level,
            index,
            ports: ports.iter().map(|port| port.meter).collect(),
        }
    }
}

/// Serves the ports: packets and credits, as they come.
impl Handler<Symbol> for Inside {
    fn message(&self, port: u32, symbol: Symbol) {
        let port = port as usize;
        match symbol {
            Symbol::Head { packet, tail, slowest } => self.enter(port, packet, tail, slowest),
            Symbol::Lost(_) => self.ports.borrow()[port].end.line.credit(self.sim.now()),
            Symbol::Packet(_) => unreachable!("switches are given heads"),
            Symbol::Barrier => unreachable!("a barrier symbol on a data link"),
        }
    }

    fn prepare(&self, port: u32, step: Preparation<'_, Symbol>) {
        let (from, ports) = (port as usize, self.ports.borrow());
        match step {
            Preparation::Wire => prefetch(&ports[from]),
            Preparation::Message(Symbol::Head { packet, .. }) => {
                prefetch(&ports[self.routing.port(packet, from)]);
                ports[from].end.line.prefetch(false);
            }
            Preparation::Again(Symbol::Head { packet, .. }) => {
                ports[self.routing.port(packet, from)].end.line.prefetch(false);
                ports[from].end.line.prefetch(true);
            }
            _ => (),
        }
    }

    /// Slots at the far end of a port's link are free again, and packets wait for them.
    fn units(&self, port: u32) {
        let port = port as usize;
        let ports = &mut *self.ports.borrow_mut();
        ports[port].count_credits();
        while ports[port].credits > 0 {
            let Some(waiting) = ports[port].queue.pop_front() else { return };
            forward(ports, port, waiting, self.sim.now());
        }
        if !ports[port].queue.is_empty() {
            ports[port].freed.wait();
        }
    }
}

impl Inside {
    /// A packet's head has arrived.
    fn enter(&self, from: usize, mut packet: Transit, tail: Time, slowest: Stage) {
        let now = self.sim.now();
        let to = self.routing.port(&packet, from);
        let ports = &mut *self.ports.borrow_mut();
        let input = &mut ports[from];
        let control = packet.is_control();
        let in_buffer = if control { input.buffer.used } else { input.buffer.take(now) };
        input.meter.received(packet.bytes + input.end.header_in, in_buffer);

        // A stage with a latency and no gap: every byte leaves that much later.
        let span = Span { head: now + self.latency, tail: tail + self.latency, slowest };
        packet.trace.advance(Stage::SWITCH, span.head);
        let waiting = Waiting { packet, from, span };
        if control || ports[to].has_credit() {
            forward(ports, to, waiting, now);
        } else {
            let out = &mut ports[to];
            if out.queue.is_empty() {
                out.freed.wait();
            }
            out.queue.push_back(waiting);
        }
    }
}

/// Gives a packet, which has had its credit since `granted` at the latest, its time on output `to`.
fn forward(ports: &mut [SwitchPort], to: usize, waiting: Waiting, granted: Time) {
    let Waiting { packet, from, span } = waiting;
    let control = packet.is_control();
    let out = &mut ports[to];
    let trace = out.end.line.duplicates().then(|| packet.trace.clone());
    let (left, again) = out.send(packet, span, granted, Line::send);
    if let Some((mut again, trace)) = again.zip(trace).filter(|_| control || out.has_credit()) {
        again.trace = trace;
        out.send(again, span, granted, |line, packet, span| {
            line.repeat(packet, span);
            None
        });
    }
    if !control {
        let input = &mut ports[from];
        input.buffer.leaves(left);
        input.end.line.credit(left);
    }
}

impl SwitchPort {
    /// Whether there is a credit for a packet that comes now.
    fn has_credit(&mut self) -> bool {
        if self.credits == 0 {
            self.count_credits();
        }
        self.credits > 0
    }

    /// Collects the returned credits.
    fn count_credits(&mut self) {
        self.credits += self.freed.take() as u32;
    }

    /// Gives a packet its time on the output, and then to `give`. Returns when its last byte will have left,
    /// and the result of `give`.
    fn send(
        &mut self,
        mut packet: Transit,
        Span { head, tail, slowest }: Span,
        granted: Time,
        give: impl FnOnce(&Line, Transit, Span) -> Option<Transit>,
    ) -> (Time, Option<Transit>) {
        let SwitchPort { end, output, credits, meter, .. } = self;
        if !packet.is_control() {
            *credits -= 1;
        }
        let bytes = packet.bytes + end.spec.header;
        let occupied = end.spec.gap.cover(bytes);
        let start = output.claim_after(granted, packet.message, head, occupied, &mut packet.trace);
        // Bytes that come slower than the link takes them occupy it until the last one: there is no other packet between.
        let slowest = if tail > start + occupied { slowest } else { Stage::LINK };
        output.hold(tail);
        let left = output.free();
        meter.sent(bytes, start.since(head), output.busy());

        let out = Span { head: start + end.spec.latency, tail: left + end.spec.latency, slowest };
        packet.trace.advance(Stage::LINK, out.head);
        (left, give(&end.line, packet, out))
    }
}
