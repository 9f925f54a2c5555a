//! Refusals: why a message has no memory to go to, told at both ends.

use super::error::Refusal;
use super::event::{Event, EventKind};
use super::receive::{Getting, Incoming};
use super::transmit::{REFUSALS, Transmit};
use super::wire::{Kind, Repr};
use super::{Card, Operation};
use nicety_fabric::{Channel as Flow, Label, Packet};
use nicety_types::{Flight, MessageId, Path, Payload, Stage};
use std::rc::Rc;

impl Card {
    /// Refuses a message of which a packet has no memory to go to.
    pub(super) fn refuse_incoming(self: &Rc<Card>, incoming: &Incoming, why: Refusal, path: &Path) {
        match incoming.header.kind {
            Kind::Reply => {
                // Its own buffer has been deregistered, or a packet was lost: the end that is told is this one.
                self.lose_get(incoming.header.data, incoming.header.message(), why, path);
            }
            _ => self.refuse(&incoming.header, (incoming.address, incoming.streaming), why, path),
        }
    }

    /// Refuses a put, send or get, and reports it at both ends: here with the address of its bytes, and whether that is a
    /// streaming buffer's.
    pub(super) fn refuse(
        self: &Rc<Card>,
        header: &Repr,
        (address, streaming): (u64, bool),
        why: Refusal,
        path: &Path,
    ) {
        self.count(|counted| counted.refused += 1);
        self.receive.first_refused.borrow_mut().get_or_insert((*header, why));
        let (bytes, data) = (header.bytes.into(), if header.kind == Kind::Put { header.data } else { 0 });
        let event =
            Event { kind: EventKind::Rejected(why), peer: header.from, address, bytes, data, streaming };
        self.complete(header.to.process, event, header.message(), path.clone());
        self.send_refusal(header.refusal(why), path.clone());
    }

    /// Forgets a get that has failed; what still comes of its reply is dropped.
    pub(super) fn forget_get(&self, number: u64) -> Option<Getting> {
        let get = self.receive.gets.borrow_mut().remove(&number)?;
        let mut open = self.receive.open.borrow_mut();
        let of_get =
            |incoming: &Incoming| incoming.header.kind == Kind::Reply && incoming.header.data == number;
        open.values().filter(|incoming| of_get(incoming)).for_each(|incoming| incoming.refused.set(true));
        open.retain(|_, incoming| !of_get(incoming));
        Some(get)
    }

    /// Has a refusal sent, on the control channel: it waits for no packet.
    pub(super) fn send_refusal(&self, refusal: Repr, path: Path) {
        self.transmit.refusals.borrow_mut().push_back((refusal, path));
        self.transmit.refused.notify_one();
    }

    /// Sends refusals.
    pub(super) async fn serve_refusals(self: Rc<Card>) {
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

    /// Waits while too many refusals wait for the link.
    pub(super) async fn refusals_left(&self) {
        let Transmit { refusals, eased, .. } = &self.transmit;
        eased.wait_until(|| refusals.borrow().len() < REFUSALS).await;
    }

    /// A card has refused a message of this node.
    pub(super) fn was_refused(self: &Rc<Card>, header: &Repr, path: Path) {
        let other = |get: &Getting| get.peer != header.from || get.process != header.to.process;
        let of_another = self.receive.gets.borrow().get(&header.number).is_some_and(other);
        let known = header.number < self.messages.get() && !of_another;
        let Some(why) = Refusal::of_code(header.data).filter(|_| known) else {
            return self.count(|counted| counted.unusable += 1);
        };
        self.count(|counted| counted.refused_elsewhere += 1);
        self.forget_get(header.number);
        let kind = EventKind::Refused(Operation(header.number), why);
        let event = Event { kind, peer: header.from, address: 0, bytes: 0, data: 0, streaming: false };
        let message = MessageId { source: self.node, sequence: header.number };
        self.recorder.message_failed(message, why.name());
        self.complete(header.to.process, event, message, path);
    }
}
