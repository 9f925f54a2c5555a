//! A card's end of its link, with or without reliable transport between card and port. Packets from a card to itself
//! use a loopback path, which loses no packet.

use super::{
    Arrived, Expired, FRAME_BYTES, Frame, Kind, Receiving, Sending, TransportSpec, TransportStatistics,
};
use crate::parts::loopback::{self, Loopback};
use crate::parts::transport::stages;
use nicety_fabric::{self as fabric, Channel, HeaderBytes, Label, Packet, PacketBox, Port};
use nicety_kernel::{Signal, Sim, race};
use nicety_portals::FailType;
use nicety_types::{Duration, Flight, MessageId, NodeId, Path, Payload, Recorder, Stage, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Maximum number of failed messages that are recorded.
const UNDELIVERED_KEPT: usize = 100;

/// A message, or a part of a message, that could not be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// Time of the flow's last progress. If the flow was idle since then, the time of the first packet after the idle
    /// state.
    pub since: Time,
    /// Time at which the sender gave up the flow.
    pub time: Time,
    /// The message.
    pub message: MessageId,
    /// The destination.
    pub destination: NodeId,
    /// Unacknowledged bytes of payload.
    pub bytes: u64,
}

/// The message number of packets that belong to no message.
const NO_MESSAGE: u64 = u64::MAX;

/// A packet's turn on the link or the loopback path. A turn that is dropped without a launch returns its credit.
pub struct Turn {
    /// The packet's path before the packet queued for its turn.
    path: Path,
    on: On,
}

enum On {
    Link(fabric::Turn),
    Loopback(loopback::Turn),
}

/// A launched packet.
#[derive(Clone)]
pub struct Launched {
    /// The path up to the handover of the packet's last byte to the link.
    pub path: Path,
    /// The packet's destination and number in its flow, if reliable transport is on.
    number: Option<(NodeId, u64)>,
}

/// A card's end of its link.
pub struct Wire {
    sim: Sim,
    port: Port,
    own: Loopback,
    reliable: Option<Reliable>,
}

struct Reliable {
    spec: TransportSpec,
    /// The flows by peer. A flow is created on first use.
    flows: RefCell<Vec<Option<Box<Flow>>>>,
    /// Peers to which an acknowledgement or refusal must be sent.
    owed: RefCell<VecDeque<NodeId>>,
    owing: Signal,
    statistics: Cell<TransportStatistics>,
    undelivered: RefCell<Vec<Undelivered>>,
}

/// Both ends of the flows between this card and a peer.
struct Flow {
    sending: Sending<Kept>,
    receiving: Receiving,
    /// Time of the last progress, or of the first unacknowledged packet after an idle state.
    since: Time,
    /// The time by which the next acknowledgement must arrive.
    deadline: Time,
    /// Notifies tasks that wait for room in the window, or for a delivery.
    progress: Signal,
    /// Notifies the flow's own task of new work, or of the end of all work.
    work: Signal,
    /// The acknowledgement or refusal that must be sent, if any.
    owed: Option<Kind>,
    /// Whether the peer has sent a farewell.
    left: bool,
}

/// A packet that may have to be resent.
struct Kept {
    packet: Packet,
    /// The path up to the packet's last handover to the link.
    handed: Path,
}

impl Wire {
    /// Returns the end of a card's link, in a cluster of `nodes` nodes. Starts its tasks. The loopback path has as many
    /// buffer slots as `port`.
    pub fn new(sim: &Sim, mut port: Port, spec: TransportSpec, nodes: u32, recorder: &Recorder) -> Rc<Wire> {
        port.record(recorder);
        let own = Loopback::new(sim, port.buffer(), recorder);
        let reliable = spec.reliable.then(|| Reliable {
            spec,
            flows: RefCell::new((0..nodes).map(|_| None).collect()),
            owed: RefCell::default(),
            owing: Signal::new(sim),
            statistics: Cell::default(),
            undelivered: RefCell::default(),
        });
        let wire = Rc::new(Wire { sim: sim.clone(), port, own, reliable });
        if wire.reliable.is_some() {
            sim.spawn(wire.clone().answer());
        }
        wire
    }

    /// Keeps the memory that packets need [near](Sim::keep_near).
    pub fn keep_near(&self) {
        self.port.keep_near();
    }

