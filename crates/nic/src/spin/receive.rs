//! The receive path: matching, deposit, and the messages in progress.
//!
//! A packet stays in the packet buffer from its last byte until it has been handed to the bus or its handler has
//! ended. Matching serves packets and host commands one after another; the result of a match takes effect at the end
//! of its service.

use super::Card;
use super::attachments::Attachment;
use super::hpus::{Kind, Run};
use nicety_fabric::{Packet, Parcel};
use nicety_portals::{Arrival, Delivery, FailType, Header, HeaderKind, List, OperationHandle, Reply};
use nicety_types::{Duration, MessageId, NodeId, Path, Payload, Resource, Stage, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::rc::Rc;

/// The outcome of a message still in progress.
const UNDER_WAY: &str = "under way";

/// The outcome of a message in tables.
pub(super) fn outcome(fail: FailType) -> &'static str {
    match fail {
        FailType::Ok => "ok",
        FailType::HandlerError => "handler error",
        FailType::HandlerBudget => "handler budget",
        other => other.name(),
    }
}

/// The fate of a message's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Unknown until the header handler has ended; packets wait.
    Undecided,
    /// To host memory; for a get or an atomic, the card carries it out.
    Deposit,
    /// To payload handlers, which exist.
    Process,
    /// Dropped.
    Drop,
}

/// A message that has begun to arrive.
pub(super) struct Incoming {
    pub(super) message: MessageId,
    pub(super) header: Header,
    /// Its destination; none if nothing matched.
    pub(super) delivery: Option<Delivery>,
    /// The destination of a reply.
    pub(super) reply: Option<Reply>,
    pub(super) attachment: Option<Rc<Attachment>>,
    pub(super) fate: Fate,
    /// Packets that came before the header handler ended, by offset in the message.
    waiting: VecDeque<Parcel>,
    /// Bytes received.
    received: u64,
    /// Packets received and not settled (deposited, handled or dropped); a reply not yet sent; transfers that
    /// handlers have left in flight.
    pub(super) unsettled: u32,
    /// Packets whose bytes such transfers have still to read or write.
    lent: Vec<Lent>,
    pub(super) dropped_bytes: u64,
    /// Whether flow control has disabled its portal table entry while it was in progress.
    pub(super) flow_control: bool,
    pub(super) fail: FailType,
    /// Whether a handler has asked to leave the match entry linked.
    pub(super) pending: bool,
    /// Received pieces of an atomic operation in several packets, with their offsets.
    pub(super) pieces: Vec<(u64, Payload)>,
    /// The path of the message's latest step.
    pub(super) path: Path,
    completion_started: bool,
    /// Whether the message is done and waits only for those before it.
    done: bool,
    /// The next message to complete after it, if one has matched.
    behind: Option<usize>,
}

/// A packet in use by transfers of ended handlers.
struct Lent {
    /// Its offset in the message.
    offset: u64,
    transfers: u32,
    /// Whether it is settled, so that only the transfers keep its slot.
    settled: bool,
}

impl Incoming {
    /// Counts another transfer on the packet at this offset.
    pub(super) fn lend(&mut self, offset: u64) {
        match self.lent.iter_mut().find(|lent| lent.offset == offset) {
            Some(lent) => lent.transfers += 1,
            None => self.lent.push(Lent { offset, transfers: 1, settled: false }),
        }
    }

    /// Settles a packet; returns whether its slot is free, because no transfer uses it.
    fn settles(&mut self, offset: u64) -> bool {
        let lent = self.lent.iter_mut().find(|lent| lent.offset == offset);
        lent.map(|lent| lent.settled = true).is_none()
    }

    /// A transfer is done with the packet at this offset; returns whether its slot is free, because the packet is
    /// settled and this was the last transfer.
    fn returns(&mut self, offset: u64) -> bool {
        let index = self.lent.iter().position(|lent| lent.offset == offset).expect("it was lent");
        self.lent[index].transfers -= 1;
        self.lent[index].transfers == 0 && self.lent.swap_remove(index).settled
    }

