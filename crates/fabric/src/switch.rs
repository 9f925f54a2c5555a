//! A switch: virtual cut-through with a buffer at each input and a queue before each output.
//!
//! - A packet's head is routed `latency` after its arrival, and its other bytes follow as they arrive. So an idle
//!   switch delays a packet by its latency and no more.
//! - An output sends one packet at a time, in the order in which heads arrived. If heads arrive at the same instant,
//!   the head on the link with the smaller number is first.
//! - Packets of an input for different outputs wait in different queues (virtual output queues). So there is no
//!   head-of-line blocking between outputs. But the queues share the input's buffer. When packets for one busy output
//!   fill the buffer, the input accepts no other packet (back-pressure).
//! - A packet leaves an output only with a credit for the buffer at the far end. The packet's own slot is free when its
//!   last byte has left. The credit for this slot takes the latency of the incoming link.
//!
//! A link may have virtual channels. Each channel has its own buffer at the input, and its own queue and credits at the
//! output. The routing chooses the channel. The channels share the serialiser. It serves packets in the order in which
//! their head has arrived and their credit is granted.
//!
//! A packet never overtakes another packet in a queue, so the times of a packet with a credit are fixed. The switch
//! puts the packet on the wire at once, with the instants of its start and end. A packet costs one event. A credit
//! costs an event only if a packet waits for it. Other credits are collected when all collected credits are used up.

use crate::capture::Tap;
use crate::ethernet;
use crate::ethernet::{LEAST, Pause};
use crate::faults::{Faults, Injector, Place};
use crate::lane::{InputBuffer, Lane, Memory, Waiting};
use crate::link::{Held, Incoming, Line, Sent, Use};
use crate::meter::SwitchStatistics;
use crate::protocol::Framing;
use crate::transit::{Span, Trace, Transit};
use crate::{Channel, LinkEnd, PortStatistics, Route, Routing, SwitchSpec, Symbol};
use nicety_kernel::{Handler, Preparation, Sim, Units, WireRx, prefetch};
use nicety_types::{Account, Duration, Gap, NodeId, Occupancy, Recorder, Resource, Stage, Time};
use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;

/// A switch of the network. The switch works by itself, and this handle reads its state.
pub struct Switch {
    inside: Rc<dyn SwitchModel>,
    level: u32,
    index: u32,
    /// The names of a router's ports. A switch has port numbers instead.
    names: Arc<[&'static str]>,
}

/// The implementation of a switch, with or without credits.
pub(crate) trait SwitchModel {
    /// The handle of the switch's node.
    fn sim(&self) -> &Sim;

    /// The outputs of the switch, by port.
    fn outputs(&self) -> RefMut<'_, [Output]>;

    /// Whether the switch holds no packets, and its spent credits are back.
    fn is_idle(&self) -> bool;

    /// The counters of the switch's ports so far.
    fn statistics(&self) -> Vec<PortStatistics>;

