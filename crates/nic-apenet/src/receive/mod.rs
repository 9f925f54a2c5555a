//! The receive path: packets from the link, translation of addresses, writes to host memory, events.
//!
//! An engine takes a packet, waits for the translation of the packet's address, and writes the packet's bytes. Several
//! engines may write packets of a message at a time. The event of the message follows its last packet.
//!
//! | file | contents |
//! |---|---|
//! | `streaming.rs` | streaming buffers |
//! | `incoming.rs` | messages in reception, and their events |
//! | `refusals.rs` | refusals, reported at both ends |
//! | `lost.rs` | messages with a lost packet |

mod incoming;
mod lost;
mod refusals;
mod streaming;

pub(crate) use incoming::{Getting, Incoming};
pub(crate) use streaming::Unused;

use crate::Card;
use crate::error::Refusal;
use crate::spec::{EventsSpec, Per, Writer};
use crate::translation::{Hold, Range};
use crate::wire::{Kind, Repr};
use nicety_fabric::Packet;
use nicety_kernel::{Permit, Signal, Sim};
use nicety_nic_core::parts;
use nicety_nic_core::parts::{Engine, Window};
use nicety_types::{Handover, MessageId, NodeId, Path, Payload, Recorder, Resource, Stage};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use streaming::Reserve;

/// Maximum number of messages of a node that may overtake an earlier message. If more messages overtake it, the earlier
/// message is dropped as a duplicate.
const REMEMBERED: u64 = 4096;

/// The origin of a packet, which also has the packet's slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    Link,
    /// The card itself.
    Here,
}

/// A packet waiting for an engine.
struct Arrived {
    header: Repr,
    payload: Payload,
    path: Path,
    from: From,
}

/// The receive path.
pub(crate) struct Receive {
    pub(crate) engine: Engine,
    arrived: RefCell<VecDeque<Arrived>>,
    come: Signal,
    pub(crate) open: RefCell<BTreeMap<MessageId, Rc<Incoming>>>,
    /// Maps a node to its puts and sends without a written event, in the order of arrival.
    order: RefCell<BTreeMap<NodeId, VecDeque<Rc<Incoming>>>>,
    /// Maps a node and a kind to the seen sequence numbers. Puts and gets are separate, because gets overtake puts that
    /// wait for engines.
    seen: RefCell<BTreeMap<(NodeId, Kind), Window<REMEMBERED>>>,
    /// Maps the number of a get of this node to the get, until the whole reply has arrived.
    pub(crate) gets: RefCell<BTreeMap<u64, Getting>>,
    /// The first refused message.
    pub(crate) first_refused: RefCell<Option<(Repr, Refusal)>>,
    /// Maps a process to its unused streaming buffers.
    pub(crate) streaming: RefCell<BTreeMap<u32, Unused>>,
    /// Maps a process to its reserve of streaming buffers, which are allocated at their first use.
    pub(crate) reserves: RefCell<BTreeMap<u32, Reserve>>,
    /// Whether packets from the link are dropped on arrival.
    pub(crate) flushed: Cell<bool>,
}

impl Receive {
    pub(crate) fn new(sim: &Sim, engines: usize, recorder: &Recorder) -> Receive {
        Receive {
            engine: Engine::new(sim, engines, recorder),
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
    pub(crate) async fn listen(self: Rc<Card>) {
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
                self.receive_packet(packet.open(), From::Link);
            }
        }
    }

    /// Takes packets from this card to itself.
    pub(crate) async fn listen_here(self: Rc<Card>) {
        loop {
            self.refusals_left().await;
            let packet = self.loopback.receive().await;
            self.receive_packet(packet.open(), From::Here);
        }
    }

