//! Refusals of messages without destination memory. The card reports each refusal at both ends.

use crate::error::Refusal;
use crate::event::{Event, EventKind};
use crate::receive::incoming::{Getting, Incoming};
use crate::spec::Writer;
use crate::transmit::{REFUSALS, Transmit};
use crate::wire::{Kind, Repr};
use crate::{Card, Operation};
use nicety_fabric::{Channel as Flow, Label, Packet};
use nicety_nic_core::parts;
use nicety_types::{Flight, MessageId, Path, Payload, Stage};
use std::rc::Rc;

impl Card {
    /// Refuses a message in reception: a packet of it has no destination memory, or was lost.
    pub(crate) fn refuse_incoming(self: &Rc<Card>, incoming: &Incoming, why: Refusal, path: &Path) {
        match incoming.header.kind {
            Kind::Reply => {
                // The destination of a reply has been deregistered, or a packet was lost. Only the process at this end
                // is notified.
                self.lose_get(incoming.header.data, incoming.header.message(), why, path);
            }
            _ => self.refuse(&incoming.header, (incoming.address, incoming.streaming), why, path),
        }
    }

    /// Refuses a put, send or get, and reports the refusal at both ends. `address` and `streaming` are fields of the
    /// event at this end.
    pub(crate) fn refuse(
        self: &Rc<Card>,
        header: &Repr,
        (address, streaming): (u64, bool),
        why: Refusal,
        path: &Path,
    ) {
        self.count(|counted| counted.refused += 1);
        self.recorder.message_failed(header.message(), why.name());
        self.receive.first_refused.borrow_mut().get_or_insert((*header, why));
        let (bytes, data) = (header.bytes.into(), header.data);
        let (kind, peer, refused_by) = (EventKind::Rejected(why), header.from, Some(self.node));
        let event = Event { kind, peer, address, bytes, data, streaming, refused_by };
        self.complete_apart(header.to.process, event, header.message(), path.clone());
        self.send_refusal(header.refusal(why), path.clone());
    }

    /// Removes a failed get. Further packets of its reply are dropped.
    pub(crate) fn forget_get(&self, number: u64) -> Option<Getting> {
        let get = self.receive.gets.borrow_mut().remove(&number)?;
        let mut open = self.receive.open.borrow_mut();
        let of_get =
            |incoming: &Incoming| incoming.header.kind == Kind::Reply && incoming.header.data == number;
        open.values().filter(|incoming| of_get(incoming)).for_each(|incoming| incoming.refused.set(true));
        open.retain(|_, incoming| !of_get(incoming));
        Some(get)
    }

    /// Queues a refusal for the control channel. There the refusal does not wait for packets.
    pub(crate) fn send_refusal(&self, refusal: Repr, path: Path) {
        self.transmit.refusals.borrow_mut().push_back((refusal, path));
        self.transmit.refused.notify_one();
    }

    /// Sends queued refusals; never returns.
    pub(crate) async fn serve_refusals(self: Rc<Card>) {
        let Transmit { refusals, refused, eased, .. } = &self.transmit;
        loop {
            refused.wait_until(|| !refusals.borrow().is_empty()).await;
            let Some((header, mut path)) = refusals.borrow_mut().pop_front() else { continue };
            path.advance(Stage::SEND_QUEUED, self.sim.now());
            let destination = header.to.node;
            if destination == self.node {
                self.was_refused(&header, path);
                eased.notify_all();
                continue;
            }
            let label = Label { destination, message: self.next_message(), offset: 0 };
            let mut payload = Payload::empty();
            let header = header.emit(&mut payload);
            let turn = self.port.control_turn(Flight::resting(path.clone())).await;
            let handed =
                self.port.launch(Packet { label, channel: Flow::Control, header, payload, path }, turn);
            self.sim.until(handed.at()).await;
            eased.notify_all();
        }
    }

    /// Waits until fewer than [`REFUSALS`] refusals wait for the link.
    pub(crate) async fn refusals_left(&self) {
        let Transmit { refusals, eased, .. } = &self.transmit;
        eased.wait_until(|| refusals.borrow().len() < REFUSALS).await;
    }

    /// Returns the local address and the data of the operation that a refusal names. Returns `None` if there is no such
    /// operation.
    fn operation_of(&self, refusal: &Repr) -> Option<(u64, u64)> {
        let Some(get) = self.receive.gets.borrow().get(&refusal.number).copied() else {
            return self.ring.known.refused(refusal);
        };
        let its = (get.peer, get.process, get.bytes)
            == (refusal.from, refusal.to.process, u64::from(refusal.bytes));
        its.then_some((get.address, 0))
    }

    /// Handles the refusal of a message of this node.
    pub(crate) fn was_refused(self: &Rc<Card>, header: &Repr, path: Path) {
        let why = Refusal::of_code(header.data);
        let Some((why, (address, data))) = why.and_then(|why| Some((why, self.operation_of(header)?))) else {
            return self.count(|counted| counted.unusable += 1);
        };
        self.count(|counted| counted.refused_by_peer += 1);
        self.forget_get(header.number);
        let (kind, bytes) = (EventKind::Refused(Operation(header.number), why), header.bytes.into());
        let (peer, refused_by) = (header.from, Some(header.from.node));
        let event = Event { kind, peer, address, bytes, data, streaming: false, refused_by };
        let message = MessageId { source: self.node, sequence: header.number };
        self.complete_apart(header.to.process, event, message, path);
    }

    /// Writes an event that follows no bytes moved by an engine. If engines write events, sets up a receive engine for
    /// the event.
    pub(crate) fn complete_apart(
        self: &Rc<Card>,
        process: u32,
        event: Event,
        message: MessageId,
        mut path: Path,
    ) {
        if self.spec.events.writer == Writer::Bus || !self.events.has_queue(process) {
            return self.complete(process, event, message, path);
        }
        let card = self.clone();
        self.sim.spawn(async move {
            let engine = &card.receive.engine;
            let channel = engine.channel(message, &mut path).await;
            path.advance(parts::stages::DMA_QUEUED, card.sim.now());
            let set_up = (card.spec.dma.setup, parts::stages::DMA_SETUP);
            let moving = engine.set_up(channel, set_up, message, &mut path).await;
            engine.release(moving, message, &path);
            card.complete(process, event, message, path);
        });
    }
}