    /// Returns the switch as a switch without credits, if it is one.
    fn ethernet(&self) -> Option<&ethernet::Inside> {
        None
    }
}

struct Inside {
    sim: Sim,
    latency: Duration,
    routing: Box<dyn Routing>,
    ports: RefCell<Ports>,
}

/// The ports of a switch. Each port is an input and an output. Data for inputs, data for outputs and data for both are
/// in separate arrays, so that a packet needs little memory.
struct Ports {
    /// The outputs, by port.
    outputs: Vec<Output>,
    /// The virtual channels of outputs, by port and channel; `None` for a channel that the port's link does not have.
    lanes: Vec<Option<Lane>>,
    /// The buffers of inputs, by port and channel.
    buffers: Vec<InputBuffer>,
    /// Number of channels per port in `lanes` and in `buffers`.
    channels: usize,
    /// The packets in the queues of lanes.
    memory: Memory,
}

/// A port's output, without its virtual channels. It fills whole cache lines.
#[repr(align(64))]
pub(crate) struct Output {
    pub(crate) line: Line,
    pub(crate) gap: Gap,
    /// The framing of sent packets and the framing of received packets.
    pub(crate) framing: [Framing; 2],
    /// The occupancy of the link, and its last message.
    pub(crate) occupancy: Occupancy<Trace>,
    sent_packets: u64,
    sent_bytes: u64,
    queued: Duration,
    resent_packets: u64,
}

/// Returns the switch's number for an incoming wire: its port, and the virtual channel of its credits.
fn number(port: u32, channel: u8) -> u32 {
    u32::from(channel) << 24 | port
}

/// Returns the port of an incoming wire, and the virtual channel of its credits.
fn port_of(number: u32) -> (usize, u8) {
    ((number & 0x00ff_ffff) as usize, (number >> 24) as u8)
}

impl Switch {
    /// Starts a switch with these link ends as ports, in this order.
    ///
    /// # Panics
    /// When there are no ends, more ends than [`SwitchSpec::ports`], or ends of different nodes.
    pub fn install(spec: &SwitchSpec, ends: Vec<LinkEnd>, routing: Box<dyn Routing>) -> Switch {
        assert!(
            ends.len() <= spec.ports as usize,
            "{} links on a switch of {} ports",
            ends.len(),
            spec.ports
        );
        let sim = ends.first().expect("a switch has a link").sim.clone();
        assert!(ends.iter().all(|end| end.sim.node() == sim.node()), "links of different nodes");
        if let Some(plan) = ends[0].plan {
            let inside = ethernet::Inside::install(sim, spec.latency, ends, routing, plan);
            return Switch::of(inside);
        }
        let channels = ends.iter().map(|end| usize::from(end.spec.channels)).max().unwrap_or(0);
        let ports = RefCell::new(Ports::with_capacity(ends.len(), channels));
        let inside = Rc::new(Inside { sim, latency: spec.latency, routing, ports });
        for (port, end) in (0..).zip(ends) {
            let handle = |channel, wire: WireRx<Symbol>| wire.handle(inside.clone(), number(port, channel));
            inside.ports.borrow_mut().add(end, handle);
        }
        Switch::of(inside)
    }

    fn of(inside: Rc<dyn SwitchModel>) -> Switch {
        Switch { inside, level: 0, index: 0, names: Arc::new([]) }
    }

    /// Returns the same switch as number `index` of this level.
    pub(crate) fn placed(self, level: u32, index: u32) -> Switch {
        Switch { level, index, ..self }
    }

    /// Returns the same switch as a host's router with these port names.
    pub(crate) fn named(self, index: u32, names: Arc<[&'static str]>) -> Switch {
        Switch { index, names, ..self }
    }

    /// The switch's node.
    pub fn node(&self) -> NodeId {
        self.inside.sim().node()
    }

    /// Records the use of the switch's outputs, if the recorder keeps such rows.
    pub fn record(&self, recorder: &Recorder) {
        let resource = if self.names.is_empty() { Resource::SWITCH_PORT } else { Resource::ROUTER_PORT };
        for (number, output) in (0..).zip(self.inside.outputs().iter_mut()) {
            output.occupancy.record(recorder, resource.numbered(number));
        }
    }

    /// The two ends of the transmit path of each port, in a network of `hosts` hosts.
    pub(crate) fn directions(&self, hosts: u32) -> Vec<(Place, Place)> {
        let outputs = self.inside.outputs();
        outputs.iter().filter_map(|output| output.line.direction(self.node(), hosts)).collect()
    }

    /// Sets the faults that `faults` has for the transmit paths of the switch's ports.
    pub(crate) fn inject(&self, faults: &Faults, hosts: u32) -> Vec<Rc<Injector>> {
        let mut outputs = self.inside.outputs();
        outputs.iter_mut().filter_map(|output| output.line.inject(faults, self.node(), hosts)).collect()
    }

    /// Captures the packets that the switch sends to nodes for which `keeps` returns true, in the `left` bytes of
    /// memory. Returns each tap with its node.
    pub(crate) fn capture(
        &self,
        left: &Rc<Cell<u64>>,
        hosts: u32,
        keeps: impl Fn(NodeId) -> bool,
    ) -> Vec<(NodeId, Rc<Tap>)> {
        let mut outputs = self.inside.outputs();
        let kept = outputs.iter_mut().filter(|output| keeps(output.line.to()));
        let tap =
            |output: &mut Output| Some((output.line.to(), output.line.capture(left, self.node(), hosts)?));
        kept.filter_map(tap).collect()
    }

    /// Whether the switch's buffers are empty, and its spent credits are back.
    pub(crate) fn is_idle(&self) -> bool {
        self.inside.is_idle()
    }

    /// Returns the switch as a switch without credits, if it is one.
    pub(crate) fn ethernet(&self) -> Option<&ethernet::Inside> {
        self.inside.ethernet()
    }

    /// The counters of the switch's ports so far.
    pub fn statistics(&self) -> SwitchStatistics {
        let Switch { level, index, ref names, .. } = *self;
        let ports = self.inside.statistics();
        SwitchStatistics { node: self.node(), level, index, names: names.clone(), ports }
    }
}

impl SwitchModel for Inside {
    fn sim(&self) -> &Sim {
        &self.sim
    }

