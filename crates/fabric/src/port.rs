//! A node's end of a link.

use crate::capture::Tap;
use crate::faults::{Faults, Injector, Place};
use crate::link::{Held, Incoming, Line, Use};
use crate::meter::{Meter, PortStatistics};
use crate::protocol::Framing;
use crate::transit::{Span, Transit};
use crate::{Channel, Delivery, LinkEnd, LinkProtocol, Parcel, Symbol, Terminal, link};
use nicety_kernel::{Arrived, Credits, Permit, Sim, WireRx, World};
use nicety_types::{Duration, Flight, Gap, NodeId, Path, Recorder, Resource, Stage, Stream, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The specification of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkSpec {
    /// Flight time; at least a picosecond, since it is the lookahead between nodes.
    pub latency: Duration,
    /// Time per byte on the wire.
    pub gap: Gap,
    /// Bytes of header and framing on the wire for each packet.
    pub header: u64,
    /// Packets that the buffer at the receiving end holds, for each virtual channel.
    pub buffer: u32,
    /// How many virtual channels there are, at least one.
    pub channels: u8,
    /// Word stuffing, checksum and resending.
    pub protocol: LinkProtocol,
}

impl LinkSpec {
    /// Time of the serialiser for a packet of so many bytes: with its header and the words stuffed between.
    pub fn serialisation(&self, payload: u64) -> Duration {
        self.gap.cover(Framing::of(self).bytes(payload))
    }
}

/// A packet's turn on a link; dropped without a launch, its credit is released.
pub struct Turn {
    flight: Flight,
    channel: Channel,
    /// None on the control channel.
    credit: Option<Permit>,
    /// When the credit was granted.
    granted: Time,
    /// How long the packet was ready and waited.
    waited: Duration,
}

impl Turn {
    /// The same turn for a packet that lies complete in a buffer, at the instant up to which `path` accounts.
    pub fn resting(self, path: Path) -> Turn {
        Turn { flight: Flight::resting(path), ..self }
    }
}

/// A node's end of a link, both directions.
///
/// A packet starts only with a credit for a slot of the buffer at the other end; the receiver returns it as a
/// symbol on its own direction of the link, which takes the link's latency and no bandwidth.
///
/// A link has virtual channels, each with a buffer and credits of its own: a packet waits for no slot of another
/// channel. They share the serialiser, which takes packets in the order in which they are launched.
pub struct Port {
    sim: Sim,
    /// The transmit path.
    spec: LinkSpec,
    /// Of packets sent and received.
    framing: [Framing; 2],
    /// Packets that the buffer at this end holds.
    buffer: u32,
    link: RefCell<Stream>,
    /// Of the first virtual channel.
    credits: Credits,
    /// The other virtual channels.
    further: Vec<Further>,
    outgoing: Line,
    incoming: WireRx<Symbol>,
    /// Packets in this end's buffers.
    in_buffer: Cell<u32>,
    meter: Meter,
    recorder: Recorder,
}

/// A virtual channel beside the first, whose credits have wires of their own.
struct Further {
    /// For slots at the far end.
    credits: Credits,
    incoming: Rc<WireRx<Symbol>>,
}

impl Further {
    /// A channel with so many slots at the far end.
    fn new(sim: &Sim, slots: u32, incoming: WireRx<Symbol>) -> Further {
        let (credits, incoming) = (Credits::new(sim, u64::from(slots)), Rc::new(incoming));
        sim.spawn(take_credits(credits.clone(), incoming.clone()));
        Further { credits, incoming }
    }
}

/// Takes the credits that come while packets wait for them.
async fn take_credits(credits: Credits, incoming: Rc<WireRx<Symbol>>) {
    loop {
        if credits.waiting() > 0 {
            incoming.wait_for_units();
        }
        match incoming.next().await {
            Arrived::Units(slots) => credits.release(slots),
            Arrived::Message(_) => unreachable!("packets of all channels come by one wire"),
        }
    }
}

impl Port {
    /// A card's port at this end of a link.
    pub fn new(end: LinkEnd) -> Port {
        let (sim, slots) = (end.sim.clone(), end.far.buffer);
        let (spec, framing_in, buffer) = (end.spec, end.framing_in, end.buffer);
        let (outgoing, Incoming { packets: incoming, credits: further }) = Line::of(end);
        Port {
            spec,
            framing: [Framing::of(&spec), framing_in],
            buffer,
            link: RefCell::new(Stream::new(spec.latency, spec.gap, Stage::LINK, Stage::LINK_QUEUED)),
            credits: Credits::new(&sim, u64::from(slots)),
            further: further.into_iter().map(|incoming| Further::new(&sim, slots, incoming)).collect(),
            outgoing,
            incoming,
            in_buffer: Cell::new(0),
            meter: Meter::default(),
            recorder: Recorder::off(),
            sim,
        }
    }

    /// Has packets and the use of the link recorded, where such rows are kept.
    pub fn record(&mut self, recorder: &Recorder) {
        self.link.get_mut().record(recorder, Resource::LINK);
        self.recorder = recorder.clone();
    }

    /// Packets that the buffer at this end of the link holds, for each virtual channel.
    pub fn buffer(&self) -> u32 {
        self.buffer
    }

    /// When the link's serialiser is free again.
    pub fn free(&self) -> Time {
        self.link.borrow().free()
    }

    /// How long the serialiser has been occupied.
    pub fn busy(&self) -> Duration {
        self.link.borrow().busy()
    }

    /// Packets sent and received so far.
    pub fn packets(&self) -> (u64, u64) {
        let statistics = self.statistics();
        (statistics.sent_packets, statistics.received_packets)
    }

    /// The port's counts so far.
    pub fn statistics(&self) -> PortStatistics {
        self.meter.read()
    }

    pub(crate) fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// Waits until a packet of this `flight` may start: a credit for the buffer at the other end, its first
    /// byte, the serialiser. One sender at a time; [`Port::launch`] follows at the same instant.
    pub async fn turn(&self, flight: Flight) -> Turn {
        self.turn_on(0, flight).await
    }

    /// As [`Port::turn`], for a packet of this virtual channel. One sender on each at a time.
    ///
    /// # Panics
    /// When the link has no such channel.
    pub async fn turn_on(&self, channel: u8, flight: Flight) -> Turn {
        let asked = self.sim.now();
        let ready = asked.max(flight.head);
        let credit = match self.try_credit(channel) {
            Some(credit) => credit,
            None => {
                let (credits, incoming) = self.credits(channel);
                incoming.wait_for_units();
                credits.acquire(1).await
            }
        };
        let granted = self.sim.now();
        self.sim.until(flight.head.max(self.free())).await;
        let channel = Channel::Data(channel);
        Turn { flight, channel, credit: Some(credit), granted, waited: self.sim.now().since(ready) }
    }

    /// The credits of a virtual channel, and the wire by which they come.
    fn credits(&self, channel: u8) -> (&Credits, &WireRx<Symbol>) {
        match channel.checked_sub(1) {
            None => (&self.credits, &self.incoming),
            Some(further) => {
                let Further { credits, incoming, .. } = &self.further[usize::from(further)];
                (credits, incoming)
            }
        }
    }

    /// A free credit. Returned credits are counted only when there is none left.
    fn try_credit(&self, channel: u8) -> Option<Permit> {
        let (credits, incoming) = self.credits(channel);
        credits.try_acquire(1).or_else(|| {
            credits.release(incoming.take_units());
            credits.try_acquire(1)
        })
    }

    /// As [`Port::turn`], for a packet of the control channel.
    pub async fn control_turn(&self, flight: Flight) -> Turn {
        let asked = self.sim.now();
        let ready = asked.max(flight.head);
        self.sim.until(flight.head.max(self.free())).await;
        let (channel, credit) = (Channel::Control, None);
        Turn { flight, channel, credit, granted: asked, waited: self.sim.now().since(ready) }
    }

    /// Puts a packet on the link whose turn it is. Returns the path up to the instant at which its last byte is handed
    /// to the link.
    ///
    /// # Panics
    /// When the packet is of another channel than the turn.
    pub fn launch(&self, packet: impl Into<Parcel>, turn: Turn) -> Path {
        self.launch_parcel(packet.into(), turn)
    }

    fn launch_parcel(&self, packet: Parcel, turn: Turn) -> Path {
        let Turn { flight, channel, credit, granted, waited } = turn;
        assert_eq!(channel, packet.channel, "a credit is of one virtual channel");
        if let Some(credit) = credit {
            credit.forget();
        }
        let bytes = self.framing[0].bytes(packet.payload.len());
        let again = self.outgoing.duplicates().then(|| flight.clone());
        let message = packet.label.message;
        let (crossed, handed) = self.link.borrow_mut().cross_after(granted, message, bytes, flight);
        self.meter.sent(bytes, waited, self.busy());
        let start = Time::from_ps(crossed.head.ps() - self.spec.latency.ps());
        if !packet.is_control() {
            self.recorder.packet_sent(message, packet.label.offset, packet.payload.len(), start);
        }
        let span = Span::of(&crossed);
        let packet = Transit::begin(packet, crossed.path);
        let sent = self.outgoing.send(packet, span, Use { bytes, occupied: self.spec.gap.cover(bytes) });
        if let Some(Held { begin, until, resent }) = sent.held {
            self.link.borrow_mut().resend(Stage::LINK_RESENT, begin, until);
            self.meter.resent(resent, self.busy());
        }
        if let Some((packet, flight)) = sent.again.zip(again) {
            self.repeat(*packet, granted, flight);
        }
        handed
    }

    /// The network duplicates a packet, if there is a slot for the copy at the other end.
    fn repeat(&self, packet: Transit, granted: Time, flight: Flight) {
        if let Channel::Data(channel) = packet.channel {
            let Some(credit) = self.try_credit(channel) else { return };
            credit.forget();
        }
        let bytes = self.framing[0].bytes(packet.bytes);
        let (crossed, _) = self.link.borrow_mut().cross_after(granted, packet.message, bytes, flight);
        self.meter.sent(bytes, Duration::ZERO, self.busy());
        let span = Span::of(&crossed);
        self.outgoing.repeat(packet.retraced(crossed.path), span);
    }

    /// Injects faults on the transmit path, where `faults` has any for it, in a network of so many hosts.
    pub(crate) fn inject(&mut self, faults: &Faults, hosts: u32) -> Option<Rc<Injector>> {
        self.outgoing.inject(faults, self.sim.node(), hosts)
    }

    /// Keeps the packets of the transmit path in as much memory as `left` says.
    pub(crate) fn capture(&mut self, left: &Rc<Cell<u64>>, hosts: u32) -> Option<Rc<Tap>> {
        self.outgoing.capture(left, self.sim.node(), hosts)
    }

    /// The node whose end it is.
    pub(crate) fn node(&self) -> NodeId {
        self.sim.node()
    }

    /// The two ends of the transmit path; none where it is inside the node.
    pub(crate) fn direction(&self, hosts: u32) -> Option<(Place, Place)> {
        self.outgoing.direction(self.sim.node(), hosts)
    }

    /// The next packet that has come, whole. Takes the credits that come between packets. One of the control channel has
    /// no slot to be freed.
    pub async fn receive(&self) -> Parcel {
        loop {
            if self.credits.waiting() > 0 {
                self.incoming.wait_for_units();
            }
            let symbol = match self.incoming.next().await {
                Arrived::Message(symbol) => symbol,
                Arrived::Units(slots) => {
                    self.credits.release(slots);
                    continue;
                }
            };
            match symbol {
                Symbol::Packet(packet) => {
                    if !packet.is_control() {
                        self.in_buffer.set(self.in_buffer.get() + 1);
                    }
                    let bytes = self.framing[1].bytes(packet.payload.len());
                    self.meter.received(bytes, self.in_buffer.get());
                    return packet;
                }
                Symbol::Lost(channel) => self.outgoing.credit(channel, self.sim.now()),
                Symbol::Head { .. } => unreachable!("cards are given whole packets"),
                Symbol::Barrier => unreachable!("a barrier symbol on a data link"),
            }
        }
    }

    /// Returns the credit for a slot of this end's packet buffer.
    pub fn free_slot(&self) {
        self.free_slot_on(0);
    }

    /// As [`Port::free_slot`], for a slot of this virtual channel.
    ///
    /// # Panics
    /// When the link has no such channel.
    pub fn free_slot_on(&self, channel: u8) {
        self.in_buffer.set(self.in_buffer.get() - 1);
        self.outgoing.credit(channel, self.sim.now());
    }
}

/// Joins two nodes by a link, both directions alike.
///
/// # Panics
/// When the latency is zero or the buffer holds nothing.
pub fn pair(world: &mut World<Symbol>, a: NodeId, b: NodeId, spec: LinkSpec) -> (Port, Port) {
    let end = |node| Terminal { node, buffer: spec.buffer, delivery: Delivery::Whole };
    let (a, b) = link(world, end(a), end(b), spec);
    (Port::new(a), Port::new(b))
}
