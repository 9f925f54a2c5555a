//! The receive path: packets from the link, translation, host memory, events.
//!
//! An engine takes a packet, has its address translated, and writes it. So packets of one message may be written at a time,
//! and its event is written behind the last of them. Events of puts and sends of one node are in the order in which these
//! have come.

use super::error::Refusal;
use super::event::{Event, EventKind};
use super::streaming::Reserve;
use super::translate::Range;
use super::wire::{Kind, Repr};
use super::{Card, Endpoint, Operation};
use crate::parts;
use crate::parts::{Engine, Seen};
use nicety_fabric::Packet;
use nicety_kernel::{Permit, Signal, Sim};
use nicety_types::{MessageId, NodeId, Path, Payload, Recorder, Resource, Stage};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Messages of a node that are remembered, to detect duplicates.
const REMEMBERED: usize = 64;

/// Where a packet's slot is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Link,
    /// The card itself.
    Here,
}

/// A packet that waits for an engine.
struct Arrived {
    header: Repr,
    payload: Payload,
    path: Path,
    from: From,
}

/// A message being received.
pub(super) struct Incoming {
    pub(super) header: Repr,
    /// Where it goes.
    pub(super) address: u64,
    /// The process whose memory that is.
    process: u32,
    pub(super) streaming: bool,
    /// Bytes that have come, in order.
    pub(super) come: Cell<u64>,
    /// Bytes that have been handed to the bus.
    written: Cell<u64>,
    /// Whether it was refused, or given up.
    pub(super) refused: Cell<bool>,
    /// Whether all of it has been handed to the bus.
    done: Cell<bool>,
    path: RefCell<Path>,
}

impl Incoming {
    /// The packet of the message that begins after so many bytes, with as much payload as `like`.
    fn part(&self, offset: u64, like: &Repr) -> Repr {
        let first = self.header;
        let address = if first.address == 0 { 0 } else { first.address.wrapping_add(offset) };
        Repr { payload: like.payload, offset: offset as u32, address, ..first }
    }

    /// Whether a packet is the next one.
    fn continues(&self, header: &Repr) -> bool {
        self.come.get() > 0 && *header == self.part(self.come.get(), header)
    }

    /// Whether a packet is one after the next.
    pub(super) fn skips_to(&self, header: &Repr) -> bool {
        u64::from(header.offset) > self.come.get() && *header == self.part(header.offset.into(), header)
    }
}

/// A get that waits for its reply.
pub(super) struct Getting {
    pub(super) peer: Endpoint,
    pub(super) process: u32,
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Whether its reply has begun to come.
    pub(super) begun: bool,
}

impl Getting {
    /// Whether this may be the first packet of its reply.
    pub(super) fn awaits(&self, header: &Repr) -> bool {
        !self.begun && self.peer == header.from && self.bytes == u64::from(header.bytes)
    }
}

/// The receive path.
pub(super) struct Receive {
    pub(super) engine: Engine,
    arrived: RefCell<VecDeque<Arrived>>,
    come: Signal,
    pub(super) open: RefCell<BTreeMap<MessageId, Rc<Incoming>>>,
    /// Puts and sends whose events have not been written, by node, in the order in which they have come.
    order: RefCell<BTreeMap<NodeId, VecDeque<Rc<Incoming>>>>,
    /// Numbers of puts and of gets by node: gets do not wait for engines, and pass puts.
    seen: RefCell<BTreeMap<(NodeId, Kind), Seen<REMEMBERED>>>,
    /// By the number of the get.
    pub(super) gets: RefCell<BTreeMap<u64, Getting>>,
    /// The first message that was refused.
    pub(super) first_refused: RefCell<Option<(Repr, Refusal)>>,
    /// Unused streaming buffers by process: addresses and lengths.
    pub(super) streaming: RefCell<BTreeMap<u32, VecDeque<(u64, u64)>>>,
    /// Further streaming buffers by process, made when they are used.
    pub(super) reserves: RefCell<BTreeMap<u32, Reserve>>,
    /// Whether packets are dropped when they have come over the link.
    pub(super) flushed: Cell<bool>,
}