    fn outputs(&self) -> RefMut<'_, [Output]> {
        RefMut::map(self.ports.borrow_mut(), |ports| ports.outputs.as_mut_slice())
    }

    fn is_idle(&self) -> bool {
        let (now, mut ports) = (self.sim.now(), self.ports.borrow_mut());
        ports.buffers.iter_mut().all(|buffer| buffer.is_empty(now))
            && ports.lanes.iter().flatten().all(Lane::is_idle)
    }

    fn statistics(&self) -> Vec<PortStatistics> {
        self.ports.borrow().statistics()
    }
}

/// Handles packets and credits as they arrive.
impl Handler<Symbol> for Inside {
    fn message(&self, wire: u32, symbol: Symbol) {
        let (port, _) = port_of(wire);
        match symbol {
            Symbol::Head { packet, tail, slowest } => self.enter(port, packet, tail, slowest),
            Symbol::Lost(channel) => {
                self.ports.borrow().outputs[port].line.credit(channel, self.sim.now());
            }
            Symbol::Pause(_) => unreachable!("a pause in a network with credits"),
            Symbol::Packet(_) => unreachable!("switches are given heads"),
            Symbol::Barrier => unreachable!("a barrier symbol on a data link"),
        }
    }

    fn prepare(&self, wire: u32, step: Preparation<'_, Symbol>) {
        let ((from, _), ports) = (port_of(wire), self.ports.borrow());
        let Ports { outputs, lanes, buffers, .. } = &*ports;
        match step {
            Preparation::Wire => {
                prefetch(&*self.routing);
                prefetch(&outputs[from].line);
                prefetch(&outputs[from].framing);
            }
            Preparation::Message(Symbol::Head { packet, .. }) => {
                let Route { port: to, channel, .. } = self.routing.route(packet, from);
                prefetch(&outputs[to]);
                prefetch(&lanes[ports.row(to, channel)]);
                if let Channel::Data(came) = packet.channel {
                    prefetch(&buffers[ports.row(from, came)]);
                    prefetch(outputs[from].line.credits(came));
                }
            }
            Preparation::Again(Symbol::Head { packet, .. }) => {
                let Route { port: to, channel, .. } = self.routing.route(packet, from);
                if let Some(lane) = &lanes[ports.row(to, channel)] {
                    lane.prepare();
                }
                if let Channel::Data(came) = packet.channel {
                    buffers[ports.row(from, came)].prepare();
                    outputs[from].line.credits(came).prefetch();
                }
            }
            _ => (),
        }
    }

