//! A node's end of a link.

use crate::capture::Tap;
use crate::ethernet::{LEAST, Pause, Station};
use crate::faults::{Faults, Injector, Place};
use crate::link::{Held, Incoming, Line, Use};
use crate::meter::{Meter, PortStatistics};
use crate::protocol::Framing;
use crate::transit::{Span, Transit};
use crate::{Channel, Delivery, LinkEnd, LinkProtocol, Parcel, Symbol, Terminal, link};
use nicety_kernel::{Arrived, Credits, Few, Permit, Sim, WireRx, World, prefetch};
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
    /// Packets that the buffer at this end holds.
    buffer: u32,
    transmit: Rc<Transmit>,
    /// Of the first virtual channel.
    credits: Credits,
    /// The other virtual channels.
    further: Vec<Further>,
    incoming: Incomings,
    /// Packets in this end's buffers, with those that have left by `leaving` and have not been counted.
    in_buffer: Cell<u32>,
    /// When slots will be free that have been given up beforehand.
    leaving: RefCell<Few<Time, 8>>,
    /// When the packet began that was launched last.
    begun: Cell<Time>,
    recorder: Recorder,
}

/// The receiving side of a port.
enum Incomings {
    /// Brings packets and credits.
    Wire(WireRx<Symbol>),
    /// Of a network without credits.
    Station(Rc<Station>),
}

/// The transmit path of a port.
pub(crate) struct Transmit {
    spec: LinkSpec,
    /// Of packets sent and received.
    framing: [Framing; 2],
    /// The least bytes of a packet on the wire.
    least: u64,
    link: RefCell<Stream>,
    outgoing: RefCell<Line>,
    meter: Meter,
}

impl Transmit {
    /// When the link's serialiser is free again.
    pub(crate) fn free(&self) -> Time {
        self.link.borrow().free()
    }

    /// Time per byte on the wire.
    pub(crate) fn gap(&self) -> Gap {
        self.spec.gap
    }

    /// The node at the far end.
    pub(crate) fn to(&self) -> NodeId {
        self.outgoing.borrow().to()
    }

    /// Bytes on the wire of a packet with this payload that goes out.
    fn bytes(&self, payload: u64) -> u64 {
        self.framing[0].bytes(payload).max(self.least)
    }

    /// Bytes on the wire of a packet with this payload that has come.
    pub(crate) fn received(&self, payload: u64) -> u64 {
        self.framing[1].bytes(payload).max(self.least)
    }

    /// Counts a packet of so many bytes that has come, with so many in the buffer then.
    pub(crate) fn meter(&self, bytes: u64, in_buffer: u32) {
        self.meter.received(bytes, in_buffer);
    }