    /// The time at which the serialiser for packets to `to` is free. It belongs to the link, or to the loopback path.
    pub fn free(&self, to: NodeId) -> Time {
        if self.is_own(to) { self.own.free() } else { self.port.free() }
    }

    fn is_own(&self, node: NodeId) -> bool {
        node == self.sim.node()
    }

    /// Serialisation time of a packet with this payload.
    pub fn serialisation(&self, payload: u64) -> Duration {
        self.port.serialisation(payload)
    }

    /// Busy time of the link's serialiser.
    pub fn busy(&self) -> Duration {
        self.port.busy()
    }

    /// Number of packets sent and number of packets received so far. Packets of any kind and of the loopback path
    /// count.
    pub fn packets(&self) -> (u64, u64) {
        let ((sent, received), own) = (self.port.packets(), self.own.packets());
        (sent + own, received + own)
    }

    /// Counters of reliable transport. All are zero if it is off.
    pub fn statistics(&self) -> TransportStatistics {
        self.reliable.as_ref().map_or_else(TransportStatistics::default, |reliable| reliable.statistics.get())
    }

    /// Whether lost packets are resent.
    pub const fn is_reliable(&self) -> bool {
        self.reliable.is_some()
    }

    /// The first hundred failed messages.
    pub fn undelivered(&self) -> Vec<Undelivered> {
        self.reliable.as_ref().map_or_else(Vec::new, |reliable| reliable.undelivered.borrow().clone())
    }

    /// Returns the credit of a packet to its sender: the far end of the link, or this card for its own packets.
    pub fn free_slot(&self, source: NodeId) {
        if self.is_own(source) { self.own.free_slot() } else { self.port.free_slot() }
    }

    /// Like [`Wire::free_slot`], for a slot that becomes free at `time`. See [`Port::free_slot_at`]. Returns false on
    /// the loopback path.
    #[must_use = "the slot may still have to be freed"]
    pub fn free_slot_at(&self, source: NodeId, time: Time) -> bool {
        !self.is_own(source) && self.port.free_slot_at(time)
    }

    /// Returns a credit to the far end of the link. The source that the packet names does not matter.
    pub fn free_link_slot(&self) {
        self.port.free_slot();
    }

    /// Waits until the flow's window has room and the port grants a turn ([`Port::turn`]). `flight` has the times at
    /// which the packet's head and tail reach the port. Only one sender may wait at a time. The sender must call
    /// [`Wire::launch`] at the instant when this returns.
    pub async fn turn(self: &Rc<Wire>, to: NodeId, mut flight: Flight) -> Turn {
        if self.is_own(to) {
            return Turn { path: flight.path.clone(), on: On::Loopback(self.own.turn(flight).await) };
        }
        if let Some(reliable) = &self.reliable {
            let progress = self.with_flow(to, |flow| flow.progress.clone());
            let room = || self.with_flow(to, |flow| flow.sending.has_room() || flow.sending.has_failed());
            if !room() {
                progress.wait_until(room).await;
                let now = self.sim.now();
                if now > flight.head {
                    flight.path.advance(stages::TRANSPORT_QUEUED, now);
                    (flight.head, flight.tail) = (now, flight.tail.max(now));
                }
            }
            debug_assert!(reliable.spec.window > 0);
        }
        Turn { path: flight.path.clone(), on: On::Link(self.port.turn(flight).await) }
    }

    /// Returns the turn of a packet for `to` directly behind the last launched packet. The turn may be in the future.
    /// Returns `None` with reliable transport, on the loopback path, and if [`Port::turn_behind`] returns `None`.
    pub fn turn_behind(&self, to: NodeId, flight: &Flight) -> Option<Turn> {
        if self.is_own(to) || self.reliable.is_some() {
            return None;
        }
        Some(Turn { path: flight.path.clone(), on: On::Link(self.port.turn_behind(flight)?) })
    }

    /// Start of the last packet launched on the link, in the past or future.
    pub fn begun(&self) -> Time {
        self.port.begun()
    }

    /// Puts a packet on the link at its turn. If the flow to its destination has failed, records the packet as
    /// undelivered instead.
    pub fn launch(self: &Rc<Wire>, packet: impl Into<PacketBox>, turn: Turn) -> Launched {
        let (packet, Turn { path, on }) = (packet.into(), turn);
        match on {
            On::Link(turn) => self.launch_as(Kind::Data, packet, turn, path),
            On::Loopback(turn) => Launched { path: self.own.launch(packet, turn), number: None },
        }
    }