    /// Slots at the far end of a port's link are free again, and packets wait for these slots.
    fn units(&self, wire: u32) {
        let (port, channel) = port_of(wire);
        let ports = &mut *self.ports.borrow_mut();
        ports.lane(port, channel).0.count_credits();
        while let Some(waiting) = ports.next(port, channel) {
            ports.forward(port, waiting, self.sim.now());
        }
    }
}

impl Inside {
    /// Handles the arrival of a packet's head.
    fn enter(&self, from: usize, mut packet: Transit, tail: Time, slowest: Stage) {
        let now = self.sim.now();
        let Route { port: to, channel, mark } = self.routing.route(&packet, from);
        let ports = &mut *self.ports.borrow_mut();
        let input = &ports.outputs[from];
        let bytes = input.framing[1].bytes(packet.bytes);
        let came = match packet.channel {
            Channel::Control => {
                let first = ports.row(from, 0);
                ports.buffers[first].pass(bytes);
                0
            }
            Channel::Data(came) => {
                input.line.credits(came).prefetch_units();
                let row = ports.row(from, came);
                ports.buffers[row].take(bytes, now);
                packet.channel = Channel::Data(channel);
                came
            }
        };

        // The switch is a stage with a latency and no gap: every byte leaves `latency` after its arrival.
        let span = Span { head: now + self.latency, tail: tail + self.latency, slowest };
        packet.trace.advance(Stage::SWITCH, span.head);
        packet.mark = mark;
        let waiting = Waiting { packet, from: (from as u32, came), span };
        if ports.has_place(to, waiting.packet.channel) {
            ports.forward(to, waiting, now);
        } else {
            let (lane, memory) = ports.lane(to, channel);
            lane.wait(waiting, memory);
        }
    }
}

impl Ports {
    fn with_capacity(ports: usize, channels: usize) -> Ports {
        Ports {
            outputs: Vec::with_capacity(ports),
            lanes: Vec::with_capacity(ports * channels),
            buffers: Vec::with_capacity(ports * channels),
            channels,
            memory: Memory::new(),
        }
    }

    /// Adds a port at this end of a link. `handle` sets the handler of the incoming wire of a virtual channel.
    fn add(&mut self, end: LinkEnd, handle: impl Fn(u8, WireRx<Symbol>) -> Units<Symbol>) {
        let (size, slots) = (end.buffer, end.far.buffer);
        let (output, incoming) = Output::with(end);
        let wires = [incoming.packets].into_iter().chain(incoming.credits);
        let lanes = (0..).zip(wires).map(|(channel, wire)| Lane::new(slots, handle(channel, wire)));
        let rows = self.lanes.len() + self.channels;
        self.lanes.extend(lanes.map(Some));
        self.lanes.resize_with(rows, || None);
        self.buffers.resize_with(rows, || InputBuffer::new(size));
        self.outputs.push(output);
    }

    /// Returns the index of a port's virtual channel in `lanes` and `buffers`.
    fn row(&self, port: usize, channel: u8) -> usize {
        port * self.channels + usize::from(channel)
    }

    /// The virtual channel of an output, and the memory of its queue.
    fn lane(&mut self, port: usize, channel: u8) -> (&mut Lane, &mut Memory) {
        let row = self.row(port, channel);
        (self.lanes[row].as_mut().expect("a channel of the link"), &mut self.memory)
    }

    /// Takes the next packet from a virtual channel's queue, if there is a credit for it.
    fn next(&mut self, port: usize, channel: u8) -> Option<Waiting> {
        let (lane, memory) = self.lane(port, channel);
        lane.next(memory)
    }

    fn statistics(&self) -> Vec<PortStatistics> {
        let of_port = |(output, buffers): (&Output, &[InputBuffer])| PortStatistics {
            received_packets: buffers.iter().map(|buffer| buffer.packets).sum(),
            received_bytes: buffers.iter().map(|buffer| buffer.bytes).sum(),
            peak_buffer: buffers.iter().map(|buffer| buffer.peak).max().unwrap_or(0),
            ..output.statistics()
        };
        self.outputs.iter().zip(self.buffers.chunks(self.channels)).map(of_port).collect()
    }

    /// Whether a packet of this channel that arrives now has a slot at the far end.
    fn has_place(&mut self, to: usize, channel: Channel) -> bool {
        match channel {
            Channel::Control => true,
            Channel::Data(channel) => self.lane(to, channel).0.has_credit(),
        }
    }

