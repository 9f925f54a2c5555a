//! A node's end of a link.

use crate::capture::Tap;
use crate::ethernet::{LEAST, Station};
use crate::faults::{Faults, Injector, Place};
use crate::link::{Held, Incoming, Line, Use};
use crate::meter::{Meter, PortStatistics};
use crate::protocol::Framing;
use crate::transit::{Span, Transit};
use crate::transmit::Transmit;
use crate::{Channel, Delivery, LinkEnd, LinkSpec, PacketBox, Symbol, Terminal, link};
use nicety_kernel::{Arrived, Credits, Permit, Sim, SortedQueue, WireRx, World, prefetch};
use nicety_types::{Duration, Flight, NodeId, Path, Recorder, Resource, Stage, Stream, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A packet's turn on a link. A turn that is dropped without a launch releases its credit.
pub struct Turn {
    flight: Flight,
    channel: Channel,
    /// `None` on the control channel, and in a network without credits.
    credit: Option<Permit>,
    /// The time at which the credit was granted.
    granted: Time,
    /// The time for which the packet was ready and waited.
    waited: Duration,
}

impl Turn {
    /// Returns the same turn for a packet that lies complete in a buffer at the end of `path`.
    pub fn resting(self, path: Path) -> Turn {
        Turn { flight: Flight::resting(path), ..self }
    }
}

/// A node's end of a link, for both directions.
///
/// A packet starts only with a credit for a slot of the buffer at the far end. The receiver returns the credit as a
/// symbol on the opposite direction of the link. A credit takes the link's latency and no bandwidth.
///
/// Each virtual channel of a link has its own buffer and credits, so a packet never waits for a slot of another
/// channel. The channels share the serialiser, which takes packets in the order of their launches.
pub struct Port {
    sim: Sim,
    /// Capacity in packets of the buffer at this end.
    buffer: u32,
    transmit: Rc<Transmit>,
    /// Credits of virtual channel 0.
    credits: Credits,
    /// The credits of the other virtual channels.
    further: Vec<Further>,
    incoming: Incomings,
    /// Number of packets in this end's buffers. A packet with a past departure time in `leaving` counts until it is
    /// removed there.
    in_buffer: Cell<u32>,
    /// Times at which slots become free that the card freed in advance.
    leaving: RefCell<SortedQueue<Time, 8>>,
    /// Start of the last launched packet.
    begun: Cell<Time>,
    recorder: Recorder,
}

/// The receive side of a port.
enum Incomings {
    /// The wire for packets and credits.
    Wire(WireRx<Symbol>),
    /// The station for packets and pauses, in a network without credits.
    Station(Rc<Station>),
}

/// A virtual channel other than channel 0, with separate wires for its credits.
struct Further {
    /// Credits for slots at the far end.
    credits: Credits,
    incoming: Rc<WireRx<Symbol>>,
}

impl Further {
    /// Returns a virtual channel with this number of slots at the far end.
    fn new(sim: &Sim, slots: u32, incoming: WireRx<Symbol>) -> Further {
        let (credits, incoming) = (Credits::new(sim, u64::from(slots)), Rc::new(incoming));
        sim.spawn(take_credits(credits.clone(), incoming.clone()));
        Further { credits, incoming }
    }
}

/// Takes arriving credits while packets wait for them.
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
                // The wire keeps the handler alive. No credits arrive on this wire.
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

    /// Records packets and the use of the link, if the recorder keeps such rows.
    pub fn record(&mut self, recorder: &Recorder) {
        self.transmit.link.borrow_mut().record(recorder, Resource::LINK);
        self.recorder = recorder.clone();
    }

    /// Keeps the memory that the port needs for packets [near](Sim::keep_near).
    pub fn keep_near(&self) {
        self.sim.keep_near(self);
        self.sim.keep_near(&*self.transmit);
    }

    /// Capacity in packets of the buffer at this end of the link, for each virtual channel.
    pub fn buffer(&self) -> u32 {
        self.buffer
    }

    /// The time at which the link's serialiser is free again.
    pub fn free(&self) -> Time {
        self.transmit.free()
    }

    /// Serialisation time of a packet with this payload.
    pub fn serialisation(&self, payload: u64) -> Duration {
        self.transmit.spec.gap.cover(self.transmit.bytes(payload))
    }

    /// Busy time of the serialiser.
    pub fn busy(&self) -> Duration {
        self.transmit.link.borrow().busy()
    }

    /// Numbers of packets sent and received so far.
    pub fn packets(&self) -> (u64, u64) {
        let statistics = self.statistics();
        (statistics.sent_packets, statistics.received_packets)
    }

    /// The port's counters so far.
    pub fn statistics(&self) -> PortStatistics {
        self.transmit.meter.read()
    }

    pub(crate) fn meter(&self) -> Meter {
        self.transmit.meter.clone()
    }

    /// The receive side in a network without credits.
    pub(crate) fn station(&self) -> Option<Rc<Station>> {
        match &self.incoming {
            Incomings::Wire(_) => None,
            Incomings::Station(station) => Some(station.clone()),
        }
    }

    /// The wire for packets and credits.
    fn wire(&self) -> &WireRx<Symbol> {
        match &self.incoming {
            Incomings::Wire(wire) => wire,
            Incomings::Station(_) => unreachable!("a network without credits"),
        }
    }

    /// Waits until a packet of this `flight` may start. It needs a credit for the buffer at the far end, its first
    /// byte, and the free serialiser. Only one sender may wait at a time. The sender calls [`Port::launch`] at the
    /// instant when this returns.
    pub async fn turn(&self, flight: Flight) -> Turn {
        self.turn_on(0, flight).await
    }

    /// Like [`Port::turn`], for a packet of this virtual channel. Only one sender may wait for each channel at a time.
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

    /// Returns the turn of a packet of virtual channel 0 directly behind the last launched packet. The turn may be in
    /// the future. So a sender without competitors need not wait before each of its packets. The turn equals the result
    /// of a call of [`Port::turn`] at the start of the last launched packet.
    ///
    /// Returns `None` without a credit, in a network without credits, or if a packet's disposition is not known in
    /// advance. It is not known if packets may be lost, damaged, resent or watched. The caller then calls
    /// [`Port::turn`] at [`Port::begun`].
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

    /// Start of the last launched packet, in the past or future.
    pub fn begun(&self) -> Time {
        self.begun.get()
    }

    /// Returns the credits of a virtual channel, and the wire on which they arrive.
    fn credits(&self, channel: u8) -> (&Credits, &WireRx<Symbol>) {
        match channel.checked_sub(1) {
            None => (&self.credits, self.wire()),
            Some(further) => {
                let Further { credits, incoming, .. } = &self.further[usize::from(further)];
                (credits, incoming)
            }
        }
    }

    /// Takes a credit, if one is available. Collects returned credits only if no collected credit is left.
    fn try_credit(&self, channel: u8) -> Option<Permit> {
        let (credits, incoming) = self.credits(channel);
        credits.try_acquire(1).or_else(|| {
            credits.release(incoming.take_units());
            credits.try_acquire(1)
        })
    }

    /// Like [`Port::turn`], for a packet of the control channel.
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

    /// Like [`Port::turn`], in a network without credits, where all channels are treated alike. Callers box this
    /// future, so that the futures of senders with credits stay small.
    async fn station_turn(&self, station: &Station, channel: Channel, flight: Flight) -> Turn {
        let ready = self.sim.now().max(flight.head);
        station.turn(flight.head).await;
        let granted = self.sim.now();
        Turn { flight, channel, credit: None, granted, waited: granted.since(ready) }
    }

    /// Puts a packet on the link at its turn. Returns the path up to the instant at which its last byte is handed to
    /// the link.
    ///
    /// # Panics
    /// When the packet's channel differs from the channel of the turn.
    pub fn launch(&self, packet: impl Into<PacketBox>, turn: Turn) -> Path {
        self.launch_parcel(packet.into(), turn)
    }

    /// Occupies the link like a packet with this payload, but no node receives the packet. Returns the instant at which
    /// the last byte is handed to the link.
    pub fn launch_to_nobody(&self, payload: u64, turn: Turn) -> Time {
        let transmit = &*self.transmit;
        let bytes = transmit.bytes(payload);
        let took = transmit.spec.gap.cover(bytes);
        let start = transmit.link.borrow_mut().occupy(turn.granted.max(turn.flight.head), took);
        transmit.meter.sent(bytes, turn.waited, self.busy());
        self.begun.set(start);
        start + took
    }

    fn launch_parcel(&self, packet: PacketBox, turn: Turn) -> Path {
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

    /// Sends the copy of a duplicated packet, if there is a slot for the copy at the far end.
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

    /// Sets the faults that `faults` has for the transmit path, in a network of `hosts` hosts.
    pub(crate) fn inject(&mut self, faults: &Faults, hosts: u32) -> Option<Rc<Injector>> {
        self.transmit.outgoing.borrow_mut().inject(faults, self.sim.node(), hosts)
    }

    /// Captures the packets of the transmit path in the `left` bytes of memory.
    pub(crate) fn capture(&mut self, left: &Rc<Cell<u64>>, hosts: u32) -> Option<Rc<Tap>> {
        self.transmit.outgoing.borrow_mut().capture(left, self.sim.node(), hosts)
    }

    /// The node at this end.
    pub(crate) fn node(&self) -> NodeId {
        self.sim.node()
    }

    /// The two ends of the transmit path, or `None` if the path is inside the node.
    pub(crate) fn direction(&self, hosts: u32) -> Option<(Place, Place)> {
        self.transmit.outgoing.borrow().direction(self.sim.node(), hosts)
    }

    /// Returns the next received packet, complete. Collects the credits that arrive between packets. The card frees no
    /// slot for a control packet.
    pub async fn receive(&self) -> PacketBox {
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

    /// Like [`Port::free_slot`], for a slot of this virtual channel.
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

    /// Like [`Port::free_slot`], for a slot that becomes free at `time`, without an event at that time. Returns false
    /// in a network without credits, or if `time` is now. This call then does nothing, and the caller must free the
    /// slot at `time`.
    #[must_use = "the slot may still have to be freed"]
    pub fn free_slot_at(&self, time: Time) -> bool {
        // At the current time, only the order of events decides which packets find the slot taken.
        let is_known = matches!(self.incoming, Incomings::Wire(_)) && time > self.sim.now();
        if is_known {
            self.leaving.borrow_mut().insert(time);
            self.transmit.outgoing.borrow().credit(0, time);
        }
        is_known
    }
}

/// Joins two nodes by a link that is equal in both directions.
///
/// # Panics
/// When the latency is zero or the buffer has no slot.
pub fn pair(world: &mut World<Symbol>, a: NodeId, b: NodeId, spec: LinkSpec) -> (Port, Port) {
    let end = |node| Terminal { node, buffer: spec.buffer, delivery: Delivery::Whole };
    let (a, b) = link(world, end(a), end(b), spec);
    (Port::new(a), Port::new(b))
}