    fn launch_as(
        self: &Rc<Wire>,
        kind: Kind,
        mut packet: PacketBox,
        turn: fabric::Turn,
        mut path: Path,
    ) -> Launched {
        let Some(reliable) = &self.reliable else {
            return Launched { path: self.port.launch(packet, turn), number: None };
        };
        let (to, now) = (packet.label.destination, self.sim.now());
        let (number, failed, since) =
            self.with_flow(to, |flow| (flow.sending.next(), flow.sending.has_failed(), flow.since));
        if failed {
            reliable.lose((since, now), &packet);
            path.advance(Stage::LINK_QUEUED, now);
            return Launched { path, number: Some((to, u64::MAX)) };
        }
        let frame = Frame { kind, source: self.sim.node(), number };
        packet.header = frame.seal(packet.header, &packet.payload);
        let copy = packet.share();
        let path = self.port.launch(packet, turn);
        self.with_flow(to, |flow| {
            if flow.sending.is_idle() {
                flow.since = now;
                flow.deadline = reliable.deadline(&flow.sending, now);
                flow.work.notify_all();
            }
            flow.sending.sent(Kept { packet: copy, handed: path.clone() });
        });
        Launched { path, number: Some((to, number)) }
    }

    /// Waits until the last packet of a message has been handed to the link. With reliable transport, waits until the
    /// packet is acknowledged or its flow has failed. Returns the path up to that time, and the outcome.
    pub async fn delivered(self: &Rc<Wire>, launched: Launched) -> (Path, FailType) {
        let Launched { mut path, number } = launched;
        self.sim.until(path.at()).await;
        let Some((to, number)) = number else { return (path, FailType::Ok) };
        let progress = self.with_flow(to, |flow| flow.progress.clone());
        let over =
            || self.with_flow(to, |flow| flow.sending.has_failed() || flow.sending.is_acknowledged(number));
        progress.wait_until(over).await;
        path.advance(stages::TRANSPORT, self.sim.now());
        // A failed flow gets no further acknowledgements, and has dropped its packets.
        let failed =
            self.with_flow(to, |flow| flow.sending.has_failed() && !flow.sending.is_acknowledged(number));
        (path, if failed { FailType::Undeliverable } else { FailType::Ok })
    }

    /// The time for which the card waits for a reply to an acknowledged message before it sends a probe. `None` without
    /// reliable transport.
    pub fn patience(&self) -> Option<Duration> {
        self.reliable.as_ref().map(|reliable| reliable.spec.patience())
    }

    /// Whether a peer answers and has not given up its flow to this card. Sends a probe and waits for its
    /// acknowledgement. Sends no probe if the peer is known to have given up.
    pub async fn answers(self: &Rc<Wire>, peer: NodeId) -> bool {
        if self.is_own(peer) {
            return true;
        }
        let gone = || self.with_flow(peer, |flow| flow.left || flow.sending.has_failed());
        if gone() {
            return false;
        }
        let flight = Flight::resting(Path::from(self.sim.now()));
        let turn = self.port.control_turn(flight.clone()).await;
        let (label, channel) = (self.no_message(peer), Channel::Control);
        let (header, payload) = (HeaderBytes::new(&[]), Payload::empty());
        let path = flight.path;
        let packet = Packet { label, channel, header, payload, path: path.clone() };
        let Some((_, number)) = self.launch_as(Kind::Probe, packet.into(), turn, path).number else {
            return true;
        };
        let progress = self.with_flow(peer, |flow| flow.progress.clone());
        let known = || gone() || self.with_flow(peer, |flow| flow.sending.is_acknowledged(number));
        progress.wait_until(known).await;
        !gone()
    }

    /// Returns the label of a packet that belongs to no message.
    fn no_message(&self, destination: NodeId) -> Label {
        let message = MessageId { source: self.sim.node(), sequence: NO_MESSAGE };
        Label { destination, message, offset: 0 }
    }

    /// Returns the next packet on the loopback path when it is complete.
    pub async fn receive_own(&self) -> PacketBox {
        self.own.receive().await
    }