    /// The host memory for its bytes, as address and length; none if nothing matched.
    pub(super) fn memory(&self) -> Option<(u64, u64)> {
        let delivered = self.delivery.map(|delivery| (delivery.start, delivery.mlength));
        delivered.or(self.reply.map(|reply| (reply.start, reply.mlength)))
    }

    /// The part of `len` bytes of payload from `offset` on that is left after truncation.
    pub(super) fn kept(&self, offset: u64, len: u64) -> u64 {
        let left = self.memory().map_or(0, |(_, mlength)| mlength);
        // The payload of a swap may begin with an operand.
        let operand = self.header.payload_bytes().saturating_sub(self.header.length);
        let left = if left == 0 { 0 } else { left + operand };
        len.min(left.saturating_sub(offset))
    }

    /// Whether it still lacks so many bytes, so that a further packet may be its own.
    fn awaits(&self, bytes: u64) -> bool {
        let left = self.header.payload_bytes().saturating_sub(self.received);
        bytes > 0 && bytes <= left
    }

    /// Its reply has been sent.
    pub(super) fn replied(&mut self) {
        if let Some(delivery) = &mut self.delivery {
            delivery.replied = true;
        }
    }
}

/// The messages arriving at a card. Entries are reused, with the capacity of their queues.
#[derive(Default)]
pub(super) struct IncomingTable {
    places: Vec<Incoming>,
    free: Vec<usize>,
    by_message: FxHashMap<MessageId, usize>,
    /// Messages of one initiator at one portal table entry complete in matching order: the first and the last of
    /// those in progress, if there are any.
    order: FxHashMap<(NodeId, u32), (usize, usize)>,
}

impl IncomingTable {
    pub(super) fn get(&mut self, place: usize) -> &mut Incoming {
        &mut self.places[place]
    }

    fn insert(&mut self, mut incoming: Incoming) -> usize {
        let (message, header) = (incoming.message, incoming.header);
        let matched = incoming.delivery.is_some();
        let place = match self.free.pop() {
            Some(place) => {
                std::mem::swap(&mut incoming.waiting, &mut self.places[place].waiting);
                std::mem::swap(&mut incoming.lent, &mut self.places[place].lent);
                self.places[place] = incoming;
                place
            }
            None => {
                self.places.push(incoming);
                self.places.len() - 1
            }
        };
        self.by_message.insert(message, place);
        if matched {
            match self.order.entry((header.source, header.pt)) {
                Entry::Vacant(vacant) => _ = vacant.insert((place, place)),
                Entry::Occupied(mut line) => {
                    let last = std::mem::replace(&mut line.get_mut().1, place);
                    self.places[last].behind = Some(place);
                }
            }
        }
        place
    }

    /// Takes the first message of an order, if it is done. Returns its index.
    fn next_done(&mut self, key: (NodeId, u32)) -> Option<usize> {
        let Entry::Occupied(mut line) = self.order.entry(key) else { return None };
        let first = line.get().0;
        if !self.places[first].done {
            return None;
        }
        match self.places[first].behind.take() {
            Some(next) => line.get_mut().0 = next,
            None => _ = line.remove(),
        }
        Some(first)
    }

    /// Fails the reply to this operation at its present length. Returns its index.
    pub(super) fn cut(&mut self, operation: OperationHandle, now: Time) -> Option<usize> {
        let is_its = |p: &usize| self.places[*p].reply.is_some_and(|reply| reply.operation == operation);
        let place = self.by_message.values().copied().find(is_its)?;
        let incoming = &mut self.places[place];
        incoming.received = incoming.header.payload_bytes();
        incoming.path.advance(Stage::Transport, now);
        if let Some(reply) = &mut incoming.reply {
            reply.fail = FailType::Undeliverable;
        }
        Some(place)
    }

    fn remove(&mut self, place: usize) {
        let message = self.places[place].message;
        self.by_message.remove(&message);
        self.places[place].attachment = None;
        self.free.push(place);
    }

    /// Marks the messages in progress at a portal table entry that flow control has disabled.
    pub(super) fn flow_controlled(&mut self, pt: u32) {
        // Free entries are marked too, without effect: they are filled anew.
        self.places.iter_mut().filter(|p| p.header.pt == pt).for_each(|p| p.flow_control = true);
    }
}