    /// Schedules a packet on output `to`. The packet's credit was granted at `granted` or before.
    fn forward(&mut self, to: usize, waiting: Waiting, granted: Time) {
        let Waiting { packet, from: (from, came), span } = waiting;
        let channel = packet.channel;
        let trace = self.outputs[to].line.duplicates().then(|| packet.trace.clone());
        let (left, again) = self.send(to, packet, span, granted, Line::send);
        if let (Some(mut again), Some(trace)) = (again, trace)
            && self.has_place(to, channel)
        {
            again.trace = trace;
            self.send(to, *again, span, granted, |line, packet, span, _| line.repeat(packet, span));
        }
        if channel != Channel::Control {
            let row = self.row(from as usize, came);
            self.buffers[row].leaves(left);
            self.outputs[from as usize].line.credit(came, left);
        }
    }

    /// Spends a packet's credit, schedules the packet on output `to` and calls `give`. Returns the time at which its
    /// last byte leaves, and the copy if the packet is duplicated.
    fn send(
        &mut self,
        to: usize,
        packet: Transit,
        span: Span,
        granted: Time,
        give: impl FnOnce(&Line, Transit, Span, Use) -> Sent,
    ) -> (Time, Option<Box<Transit>>) {
        if let Channel::Data(channel) = packet.channel {
            self.lane(to, channel).0.spend();
        }
        let output = &mut self.outputs[to];
        let bytes = output.framing[0].bytes(packet.bytes);
        output.send(packet, bytes, span, granted, give)
    }
}

impl Output {
    /// Returns the output of a port at this end of a link, and its incoming wires.
    fn with(end: LinkEnd) -> (Output, Incoming) {
        let framing = [Framing::of(&end.spec), end.framing_in];
        let gap = end.spec.gap;
        let (line, incoming) = Line::of(end);
        let output = Output {
            line,
            gap,
            framing,
            occupancy: Occupancy::new(Stage::LINK, Stage::SWITCH_QUEUED),
            sent_packets: 0,
            sent_bytes: 0,
            queued: Duration::ZERO,
            resent_packets: 0,
        };
        (output, incoming)
    }

    /// Like `Output::with`, for a link without credits. Returns the output and the wire for packets.
    pub(crate) fn of(end: LinkEnd) -> (Output, WireRx<Symbol>) {
        let (output, incoming) = Output::with(end);
        (output, incoming.packets)
    }

    /// Returns the counters of sent packets.
    pub(crate) fn statistics(&self) -> PortStatistics {
        PortStatistics {
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            resent_packets: self.resent_packets,
            busy: self.occupancy.busy(),
            queued: self.queued,
            ..PortStatistics::default()
        }
    }

    /// Sends a pause frame after the packet that is being sent.
    pub(crate) fn pause(&mut self, pause: Pause, now: Time) {
        let took = self.gap.cover(LEAST);
        let start = self.occupancy.occupy(now, took);
        self.line.pause(pause, start, took);
    }

    /// Like [`Ports::send`], for a packet of `bytes` bytes on the wire that has its credit or needs none.
    pub(crate) fn send(
        &mut self,
        mut packet: Transit,
        bytes: u64,
        Span { head, tail, slowest }: Span,
        granted: Time,
        give: impl FnOnce(&Line, Transit, Span, Use) -> Sent,
    ) -> (Time, Option<Box<Transit>>) {
        let Output { line, occupancy, .. } = self;
        let occupied = self.gap.cover(bytes);
        let start = occupancy.claim_after(granted, packet.message, head, occupied, &mut packet.trace);
        // If bytes arrive slower than the link sends them, the packet occupies the link until its last byte. No other
        // packet goes between its bytes.
        let slowest = if tail > start + occupied { slowest } else { Stage::LINK };
        occupancy.hold(tail);
        let left = occupancy.free();
        self.sent_packets += 1;
        self.sent_bytes += bytes;
        self.queued += start.since(head);

        let out = Span { head: start + line.latency(), tail: left + line.latency(), slowest };
        packet.trace.advance(Stage::LINK, out.head);
        let sent = give(line, packet, out, Use { bytes, occupied });
        if let Some(Held { begin, until, resent }) = sent.held {
            occupancy.resend(Stage::LINK_RESENT, begin, until);
            self.resent_packets += u64::from(resent);
        }
        (left, sent.again)
    }
}