    /// Returns the next packet for the card from the link when it is complete, without the transport header.
    pub async fn receive(self: &Rc<Wire>) -> PacketBox {
        loop {
            let mut packet = self.port.receive().await;
            let Some(reliable) = &self.reliable else { return packet };
            // Checks are pipelined, so packets do not wait for each other's checks.
            let checked = packet.path.at() + reliable.spec.check;
            packet.path.advance(stages::TRANSPORT, checked);
            self.sim.until(checked).await;
            if self.take(reliable, &packet) {
                packet.header.strip(FRAME_BYTES);
                return packet;
            }
            if !packet.is_control() {
                self.port.free_slot();
            }
        }
    }

    /// Handles a received packet. Returns whether the packet is for the card, and not only for reliable transport.
    fn take(self: &Rc<Wire>, reliable: &Reliable, packet: &Packet) -> bool {
        let nodes = reliable.flows.borrow().len() as u32;
        // Only packets of messages (`Data`) take buffer space, so all other kinds must be on the control channel.
        let right =
            |frame: &Frame| frame.source.0 < nodes && (frame.kind != Kind::Data) == packet.is_control();
        let frame = Frame::open(packet).filter(right);
        let Some(Frame { kind, source, number }) = frame else {
            reliable.count(|s| s.corrupted += 1);
            return false;
        };
        if !matches!(kind, Kind::Data | Kind::Probe) {
            self.told(reliable, source, kind, number);
            return false;
        }
        let arrived = self.with_flow(source, |flow| flow.receiving.arrived(number));
        match arrived {
            Arrived::Next => {
                self.owe(reliable, source, Kind::Acknowledgement);
                return kind == Kind::Data;
            }
            Arrived::Before => {
                reliable.count(|s| s.duplicated += 1);
                self.owe(reliable, source, Kind::Acknowledgement);
            }
            Arrived::Ahead { refuse } => {
                reliable.count(|s| s.out_of_order += 1);
                if refuse {
                    self.owe(reliable, source, Kind::Refusal);
                }
            }
        }
        false
    }

    /// Handles an acknowledgement or refusal.
    fn told(self: &Rc<Wire>, reliable: &Reliable, from: NodeId, kind: Kind, expected: u64) {
        let now = self.sim.now();
        self.with_flow(from, |flow| {
            flow.left |= kind == Kind::Farewell;
            let news = match kind {
                Kind::Refusal => flow.sending.refused(expected),
                _ => flow.sending.acknowledged(expected),
            };
            if news {
                flow.since = now;
                flow.deadline = reliable.deadline(&flow.sending, now);
                flow.progress.notify_all();
            }
            if flow.sending.is_idle() || flow.sending.is_behind() {
                flow.work.notify_all();
            }
        });
    }

    fn owe(self: &Rc<Wire>, reliable: &Reliable, to: NodeId, kind: Kind) {
        // An answer that has not been sent yet is replaced. It is sent with the number that is expected at that time.
        if self.with_flow(to, |flow| flow.owed.replace(kind)).is_none() {
            reliable.owed.borrow_mut().push_back(to);
            reliable.owing.notify_one();
        }
    }

    /// Sends acknowledgements and refusals; never returns.
    async fn answer(self: Rc<Wire>) {
        let reliable = self.reliable.as_ref().expect("started with it");
        loop {
            reliable.owing.wait_until(|| !reliable.owed.borrow().is_empty()).await;
            let path = Path::from(self.sim.now());
            let turn = self.port.control_turn(Flight::resting(path.clone())).await;
            let Some(to) = reliable.owed.borrow_mut().pop_front() else { continue };
            let (kind, number) = self.with_flow(to, |flow| (flow.owed.take(), flow.receiving.expected()));
            let kind = kind.expect("one place in line for each that is owed");
            let given_up =
                kind == Kind::Acknowledgement && self.with_flow(to, |flow| flow.sending.has_failed());
            let kind = if given_up { Kind::Farewell } else { kind };
            reliable.count(|s| match kind {
                Kind::Refusal => s.refusals += 1,
                _ => s.acknowledgements += 1,
            });
            let source = self.sim.node();
            let payload = Payload::phantom(reliable.spec.ack);
            let header = Frame { kind, source, number }.seal(HeaderBytes::new(&[]), &payload);
            let (label, channel) = (self.no_message(to), Channel::Control);
            self.port.launch(Packet { label, channel, header, payload, path }, turn);
        }
    }