    fn receive_packet(self: &Rc<Card>, packet: Packet, from: From) {
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

    /// Whether a packet is for this card. The sender of a packet from the link must be another node. The sender of a
    /// loopback packet must be this node.
    fn is_for_us(&self, header: &Repr, from: From) -> bool {
        header.to.node == self.node
            && header.from.node.0 < self.nodes
            && (header.from.node == self.node) == (from == From::Here)
    }

    /// Whether a header is valid for a packet of a message to this card.
    fn may_be(&self, header: &Repr, from: From) -> bool {
        let (payload, bytes) = (u64::from(header.payload), u64::from(header.bytes));
        let of_message = match header.kind {
            Kind::Put | Kind::Reply => {
                let end = u64::from(header.offset) + payload;
                // Only an empty message has a packet without payload.
                payload <= self.spec.packet && end <= bytes && (payload > 0 || bytes == 0)
            }
            Kind::Get => payload == 0 && header.offset == 0,
            Kind::Refusal => false,
        };
        of_message && self.is_for_us(header, from)
    }

    /// Frees the slot of a packet.
    fn free_slot(&self, from: From) {
        match from {
            From::Link => self.port.free_slot(),
            From::Here => self.loopback.free_slot(),
        }
    }

    /// Remembers a put or get. Returns whether it is new.
    pub(crate) fn note(&self, header: &Repr) -> bool {
        let of = (header.from.node, header.kind);
        self.receive.seen.borrow_mut().entry(of).or_default().note(header.sequence)
    }

    /// Handles an arrived get.
    fn asked(self: &Rc<Card>, request: Repr, path: Path) {
        self.recorder.message_matched(request.message(), self.sim.now(), "get");
        self.count(|counted| counted.gets_served += 1);
        if !self.ask(request, path.clone()) {
            self.refuse(&request, (request.address, false), Refusal::Busy, &path);
        }
    }

    /// Gives packets to the engines, in the order of arrival.
    pub(crate) async fn serve_receive(self: Rc<Card>) {
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
            let unwritten = header.payload == 0 && self.spec.events.writer == Writer::Bus;
            if unwritten || incoming.refused.get() {
                self.free_slot(from);
                self.written(&incoming, header.payload.into(), &path);
                continue;
            }
            let turn = engine.channel(message, &mut path).await;
            path.advance(parts::stages::DMA_QUEUED, self.sim.now());
            if header.payload == 0 {
                self.free_slot(from);
                self.sim.spawn(self.clone().finish_empty(incoming, turn, path));
                continue;
            }
            self.sim.spawn(self.clone().write(incoming, Arrived { header, payload, path, from }, turn));
        }
    }

    /// Translates the address of a packet, and writes the packet to memory through an engine.
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
        let mut moving = self.receive.engine.set_up(engine, set_up, message, &mut path).await;
        let start = self.sim.now();
        let handover = self.dma.deposit(message, address, bytes, payload, path).await;
        self.recorder.slice(Resource::DMA, start, self.sim.now(), Some(message), Stage::DEPOSIT.name());
        self.free_slot(from);
        let mut path = handover.path.clone();
        self.sim.spawn(self.clone().settle(message, offset, handover, region));
        let last = incoming.hand_over(bytes);
        let EventsSpec { received, writer, .. } = self.spec.events;
        if writer != Writer::Bus && (last || received == Per::Packet) {
            moving = self.receive.engine.set_up_again(moving, set_up, message, &mut path).await;
        }
        self.receive.engine.release(moving, message, &path);
        self.written(&incoming, bytes, &path);
    }

    /// Waits until a packet's bytes are in memory. Holds the packet's region until then.
    async fn settle(self: Rc<Card>, message: MessageId, offset: u64, handover: Handover, region: Hold) {
        self.dma.landed(&handover).await;
        self.recorder.packet_settled(message, offset, handover.landed);
        drop(region);
    }

    /// Sets an engine up for the completion of a message without bytes.
    async fn finish_empty(self: Rc<Card>, incoming: Rc<Incoming>, engine: Permit, mut path: Path) {
        let message = incoming.header.message();
        let set_up = (self.spec.dma.setup, parts::stages::DMA_SETUP);
        let moving = self.receive.engine.set_up(engine, set_up, message, &mut path).await;
        self.receive.engine.release(moving, message, &path);
        self.written(&incoming, 0, &path);
    }
}