    /// Sends a pause frame, behind the packet that is being sent.
    pub(crate) fn pause(&self, pause: Pause, now: Time) {
        let took = self.spec.gap.cover(LEAST);
        let start = self.link.borrow_mut().occupy(now, took);
        self.outgoing.borrow().pause(pause, start, took);
    }
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
        let (sim, slots, plan) = (end.sim.clone(), end.far.buffer, end.plan);
        let (spec, framing_in, buffer) = (end.spec, end.framing_in, end.buffer);
        let (outgoing, Incoming { packets, credits: further }) = Line::of(end);
        let transmit = Rc::new(Transmit {
            spec,
            framing: [Framing::of(&spec), framing_in],
            least: if plan.is_some() { LEAST } else { 0 },
            link: RefCell::new(Stream::new(spec.latency, spec.gap, Stage::LINK, Stage::LINK_QUEUED)),
            outgoing: RefCell::new(outgoing),
            meter: Meter::default(),
        });
        let incoming = match plan {
            None => {
                packets.prepare(|symbol| {
                    if let Symbol::Packet(packet) = symbol {
                        prefetch(&**packet);
                    }
                });
                Incomings::Wire(packets)
            }
            Some(plan) => {
                let station = Station::new(&sim, transmit.clone(), plan, buffer);
                // The wire keeps the handler; no credits come by it.
                drop(packets.handle(station.clone(), 0));
                Incomings::Station(station)
            }
        };
        Port {
            buffer,
            transmit,
            credits: Credits::new(&sim, u64::from(slots)),
            further: further.into_iter().map(|incoming| Further::new(&sim, slots, incoming)).collect(),
            incoming,
            in_buffer: Cell::new(0),
            leaving: RefCell::default(),
            begun: Cell::new(Time::ZERO),
            recorder: Recorder::off(),
            sim,
        }
    }

    /// Has packets and the use of the link recorded, where such rows are kept.
    pub fn record(&mut self, recorder: &Recorder) {
        self.transmit.link.borrow_mut().record(recorder, Resource::LINK);
        self.recorder = recorder.clone();
    }

    /// Has what packets touch here [kept near](Sim::keep_near).
    pub fn keep_near(&self) {
        self.sim.keep_near(self);
        self.sim.keep_near(&*self.transmit);
    }

    /// Packets that the buffer at this end of the link holds, for each virtual channel.
    pub fn buffer(&self) -> u32 {
        self.buffer
    }

    /// When the link's serialiser is free again.
    pub fn free(&self) -> Time {
        self.transmit.free()
    }

    /// Time of the serialiser for a packet with so much payload.
    pub fn serialisation(&self, payload: u64) -> Duration {
        self.transmit.spec.gap.cover(self.transmit.bytes(payload))
    }

    /// How long the serialiser has been occupied.
    pub fn busy(&self) -> Duration {
        self.transmit.link.borrow().busy()
    }

    /// Packets sent and received so far.
    pub fn packets(&self) -> (u64, u64) {
        let statistics = self.statistics();
        (statistics.sent_packets, statistics.received_packets)
    }

    /// The port's counts so far.
    pub fn statistics(&self) -> PortStatistics {
        self.transmit.meter.read()
    }

    pub(crate) fn meter(&self) -> Meter {
        self.transmit.meter.clone()
    }

    /// The receiving side, in a network without credits.
    pub(crate) fn station(&self) -> Option<Rc<Station>> {
        match &self.incoming {
            Incomings::Wire(_) => None,
            Incomings::Station(station) => Some(station.clone()),
        }
    }

    /// The wire by which packets and credits come.
    fn wire(&self) -> &WireRx<Symbol> {
        match &self.incoming {
            Incomings::Wire(wire) => wire,
            Incomings::Station(_) => unreachable!("a network without credits"),
        }
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
        if let Incomings::Station(station) = &self.incoming {
            return Box::pin(self.station_turn(station, Channel::Data(channel), flight)).await;
        }
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

    /// The turn of a packet of the first virtual channel right behind the one that was launched last, which may be later than now:
    /// so a sender that nobody else can come in front of need not wait for each of its packets. It is the turn that
    /// [`Port::turn`] would give if it were called as that packet began.
    ///
    /// None where no credit is left, or where what becomes of a packet is not known before its time: packets may be lost,
    /// damaged, sent again or watched, or there are no credits. [`Port::turn`], at [`Port::begun`], is the way then.
    pub fn turn_behind(&self, flight: &Flight) -> Option<Turn> {
        if matches!(self.incoming, Incomings::Station(_)) || !self.transmit.outgoing.borrow().is_plain() {
            return None;
        }
        let credit = Some(self.try_credit(0)?);
        let granted = self.sim.now().max(self.begun.get());
        let ready = granted.max(flight.head);
        let waited = flight.head.max(self.free()).max(granted).since(ready);
        Some(Turn { flight: flight.clone(), channel: Channel::Data(0), credit, granted, waited })
    }

    /// When the packet begins, or has begun, that was launched last.
    pub fn begun(&self) -> Time {
        self.begun.get()
    }

    /// The credits of a virtual channel, and the wire by which they come.
    fn credits(&self, channel: u8) -> (&Credits, &WireRx<Symbol>) {
        match channel.checked_sub(1) {
            None => (&self.credits, self.wire()),
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
        if let Incomings::Station(station) = &self.incoming {
            return Box::pin(self.station_turn(station, Channel::Control, flight)).await;
        }
        let asked = self.sim.now();
        let ready = asked.max(flight.head);
        self.sim.until(flight.head.max(self.free())).await;
        let (channel, credit) = (Channel::Control, None);
        Turn { flight, channel, credit, granted: asked, waited: self.sim.now().since(ready) }
    }

    /// The same in a network without credits, where packets of all channels are alike. It is boxed, so that senders with
    /// credits are no larger for it.
    async fn station_turn(&self, station: &Station, channel: Channel, flight: Flight) -> Turn {
        let ready = self.sim.now().max(flight.head);
        station.turn(flight.head).await;
        let granted = self.sim.now();
        Turn { flight, channel, credit: None, granted, waited: granted.since(ready) }
    }

    /// Puts a packet on the link whose turn it is. Returns the path up to the instant at which its last byte is handed
    /// to the link.
    ///
    /// # Panics
    /// When the packet is of another channel than the turn.
    pub fn launch(&self, packet: impl Into<Parcel>, turn: Turn) -> Path {
        self.launch_parcel(packet.into(), turn)
    }

    /// Puts a packet with so much payload on the link that nobody at the far end takes: its bytes have the link, and that is all.
    /// Returns when the last one is handed to the link.
    pub fn launch_to_nobody(&self, payload: u64, turn: Turn) -> Time {
        let transmit = &*self.transmit;
        let bytes = transmit.bytes(payload);
        let took = transmit.spec.gap.cover(bytes);
        let start = transmit.link.borrow_mut().occupy(turn.granted.max(turn.flight.head), took);
        transmit.meter.sent(bytes, turn.waited, self.busy());
        self.begun.set(start);
        start + took
    }

    fn launch_parcel(&self, packet: Parcel, turn: Turn) -> Path {
        let Turn { flight, channel, credit, granted, waited } = turn;
        assert_eq!(channel, packet.channel, "a credit is of one virtual channel");
        if let Some(credit) = credit {
            credit.forget();
        }
        let transmit = &*self.transmit;
        let bytes = transmit.bytes(packet.payload.len());
        let outgoing = transmit.outgoing.borrow();
        let again = outgoing.duplicates().then(|| flight.clone());
        let message = packet.label.message;
        let (crossed, handed) = transmit.link.borrow_mut().cross_after(granted, message, bytes, flight);
        transmit.meter.sent(bytes, waited, self.busy());
        let start = Time::from_ps(crossed.head.ps() - transmit.spec.latency.ps());
        self.begun.set(start);
        if !packet.is_control() {
            self.recorder.packet_sent(message, packet.label.offset, packet.payload.len(), start);
        }
        let span = Span::of(&crossed);
        let packet = Transit::begin(packet, crossed.path);
        let sent = outgoing.send(packet, span, Use { bytes, occupied: transmit.spec.gap.cover(bytes) });
        drop(outgoing);
        if let Some(Held { begin, until, resent }) = sent.held {
            transmit.link.borrow_mut().resend(Stage::LINK_RESENT, begin, until);
            transmit.meter.resent(resent, self.busy());
        }
        if let Some((packet, flight)) = sent.again.zip(again) {
            self.repeat(*packet, granted, flight);
        }
        handed
    }

    /// The network duplicates a packet, if there is a slot for the copy at the other end.
    fn repeat(&self, packet: Transit, granted: Time, flight: Flight) {
        if let (Channel::Data(channel), Incomings::Wire(_)) = (packet.channel, &self.incoming) {
            let Some(credit) = self.try_credit(channel) else { return };
            credit.forget();
        }
        let transmit = &*self.transmit;
        let bytes = transmit.bytes(packet.bytes);
        let (crossed, _) = transmit.link.borrow_mut().cross_after(granted, packet.message, bytes, flight);
        transmit.meter.sent(bytes, Duration::ZERO, self.busy());
        let span = Span::of(&crossed);
        transmit.outgoing.borrow().repeat(packet.retraced(crossed.path), span);
    }

    /// Injects faults on the transmit path, where `faults` has any for it, in a network of so many hosts.
    pub(crate) fn inject(&mut self, faults: &Faults, hosts: u32) -> Option<Rc<Injector>> {
        self.transmit.outgoing.borrow_mut().inject(faults, self.sim.node(), hosts)
    }

    /// Keeps the packets of the transmit path in as much memory as `left` says.
    pub(crate) fn capture(&mut self, left: &Rc<Cell<u64>>, hosts: u32) -> Option<Rc<Tap>> {
        self.transmit.outgoing.borrow_mut().capture(left, self.sim.node(), hosts)
    }

    /// The node whose end it is.
    pub(crate) fn node(&self) -> NodeId {
        self.sim.node()
    }

    /// The two ends of the transmit path; none where it is inside the node.
    pub(crate) fn direction(&self, hosts: u32) -> Option<(Place, Place)> {
        self.transmit.outgoing.borrow().direction(self.sim.node(), hosts)
    }

    /// The next packet that has come, whole. Takes the credits that come between packets. One of the control channel has
    /// no slot to be freed.
    pub async fn receive(&self) -> Parcel {
        let incoming = match &self.incoming {
            Incomings::Wire(wire) => wire,
            Incomings::Station(station) => return Box::pin(station.receive()).await,
        };
        loop {
            if self.credits.waiting() > 0 {
                incoming.wait_for_units();
            }
            let symbol = match incoming.next().await {
                Arrived::Message(symbol) => symbol,
                Arrived::Units(slots) => {
                    self.credits.release(slots);
                    continue;
                }
            };
            match symbol {
                Symbol::Packet(packet) => {
                    let left = self.leaving.borrow_mut().take_while(|time| time <= self.sim.now());
                    let came = u32::from(!packet.is_control());
                    self.in_buffer.set(self.in_buffer.get() - left as u32 + came);
                    let bytes = self.transmit.received(packet.payload.len());
                    self.transmit.meter(bytes, self.in_buffer.get());
                    return packet;
                }
                Symbol::Lost(channel) => {
                    self.transmit.outgoing.borrow().credit(channel, self.sim.now());
                }
                Symbol::Pause(_) => unreachable!("a pause in a network with credits"),
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
        if let Incomings::Station(station) = &self.incoming {
            return station.free_slot();
        }
        self.in_buffer.set(self.in_buffer.get() - 1);
        self.transmit.outgoing.borrow().credit(channel, self.sim.now());
    }

    /// As [`Port::free_slot`], for a slot that will be free at `time`, so that nothing has to happen then. Not in a network without
    /// credits, nor where that time is now: false is returned, nothing is done, and the slot is to be freed at that time.
    #[must_use = "the slot may still have to be freed"]
    pub fn free_slot_at(&self, time: Time) -> bool {
        // Of what happens now, the order decides which packets find the slot taken.
        let is_known = matches!(self.incoming, Incomings::Wire(_)) && time > self.sim.now();
        if is_known {
            self.leaving.borrow_mut().insert(time);
            self.transmit.outgoing.borrow().credit(0, time);
        }
        is_known
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
