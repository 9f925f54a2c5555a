//! The receive path, from the packet buffer through matching to the decision on a packet's destination.
//!
//! A packet is in the packet buffer from the arrival of its last byte on. It leaves when it has been handed to the bus,
//! or when its handler has ended. The matching unit serves packets and host commands one after another. The result of a
//! match takes effect at the end of the match's service.

pub(super) mod contexts;
pub(super) mod intake;

use crate::Card;
use crate::incoming::{Disposition, IN_FLIGHT, Incoming, outcome};
use crate::receive::contexts::Contexts;
use crate::receive::intake::Unusable;
use crate::spec::SpinSpec;
use nicety_fabric::PacketBox;
use nicety_kernel::{Needed, Sim};
use nicety_nic_core::parts::transport::Wire;
use nicety_nic_processors::ready::Arrived;
use nicety_nic_processors::resources::MATCHING;
use nicety_nic_processors::stages;
use nicety_portals::{Arrival, Delivery, FailType, Header, HeaderKind, List, Reply};
use nicety_types::{Duration, MessageId, NodeId, Occupancy, Path, Recorder, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The state of the receive path.
pub(crate) struct Receive {
    port: Rc<Wire>,
    /// The matching unit.
    matching: RefCell<Occupancy>,
    unusable: Cell<Unusable>,
    contexts: Contexts,
    /// Number of operations in progress that need a reply.
    replies: Cell<u32>,
    /// Whether the card drops all received packets. A card that generates packets does.
    discards: Cell<bool>,
}

impl Receive {
    pub(crate) fn new(sim: &Sim, spec: &SpinSpec, port: Rc<Wire>, recorder: &Recorder) -> Receive {
        let mut matching = Occupancy::new(stages::MATCH, stages::MATCH_QUEUED);
        matching.record(recorder, MATCHING);
        Receive {
            port,
            matching: RefCell::new(matching),
            unusable: Cell::default(),
            contexts: Contexts::new(sim, spec.hpu.contexts, spec.link.buffer, spec.hpu.scheduling),
            replies: Cell::new(0),
            discards: Cell::new(false),
        }
    }

    /// Requests that the data that every packet uses is [kept near](Sim::keep_near).
    pub(crate) fn keep_near(&self, sim: &Sim) {
        sim.keep_near(&self.matching);
    }

    /// Returns the contexts of messages.
    pub(crate) const fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Returns the counters of unusable packets.
    pub(crate) const fn unusable(&self) -> Unusable {
        self.unusable.get()
    }

    /// Returns the time for which the matching unit was busy.
    pub(crate) fn matching_busy(&self) -> Duration {
        self.matching.borrow().busy()
    }

    /// Drops all further packets.
    pub(crate) fn discard_all(&self) {
        self.discards.set(true);
    }

    /// Frees the slot of a packet of the packet buffer.
    pub(crate) fn free_slot(&self, source: NodeId) {
        self.port.free_slot(source);
    }

    /// Frees a slot at a later time, without an event of the simulation. Returns false if this is impossible, and then
    /// does nothing.
    pub(crate) fn free_slot_at(&self, source: NodeId, at: Time) -> bool {
        self.port.free_slot_at(source, at)
    }

    /// Counts the end of an operation that needs a reply.
    pub(crate) fn reply_ended(&self) {
        self.replies.set(self.replies.get() - 1);
    }
}

impl Card {
    /// Starts every complete packet from the link on the receive path; never returns.
    pub(crate) async fn listen(self: Rc<Card>) {
        loop {
            let packet = self.receive.port.receive().await;
            match packet.is_control() {
                true => self.drop_control(),
                false => self.come(packet, false),
            }
        }
    }

    /// Starts every complete packet from the loopback path on the receive path; never returns.
    pub(crate) async fn listen_to_itself(self: Rc<Card>) {
        loop {
            let packet = self.receive.port.receive_own().await;
            self.come(packet, true);
        }
    }

    fn come(self: &Rc<Card>, packet: PacketBox, own: bool) {
        if self.receive.discards.get() {
            return self.free_slot_of(own);
        }
        let Some((mut packet, header)) = self.read(packet, own) else { return };
        self.processors().note_arrived(packet.message, packet.offset, packet.payload.len());
        // The card finds the operation of a reply or an acknowledgement by number, as it finds the message of a further
        // packet.
        let searches = header.is_some_and(|h| !matches!(h.kind, HeaderKind::Reply | HeaderKind::Ack));
        let service = if searches { self.spec.match_first } else { self.spec.match_further };
        let message = packet.message;
        let matched = self.match_turn(message, service, &mut packet.path);
        let bytes = Needed::of(&*packet);
        match header {
            Some(header) => {
                let needs = [bytes, Needed::NOTHING];
                self.sim.spawn_at(matched, needs, || self.clone().first_packet(header, packet));
            }
            None => {
                let needs = [bytes, self.incoming.borrow().needed(message)];
                self.sim.spawn_at(matched, needs, || self.clone().further_packet(packet));
            }
        }
    }

    /// Processes the first packet of a message, from the end of its match on.
    async fn first_packet(self: Rc<Card>, header: Header, mut packet: Arrived) {
        if header.kind == HeaderKind::Ack {
            return self.acknowledged(&header, &packet);
        }
        self.recorder.packet_matched(packet.message, packet.offset, self.sim.now());
        if self.place_of(packet.message).is_some() {
            return self.drop_stray(packet.message);
        }
        let room = match self.room_at_once(&header, packet.message) {
            Some(room) => room,
            // The future is boxed because it is rare, and would enlarge the task of every message.
            None => Box::pin(self.wait_for_context(&header, &mut packet)).await,
        };
        let place = self.admit(header, &packet, room);
        self.take_in(place, true, packet).await;
    }

    /// Processes a further packet of a message, from the end of its match on.
    async fn further_packet(self: Rc<Card>, mut packet: Arrived) {
        self.recorder.packet_matched(packet.message, packet.offset, self.sim.now());
        let place = match self.place_of(packet.message) {
            Some(place) => place,
            // The future is boxed because it is rare, and would enlarge the task of every packet.
            None if self.awaits_context(packet.message) => {
                Box::pin(self.behind_its_header(&mut packet)).await
            }
            None => return self.drop_stray(packet.message),
        };
        self.take_in(place, false, packet).await;
    }

    /// Processes a packet of a matched message.
    async fn take_in(self: Rc<Card>, place: usize, is_header: bool, packet: Arrived) {
        let disposition = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            if !is_header && !incoming.awaits(packet.payload.len()) {
                drop(table);
                return self.drop_stray(packet.message);
            }
            incoming.received += packet.payload.len();
            incoming.unsettled += 1;
            incoming.disposition
        };
        if self.receive.contexts.shared_out() && self.sheds(place, is_header) {
            self.count_dropped(place, &packet);
            return self.settled(place, packet.offset, &packet.path);
        }
        match disposition {
            Disposition::Undecided if is_header => self.run_header(place, packet),
            Disposition::Undecided => self.incoming.borrow_mut().get(place).waiting.push_back(packet),
            decided => self.settle(place, packet, decided).await,
        }
    }

    /// Processes an acknowledgement. The card finds the acknowledged operation by number, as it finds the message of a
    /// further packet.
    fn acknowledged(self: &Rc<Card>, header: &Header, packet: &Arrived) {
        let (message, now) = (packet.message, self.sim.now());
        self.recorder.packet_matched(message, packet.offset, now);
        self.processors().note_settled(message, packet.offset, now);
        self.recorder.message_matched(message, now, IN_FLIGHT);
        self.receive.port.free_slot(message.source);
        let seen = self.with_effects_of(Some(message), packet.path.clone(), |interface, effects| {
            interface.arrive(header, effects);
        });
        self.recorder.message_completed(message, &seen, outcome(FailType::Ok));
    }

    /// Waits for the matching unit's next turn, and returns at the end of the service.
    pub(crate) async fn matched(&self, message: MessageId, service: Duration, path: &mut Path) {
        let end = self.match_turn(message, service, path);
        if end > self.sim.now() {
            self.sim.until(end).await;
        } else {
            // A service without time happens when the unit becomes free. Requests that waited for that time are served
            // first.
            self.sim.yield_now().await;
        }
    }

    /// Takes the matching unit's next turn. Advances `path` to the end of its service, and returns that time.
    fn match_turn(&self, message: MessageId, service: Duration, path: &mut Path) -> Time {
        let start = self.receive.matching.borrow_mut().claim(message, self.sim.now(), service, path);
        path.advance(stages::MATCH, start + service);
        start + service
    }

    /// Returns whether the card has room for a message that matches an entry with these handlers.
    fn accepts(&self, header: &Header, handlers: Option<u32>, context: bool) -> bool {
        (context || handlers.is_none())
            && (!header.kind.wants_reply() || self.receive.replies.get() < self.spec.replies)
    }

    /// Returns the index of a matched message.
    pub(crate) fn place_of(&self, message: MessageId) -> Option<usize> {
        self.incoming.borrow().place_of(message)
    }

    /// Counts a packet in its application's share of the packet buffer. If the share is used up, a further packet for
    /// handlers triggers flow control of its portal table entry, if the entry has flow control. This disables the
    /// entry, and the caller must drop the packet. Returns whether this happened.
    fn sheds(self: &Rc<Card>, place: usize, is_header: bool) -> bool {
        let (attachment, disposition, pt, path) = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            (incoming.attachment.clone(), incoming.disposition, incoming.header.pt, incoming.path.clone())
        };
        let Some(attachment) = attachment else { return false };
        let application = attachment.application();
        let taken = self.buffer_is_taken(application);
        application.slots.set(application.slots.get() + 1);
        if is_header || !taken || !matches!(disposition, Disposition::Process | Disposition::Undecided) {
            return false;
        }
        let (mut path, mut controlled) = (path, false);
        path.advance(stages::MATCH, self.sim.now());
        self.with_effects(path, |interface, effects| controlled = interface.pt_exhausted(pt, effects));
        if controlled {
            self.incoming.borrow_mut().flow_controlled(pt);
        }
        controlled
    }

    /// Matches a message's header. Returns the message's destination, or the operation to which the message replies.
    fn match_header(
        self: &Rc<Card>,
        header: &Header,
        packet: &Arrived,
        context: bool,
    ) -> (Option<Delivery>, Option<Reply>) {
        let (mut delivery, mut reply, mut dropped, mut flow_control) = (None, None, None, false);
        self.prepare_for(header);
        self.with_effects(packet.path.clone(), |interface, effects| {
            let before = interface.statistics().flow_control;
            match interface.arrive_if(header, |handlers| self.accepts(header, handlers, context), effects) {
                Arrival::Matched(matched) => delivery = Some(matched),
                Arrival::Reply(answer) => reply = Some(answer),
                Arrival::Dropped(reason) => dropped = Some(reason),
                Arrival::Acknowledged => {}
            }
            flow_control = interface.statistics().flow_control > before;
        });
        if flow_control {
            self.incoming.borrow_mut().flow_controlled(header.pt);
        }
        if let Some(reason) = dropped {
            self.message_dropped(header, reason);
        }
        if delivery.is_some_and(|delivery: Delivery| delivery.list == List::Overflow) {
            self.came_unexpected(header, packet.message);
        }
        (delivery, reply)
    }

    /// Matches a message's header, and adds it to the messages in progress.
    fn admit(self: &Rc<Card>, header: Header, packet: &Arrived, context: bool) -> usize {
        let (delivery, reply) = self.match_header(&header, packet, context);
        // A redelivered message is unchanged: handlers and events see its original header.
        let header = delivery.map_or(header, |delivery| delivery.header);
        if delivery.is_some() && header.kind.wants_reply() {
            self.receive.replies.set(self.receive.replies.get() + 1);
        }
        let attachment = delivery.and_then(|delivery| delivery.handlers).map(|cookie| {
            self.processors().attachments.get(cookie).expect("an entry's handlers stay attached")
        });
        let disposition = match (&delivery, &attachment) {
            (None, _) if reply.is_some() => Disposition::Deposit,
            (None, _) => Disposition::Drop,
            (Some(_), None) => Disposition::Deposit,
            (Some(_), Some(a)) if a.application().exhausted() => Disposition::Drop,
            (Some(_), Some(a)) if a.program.handlers.header.is_some() => Disposition::Undecided,
            (Some(_), Some(a)) => Disposition::by_default(a),
        };
        let refusing = attachment.as_ref().map(|a| a.application()).filter(|a| a.exhausted());
        let fail = if refusing.is_some() { FailType::HandlerBudget } else { FailType::Ok };
        if let Some(application) = refusing {
            application.refuse();
        }
        let queue =
            attachment.as_ref().map_or(0, |attachment| self.receive.contexts.take(attachment.application()));
        let outcome = if delivery.is_some() || reply.is_some() { IN_FLIGHT } else { "dropped" };
        self.recorder.message_matched(packet.message, self.sim.now(), outcome);
        self.after_match();
        let incoming = Incoming::new(packet.message, header, packet.path.clone());
        let incoming = Incoming { delivery, reply, attachment, queue, disposition, fail, ..incoming };
        self.incoming.borrow_mut().insert(incoming)
    }
}