impl Card {
    /// The task of the link: every complete packet starts on the receive path.
    pub(super) async fn listen(self: Rc<Card>) {
        loop {
            let packet = self.port.receive().await;
            // Packets of the card to itself come by the loopback path.
            if packet.is_control() || packet.message.source == self.node {
                self.drop_foreign(&packet);
                continue;
            }
            self.come(packet);
        }
    }

    /// The task of the loopback path, likewise.
    pub(super) async fn listen_to_itself(self: Rc<Card>) {
        loop {
            let packet = self.port.receive_own().await;
            self.come(packet);
        }
    }

    fn come(self: &Rc<Card>, packet: Parcel) {
        if self.discards.get() {
            self.port.free_slot(packet.message);
            return;
        }
        self.sim.spawn(self.clone().receive(packet));
    }

    /// The receive path of a packet, from the packet buffer on.
    async fn receive(self: Rc<Card>, mut packet: Parcel) {
        self.recorder.packet_arrived(packet.message, packet.offset, self.sim.now());
        let is_header = packet.offset == 0;
        let header = if is_header { self.header_of(&packet) } else { None };
        if is_header && header.is_none() {
            return;
        }
        if let Some(header) = header.filter(|h| h.kind == HeaderKind::Ack) {
            return self.acknowledged(header, packet).await;
        }
        // A reply finds its operation by number, as a further packet finds its message.
        let searches = header.is_some_and(|h| h.kind != HeaderKind::Reply);
        let service = if searches { self.spec.match_first } else { self.spec.match_further };
        self.matched(packet.message, service, &mut packet.path).await;
        self.recorder.packet_matched(packet.message, packet.offset, self.sim.now());

        let known = self.place_of(packet.message);
        let place = match (header, known) {
            (Some(header), None) => {
                let room = match self.room_at_once(&header, packet.message) {
                    Some(room) => room,
                    // Boxed: it is rare, and the task of every packet would be larger for it.
                    None => Box::pin(self.wait_for_context(&header, &mut packet)).await,
                };
                self.admit(header, &packet, room)
            }
            (None, Some(place)) => place,
            (None, None) if self.awaits_context(packet.message) => {
                Box::pin(self.behind_its_header(&mut packet)).await
            }
            _ => return self.drop_stray(packet.message),
        };
        let fate = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            if !is_header && !incoming.awaits(packet.payload.len()) {
                drop(table);
                return self.drop_stray(packet.message);
            }
            incoming.received += packet.payload.len();
            incoming.unsettled += 1;
            incoming.fate
        };
        if self.contexts.shared_out() && self.sheds(place, is_header) {
            self.count_dropped(place, &packet);
            return self.settled(place, packet.offset, &packet.path);
        }
        match fate {
            Fate::Undecided if is_header => {
                let path = packet.path.clone();
                self.ready(Run { place, kind: Kind::Header, packet: Some(packet), path });
            }
            Fate::Undecided => self.incoming.borrow_mut().get(place).waiting.push_back(packet),
            decided => self.clone().settle(place, packet, decided).await,
        }
    }

    /// An acknowledgement: it finds its operation by number, as a further packet finds its message.
    async fn acknowledged(self: Rc<Card>, header: Header, mut packet: Parcel) {
        self.matched(packet.message, self.spec.match_further, &mut packet.path).await;
        let (message, now) = (packet.message, self.sim.now());
        self.recorder.packet_matched(message, packet.offset, now);
        self.recorder.packet_settled(message, packet.offset, now);
        self.recorder.message_matched(message, now, UNDER_WAY);
        self.port.free_slot(message);
        let seen = self.with_effects_of(Some(message), packet.path.clone(), |interface, effects| {
            interface.arrive(&header, effects);
        });
        self.recorder.message_completed(message, &seen, outcome(FailType::Ok));
    }

    /// Takes the matching unit's next turn, and returns at the end of its service.
    pub(super) async fn matched(&self, message: MessageId, service: Duration, path: &mut Path) {
        let start = self.matching.borrow_mut().claim(message, self.sim.now(), service, path);
        path.advance(Stage::Match, start + service);
        self.sim.until(start + service).await;
    }

    /// Whether the card has room for a message that matches an entry with these handlers.
    fn accepts(&self, header: &Header, handlers: Option<u32>, context: bool) -> bool {
        (context || handlers.is_none())
            && (!header.kind.wants_reply() || self.replies.get() < self.spec.replies)
    }

    /// The index of a matched message.
    pub(super) fn place_of(&self, message: MessageId) -> Option<usize> {
        self.incoming.borrow().by_message.get(&message).copied()
    }

    /// Counts a packet for its application's share of the packet buffer. If the share is used up, a further packet
    /// for handlers is shed if its portal table entry has flow control, which then disables the entry.
    fn sheds(self: &Rc<Card>, place: usize, is_header: bool) -> bool {
        let (attachment, fate, pt, path) = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            (incoming.attachment.clone(), incoming.fate, incoming.header.pt, incoming.path.clone())
        };
        let Some(attachment) = attachment else { return false };
        let application = attachment.application();
        let taken = self.buffer_is_taken(application);
        application.slots.set(application.slots.get() + 1);
        if is_header || !taken || !matches!(fate, Fate::Process | Fate::Undecided) {
            return false;
        }
        let (mut path, mut controlled) = (path, false);
        path.advance(Stage::Match, self.sim.now());
        self.with_effects(path, |interface, effects| controlled = interface.pt_exhausted(pt, effects));
        if controlled {
            self.incoming.borrow_mut().flow_controlled(pt);
        }
        controlled
    }

    /// Matches a message's header and makes its place among the arriving messages.
    fn admit(self: &Rc<Card>, header: Header, packet: &Packet, context: bool) -> usize {
        let (mut delivery, mut reply, mut flow_control) = (None, None, false);
        let mut dropped = None;
        self.prepare_for(&header);
        self.with_effects(packet.path.clone(), |interface, effects| {
            let before = interface.statistics().flow_control;
            match interface.arrive_if(&header, |handlers| self.accepts(&header, handlers, context), effects) {
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
            self.message_dropped(&header, reason);
        }
        if delivery.is_some_and(|delivery| delivery.list == List::Overflow) {
            self.came_unexpected(&header, packet.message);
        }
        if delivery.is_some() && header.kind.wants_reply() {
            self.replies.set(self.replies.get() + 1);
        }
        let attachment = delivery
            .and_then(|d| d.handlers)
            .map(|cookie| self.attachments.get(cookie).expect("an entry's handlers stay attached"));
        let fate = match (&delivery, &attachment) {
            (None, _) if reply.is_some() => Fate::Deposit,
            (None, _) => Fate::Drop,
            (Some(_), None) => Fate::Deposit,
            (Some(_), Some(a)) if a.application().exhausted() => Fate::Drop,
            (Some(_), Some(a)) if a.program.handlers.header.is_some() => Fate::Undecided,
            (Some(_), Some(a)) => a.processing(),
        };
        let refusing = attachment.as_ref().map(|a| a.application()).filter(|a| a.exhausted());
        let fail = if refusing.is_some() { FailType::HandlerBudget } else { FailType::Ok };
        if let Some(application) = refusing {
            application.refuse();
        }
        if let Some(attachment) = &attachment {
            self.contexts.take(attachment.application());
        }
        let outcome = if delivery.is_some() || reply.is_some() { UNDER_WAY } else { "dropped" };
        self.recorder.message_matched(packet.message, self.sim.now(), outcome);
        self.after_match();
        self.incoming.borrow_mut().insert(Incoming {
            message: packet.message,
            header,
            delivery,
            reply,
            attachment,
            fate,
            waiting: VecDeque::new(),
            received: 0,
            unsettled: 0,
            lent: Vec::new(),
            dropped_bytes: 0,
            fail,
            pending: false,
            flow_control: false,
            pieces: Vec::new(),
            path: packet.path.clone(),
            completion_started: false,
            done: false,
            behind: None,
        })
    }

    /// The header handler, which ran on the first packet, has decided the packets' fate.
    pub(super) fn decide(self: &Rc<Card>, place: usize, first: Parcel, fate: Fate, path: &Path) {
        let mut waiting = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            incoming.fate = fate;
            incoming.path.follow(path);
            incoming.waiting.push_front(first);
            std::mem::take(&mut incoming.waiting)
        };
        for mut packet in waiting.drain(..) {
            packet.path.follow(path);
            self.sim.spawn(self.clone().settle(place, packet, fate));
        }
        self.incoming.borrow_mut().get(place).waiting = waiting;
    }

    /// Applies the fate to a packet, and frees its slot of the packet buffer.
    async fn settle(self: Rc<Card>, place: usize, packet: Parcel, fate: Fate) {
        match fate {
            Fate::Undecided => unreachable!("a packet is settled only once its fate is known"),
            Fate::Drop => {
                self.count_dropped(place, &packet);
                self.settled(place, packet.offset, &packet.path);
            }
            Fate::Process | Fate::Deposit if self.asks(place) => {
                // Boxed: it is rarer than puts, and the task of every packet would be larger for it.
                Box::pin(self.serve(place, packet)).await;
            }
            Fate::Process => {
                if self.kept(place, &packet) == 0 {
                    self.settled(place, packet.offset, &packet.path);
                } else {
                    let path = packet.path.clone();
                    self.ready(Run { place, kind: Kind::Payload, packet: Some(packet), path });
                }
            }
            Fate::Deposit => self.deposit(place, packet).await,
        }
    }

    /// Whether a message asks the card for more than a write of its bytes.
    fn asks(&self, place: usize) -> bool {
        let kind = self.incoming.borrow_mut().get(place).header.kind;
        !matches!(kind, HeaderKind::Put | HeaderKind::Reply)
    }

    /// The number of a packet's bytes left after truncation.
    pub(super) fn kept(&self, place: usize, packet: &Packet) -> u64 {
        self.incoming.borrow_mut().get(place).kept(packet.offset, packet.payload.len())
    }

    /// Counts a packet's bytes as dropped.
    pub(super) fn count_dropped(&self, place: usize, packet: &Packet) {
        let dropped = self.kept(place, packet);
        self.incoming.borrow_mut().get(place).dropped_bytes += dropped;
    }

    pub(super) fn attachment_of(&self, place: usize) -> Option<Rc<Attachment>> {
        self.incoming.borrow_mut().get(place).attachment.clone()
    }

    async fn deposit(self: Rc<Card>, place: usize, mut packet: Parcel) {
        let keep = self.kept(place, &packet);
        let (message, address) = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            let (start, _) = incoming.memory().expect("only bytes with a destination are deposited");
            // Bytes beyond the end are cut.
            (incoming.message, start.saturating_add(packet.offset))
        };
        if keep == 0 {
            self.settled(place, packet.offset, &packet.path);
            return;
        }
        let handover = self.bus.write(message, address, keep, packet.path.clone());
        self.recorder.slice(Resource::Dma, packet.path.at(), handover.landed, Some(message), "deposit");
        self.write_behind(handover.landed, address, keep, std::mem::take(&mut packet.payload));
        let offset = packet.offset;
        drop(packet);
        self.sim.until(handover.path.at()).await;
        self.settled(place, offset, &handover.path);
    }

    /// Settles a packet: its slot is free, and perhaps its message complete. `offset` is the packet's in the message.
    pub(super) fn settled(self: &Rc<Card>, place: usize, offset: u64, path: &Path) {
        self.release_slot(place, offset);
        self.finish(place, path);
    }

    /// Settles a packet: its slot is free, unless a transfer uses it.
    pub(super) fn release_slot(&self, place: usize, offset: u64) {
        if self.incoming.borrow_mut().get(place).settles(offset) {
            self.free_slot(place, offset);
        }
    }

    /// A transfer that a handler left in flight is done with its packet.
    pub(super) fn slot_returned(&self, place: usize, offset: u64) {
        if self.incoming.borrow_mut().get(place).returns(offset) {
            self.free_slot(place, offset);
        }
    }

    fn free_slot(&self, place: usize, offset: u64) {
        let mut table = self.incoming.borrow_mut();
        let incoming = table.get(place);
        self.port.free_slot(incoming.message);
        if self.contexts.shared_out()
            && let Some(attachment) = &incoming.attachment
        {
            let slots = &attachment.application().slots;
            slots.set(slots.get() - 1);
        }
        self.recorder.packet_settled(incoming.message, offset, self.sim.now());
    }

    /// A step that a message waited for is done.
    pub(super) fn finish(self: &Rc<Card>, place: usize, path: &Path) {
        {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            incoming.unsettled -= 1;
            incoming.path.follow(path);
        }
        self.advance(place);
    }

    /// Completes a message whose bytes have all come and are settled: completion handler, then events in order.
    pub(super) fn advance(self: &Rc<Card>, place: usize) {
        let completion = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            let whole = incoming.received == incoming.header.payload_bytes() && incoming.unsettled == 0;
            // The header packet is settled once the header handler has decided.
            debug_assert!(!whole || incoming.fate != Fate::Undecided);
            if !whole {
                return;
            }
            if incoming.delivery.is_none() {
                let (message, reply, path) = (incoming.message, incoming.reply, incoming.path.clone());
                table.remove(place);
                drop(table);
                if let Some(reply) = reply {
                    self.replied(message, &reply, path);
                }
                return;
            }
            let handler = incoming.fail.is_ok()
                && incoming.attachment.as_ref().is_some_and(|a| a.program.handlers.completion.is_some());
            if handler && !incoming.completion_started {
                incoming.completion_started = true;
                Some(incoming.path.clone())
            } else {
                incoming.done = true;
                None
            }
        };
        match completion {
            Some(path) => {
                self.contexts.completes();
                self.ready(Run { place, kind: Kind::Completion, packet: None, path });
            }
            None => self.complete_in_order(place),
        }
    }

    /// Completes this message and later ones that waited only for it.
    fn complete_in_order(self: &Rc<Card>, place: usize) {
        let key = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            (incoming.header.source, incoming.header.pt)
        };
        loop {
            let (place, message, delivery, fail, pending, path) = {
                let mut table = self.incoming.borrow_mut();
                let Some(first) = table.next_done(key) else { return };
                let incoming = &table.places[first];
                let (message, mut fail, mut path) = (incoming.message, incoming.fail, incoming.path.clone());
                if incoming.fate == Fate::Drop && incoming.header.kind != HeaderKind::Put {
                    // An operation beyond a deposit cannot be done in part.
                    fail = fail.or(FailType::Dropped);
                }
                let pending = incoming.pending && fail.is_ok();
                let mut delivery = incoming.delivery.expect("only matched messages are in the order");
                delivery.mlength = delivery.mlength.saturating_sub(incoming.dropped_bytes);
                // Handlers' writes have been handed to the bus, which keeps order: the event follows them.
                path.advance(Stage::InOrder, self.sim.now());
                (first, message, delivery, fail, pending, path)
            };
            let attachment = self.attachment_of(place);
            self.incoming.borrow_mut().remove(place);
            if let Some(attachment) = attachment {
                self.contexts.give_back(attachment.application());
            }
            if delivery.header.kind.wants_reply() {
                self.replies.set(self.replies.get() - 1);
            }
            let seen = self.with_effects_of(Some(message), path, |interface, effects| {
                let mut held = self.held.borrow_mut();
                let place = held.iter().position(|&me| me == delivery.me);
                let completed = match (pending, place) {
                    (true, Some(_)) => interface.complete_silently(&delivery, effects),
                    (true, None) => {
                        held.push(delivery.me);
                        let kept = interface.me_hold(delivery.me);
                        kept.and_then(|()| interface.complete_silently(&delivery, effects))
                    }
                    (false, None) => interface.complete(&delivery, fail, effects),
                    (false, Some(place)) => {
                        held.swap_remove(place);
                        let completed = interface.complete(&delivery, fail, effects);
                        completed.and_then(|()| interface.me_release(delivery.me, effects))
                    }
                };
                completed.expect("the entry lives until its messages complete");
            });
            self.recorder.message_completed(message, &seen, if pending { "pending" } else { outcome(fail) });
        }
    }
}