impl Receive {
    pub(super) fn new(sim: &Sim, engines: usize, recorder: &Recorder) -> Receive {
        Receive {
            engine: Engine::side_by_side(sim, engines, recorder),
            arrived: RefCell::default(),
            come: Signal::new(sim),
            open: RefCell::default(),
            order: RefCell::default(),
            seen: RefCell::default(),
            gets: RefCell::default(),
            first_refused: RefCell::default(),
            streaming: RefCell::default(),
            reserves: RefCell::default(),
            flushed: Cell::new(false),
        }
    }
}

impl Card {
    /// Takes packets from the link.
    pub(super) async fn listen(self: Rc<Card>) {
        loop {
            self.refusals_left().await;
            let packet = self.port.receive().await;
            if packet.is_control() {
                let Packet { header, payload, path, .. } = packet.open();
                match Repr::parse(header.as_slice(), &payload)
                    .filter(|header| self.is_for_us(header, From::Link))
                {
                    Some(header) if header.kind == Kind::Refusal => self.was_refused(&header, path),
                    _ => self.count(|counted| counted.unusable += 1),
                }
            } else {
                self.came(packet.open(), From::Link);
            }
        }
    }

    /// Takes packets of this card to itself.
    pub(super) async fn listen_here(self: Rc<Card>) {
        loop {
            self.refusals_left().await;
            let packet = self.loopback.receive().await;
            self.came(packet.open(), From::Here);
        }
    }

    fn came(self: &Rc<Card>, packet: Packet, from: From) {
        let Packet { header, payload, path, .. } = packet;
        let parsed = Repr::parse(header.as_slice(), &payload).filter(|header| self.may_be(header, from));
        let Some(header) = parsed else {
            self.count(|counted| counted.unusable += 1);
            return self.free_slot(from);
        };
        self.recorder.packet_arrived(header.message(), header.offset.into(), self.sim.now());
        self.count(|counted| counted.packets_received += 1);
        if self.receive.flushed.get() {
            self.count(|counted| counted.flushed += 1);
            return self.free_slot(from);
        }
        if header.kind == Kind::Get {
            if self.note(&header) {
                self.asked(header, path);
            } else {
                self.count(|counted| counted.unusable += 1);
            }
            return self.free_slot(from);
        }
        self.receive.arrived.borrow_mut().push_back(Arrived { header, payload, path, from });
        self.receive.come.notify_one();
    }

    /// Whether a packet is for this card, and from another one if it came by the link.
    fn is_for_us(&self, header: &Repr, from: From) -> bool {
        header.to.node == self.node
            && header.from.node.0 < self.nodes
            && (header.from.node == self.node) == (from == From::Here)
    }

    /// Whether a header may be that of a packet of a message for this card.
    fn may_be(&self, header: &Repr, from: From) -> bool {
        let (payload, bytes) = (u64::from(header.payload), u64::from(header.bytes));
        let of_message = match header.kind {
            Kind::Put | Kind::Reply => {
                let end = u64::from(header.offset) + payload;
                // Only an empty message has an empty packet.
                payload <= self.spec.packet && end <= bytes && (payload > 0 || bytes == 0)
            }
            Kind::Get => payload == 0 && header.offset == 0,
            Kind::Refusal => false,
        };
        of_message && self.is_for_us(header, from)
    }

    /// Frees a packet's slot.
    fn free_slot(&self, from: From) {
        match from {
            From::Link => self.port.free_slot(),
            From::Here => self.loopback.free_slot(),
        }
    }

    /// Remembers a put or get. Returns whether it is new.
    pub(super) fn note(&self, header: &Repr) -> bool {
        let of = (header.from.node, header.kind);
        self.receive.seen.borrow_mut().entry(of).or_default().note(header.number)
    }

    /// A get has come.
    fn asked(self: &Rc<Card>, request: Repr, path: Path) {
        self.recorder.message_matched(request.message(), self.sim.now(), "get");
        self.count(|counted| counted.gets_served += 1);
        if !self.ask(request, path.clone()) {
            self.refuse(&request, (request.address, false), Refusal::Busy, &path);
        }
    }