    /// The task of a flow. It resends missing packets, and gives up the flow.
    async fn tend(self: Rc<Wire>, to: NodeId) {
        let reliable = self.reliable.as_ref().expect("started with it");
        let work = self.with_flow(to, |flow| flow.work.clone());
        loop {
            work.wait_until(|| self.with_flow(to, |flow| !flow.sending.is_idle())).await;
            if self.with_flow(to, |flow| flow.sending.is_behind()) {
                self.send_again(reliable, to).await;
                continue;
            }
            let deadline = self.with_flow(to, |flow| flow.deadline);
            if self.sim.now() < deadline {
                race(self.sim.until(deadline), work.wait()).await;
            } else if self.expire(reliable, to) {
                return;
            }
        }
    }

    /// Resends the next packet.
    async fn send_again(self: &Rc<Wire>, reliable: &Reliable, to: NodeId) {
        let is_control = |flow: &mut Flow| Some(flow.sending.behind()?.packet.is_control());
        let Some(control) = self.with_flow(to, is_control) else { return };
        let flight = Flight::resting(Path::from(self.sim.now()));
        let turn = if control { self.port.control_turn(flight).await } else { self.port.turn(flight).await };
        let now = self.sim.now();
        let again = self.with_flow(to, |flow| {
            if is_control(flow) != Some(control) {
                return None;
            }
            let (number, kept) = flow.sending.send_again()?;
            let mut path = kept.handed.clone();
            path.advance(stages::RETRANSMIT, now);
            Some((number, kept.packet.share(), path))
        });
        // The packet may have been acknowledged while it waited for its credit.
        let Some((number, packet, path)) = again else { return };
        reliable.count(|s| s.retransmitted += 1);
        let handed = self.port.launch(packet, turn.resting(path));
        self.with_flow(to, |flow| {
            if let Some(kept) = flow.sending.kept(number) {
                kept.handed = handed;
            }
            if !flow.sending.is_behind() {
                flow.deadline = reliable.deadline(&flow.sending, now);
                flow.progress.notify_all();
            }
        });
    }

    /// Handles a timeout without progress. Returns whether the flow has failed.
    fn expire(self: &Rc<Wire>, reliable: &Reliable, to: NodeId) -> bool {
        let now = self.sim.now();
        reliable.count(|s| s.timeouts += 1);
        self.with_flow(to, |flow| {
            let failed = flow.sending.expired() == Expired::Failed;
            if failed {
                let times = (flow.since, now);
                flow.sending.give_up().for_each(|kept| reliable.lose(times, &kept.packet));
                flow.progress.notify_all();
            }
            failed
        })
    }

    fn with_flow<R>(self: &Rc<Wire>, peer: NodeId, act: impl FnOnce(&mut Flow) -> R) -> R {
        let reliable = self.reliable.as_ref().expect("flows are those of reliable transport");
        let mut flows = reliable.flows.borrow_mut();
        let flow = flows[peer.0 as usize].get_or_insert_with(|| {
            self.sim.spawn(self.clone().tend(peer));
            Box::new(Flow {
                sending: Sending::new(reliable.spec.window, reliable.spec.retries),
                receiving: Receiving::default(),
                since: Time::ZERO,
                deadline: Time::ZERO,
                progress: Signal::new(&self.sim),
                work: Signal::new(&self.sim),
                owed: None,
                left: false,
            })
        });
        act(flow)
    }
}

impl Reliable {
    fn deadline(&self, sending: &Sending<Kept>, now: Time) -> Time {
        now + self.spec.timeout * sending.patience()
    }

    fn count(&self, change: impl FnOnce(&mut TransportStatistics)) {
        let mut statistics = self.statistics.get();
        change(&mut statistics);
        self.statistics.set(statistics);
    }

    /// Records a packet of a failed flow. `since` is the time of the last progress, and `time` is when the flow was
    /// given up.
    fn lose(&self, (since, time): (Time, Time), packet: &Packet) {
        let Label { message, destination, .. } = packet.label;
        if message.sequence == NO_MESSAGE {
            return;
        }
        let bytes = packet.payload.len();
        let mut undelivered = self.undelivered.borrow_mut();
        // The packets of a message follow each other.
        if let Some(last) = undelivered.last_mut().filter(|last| last.message == message) {
            last.bytes += bytes;
        } else if undelivered.len() < UNDELIVERED_KEPT {
            undelivered.push(Undelivered { since, time, message, destination, bytes });
        }
    }
}