    /// Gives packets to the engines, in the order in which they have come.
    pub(super) async fn serve_receive(self: Rc<Card>) {
        let Receive { engine, arrived, come, .. } = &self.receive;
        loop {
            come.wait_until(|| !arrived.borrow().is_empty()).await;
            let Some(Arrived { header, payload, mut path, from }) = arrived.borrow_mut().pop_front() else {
                continue;
            };
            let Some(incoming) = self.belongs(&header, &path) else {
                self.free_slot(from);
                continue;
            };
            let (message, offset) = (header.message(), u64::from(header.offset));
            self.recorder.packet_matched(message, offset, self.sim.now());
            if header.payload == 0 || incoming.refused.get() {
                self.free_slot(from);
                self.written(&incoming, header.payload.into(), &path);
                continue;
            }
            let turn = engine.channel(message, &mut path).await;
            path.advance(parts::stages::DMA_QUEUED, self.sim.now());
            self.sim.spawn(self.clone().write(incoming, Arrived { header, payload, path, from }, turn));
        }
    }

    /// The message that a packet is the next part of; none if it is part of none, which is counted or reported.
    fn belongs(self: &Rc<Card>, header: &Repr, path: &Path) -> Option<Rc<Incoming>> {
        let id = header.message();
        let known = self.receive.open.borrow().get(&id).cloned();
        let found = match &known {
            Some(incoming) => incoming.continues(header).then(|| incoming.clone()),
            None => self.begin(header, path),
        };
        let Some(incoming) = found else {
            if !self.tell_lost(known.as_deref(), header, path) {
                let late = header.kind == Kind::Reply && header.data < self.messages.get();
                self.count(|counted| *if late { &mut counted.late } else { &mut counted.unusable } += 1);
            }
            return None;
        };
        incoming.come.set(incoming.come.get() + u64::from(header.payload));
        if incoming.come.get() == u64::from(incoming.header.bytes) {
            self.receive.open.borrow_mut().remove(&id);
        }
        Some(incoming)
    }

    /// The first packet of a message: decides where it goes.
    fn begin(self: &Rc<Card>, header: &Repr, path: &Path) -> Option<Rc<Incoming>> {
        let bytes = u64::from(header.bytes);
        if header.offset > 0 || header.kind == Kind::Put && !self.note(header) {
            return None;
        }
        let (mut address, mut process, mut refused) = (header.address, header.to.process, None);
        let streaming = header.kind == Kind::Put && header.address == 0 && bytes > 0;
        if header.kind == Kind::Reply {
            let mut gets = self.receive.gets.borrow_mut();
            let get = gets.get_mut(&header.data).filter(|get| get.awaits(header))?;
            get.begun = true;
            (address, process) = (get.address, get.process);
        } else if bytes == 0 && !self.events.has_queue(process) {
            refused = Some(Refusal::NoProcess);
        } else if streaming {
            match self.streaming_buffer(header.to.process, bytes) {
                Ok(buffer) => address = buffer,
                Err(why) => refused = Some(why),
            }
        }
        let incoming = Rc::new(Incoming {
            header: *header,
            address,
            process,
            streaming,
            come: Cell::new(0),
            written: Cell::new(0),
            refused: Cell::new(false),
            done: Cell::new(false),
            path: RefCell::new(path.clone()),
        });
        let message = header.message();
        self.give_up(header, path);
        self.receive.open.borrow_mut().insert(message, incoming.clone());
        if header.kind == Kind::Put {
            let mut order = self.receive.order.borrow_mut();
            order.entry(header.from.node).or_default().push_back(incoming.clone());
        }
        let outcome = match header.kind {
            Kind::Reply => "reply",
            _ if streaming => "streaming buffer",
            _ => "put",
        };
        self.recorder.message_matched(message, self.sim.now(), outcome);
        if let Some(why) = refused {
            incoming.refused.set(true);
            self.refuse(header, (0, false), why, path);
        }
        Some(incoming)
    }

    /// An engine writes a packet to memory.
    async fn write(self: Rc<Card>, incoming: Rc<Incoming>, packet: Arrived, engine: Permit) {
        let Arrived { header, payload, mut path, from } = packet;
        let (message, offset, bytes) =
            (header.message(), u64::from(header.offset), u64::from(header.payload));
        let physical = header.physical && header.kind == Kind::Put && !incoming.streaming;
        let address = incoming.address.wrapping_add(offset);
        let whole = (incoming.address, incoming.header.bytes.into());
        let range = Range { process: incoming.process, address, bytes, message: whole, physical };
        let region = match self.translate(range, &mut path).await {
            Ok(region) if !incoming.refused.get() => region,
            refused => {
                drop(engine);
                self.free_slot(from);
                if let Err(why) = refused
                    && !incoming.refused.replace(true)
                {
                    self.refuse_incoming(&incoming, why, &path);
                }
                return self.written(&incoming, bytes, &path);
            }
        };
        let set_up = (self.spec.dma.setup, parts::stages::DMA_SETUP);
        let moving = self.receive.engine.set_up(engine, set_up, message, &mut path).await;
        let start = self.sim.now();
        let handover = self.dma.deposit(message, address, bytes, payload, path).await;
        self.recorder.slice(Resource::DMA, start, self.sim.now(), Some(message), Stage::DEPOSIT.name());
        self.receive.engine.release(moving, message, &handover.path);
        self.free_slot(from);
        self.written(&incoming, bytes, &handover.path);
        self.dma.landed(&handover).await;
        self.recorder.packet_settled(message, offset, handover.landed);
        drop(region);
    }

    /// So many bytes of a message are on the bus, or dropped. After the last one its process is told.
    fn written(self: &Rc<Card>, incoming: &Incoming, bytes: u64, path: &Path) {
        incoming.path.borrow_mut().follow(path);
        incoming.written.set(incoming.written.get() + bytes);
        incoming.done.set(incoming.written.get() == u64::from(incoming.header.bytes));
        if incoming.header.kind == Kind::Put {
            return self.tell_in_order(incoming.header.from.node);
        }
        // A refused or forgotten get has no event.
        let number = incoming.header.data;
        let waits = incoming.done.get() && !incoming.refused.get();
        if waits && self.receive.gets.borrow_mut().remove(&number).is_some() {
            let path = incoming.path.borrow().clone();
            self.tell(incoming, EventKind::Fetched(Operation(number)), path);
        }
    }

    /// Writes the events of a node's puts and sends that wait for none before them.
    pub(super) fn tell_in_order(self: &Rc<Card>, from: NodeId) {
        let mut before: Option<Path> = None;
        while let Some(incoming) = self.next_settled(from) {
            let mut path = incoming.path.borrow().clone();
            if let Some(before) = &before {
                path.follow(before);
            }
            before = Some(path.clone());
            if !incoming.refused.get() {
                self.tell(&incoming, EventKind::Received, path);
            }
        }
    }

    /// The first put or send of a node whose event has not been written, if it is complete or refused.
    fn next_settled(&self, from: NodeId) -> Option<Rc<Incoming>> {
        let mut order = self.receive.order.borrow_mut();
        let queue = order.get_mut(&from)?;
        queue.front().filter(|incoming| incoming.done.get() || incoming.refused.get())?;
        queue.pop_front()
    }

    /// Writes the event of a message that is complete.
    fn tell(self: &Rc<Card>, incoming: &Incoming, kind: EventKind, path: Path) {
        let Incoming { header, address, process, streaming, .. } = *incoming;
        let (outcome, data) = match header.kind {
            Kind::Reply => ("reply", 0),
            _ => ("received", header.data),
        };
        let event = Event { kind, peer: header.from, address, bytes: header.bytes.into(), data, streaming };
        self.recorder.message_completed(header.message(), &path, outcome);
        self.complete(process, event, header.message(), path);
    }
}
