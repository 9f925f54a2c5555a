//! Completion: settling of packets, completion handlers, and events in message order.

use super::Card;
use crate::incoming::{Arrived, Disposition, outcome};
use crate::stages;
use nicety_portals::{FailType, HeaderKind};
use nicety_types::Path;
use std::rc::Rc;

impl Card {
    /// Settles a packet: frees its slot, and completes its message if this was the last one. `offset` is the packet's
    /// offset in the message.
    pub(super) fn settled(self: &Rc<Card>, place: usize, offset: u64, path: &Path) {
        self.release_slot(place, offset);
        self.finish(place, path);
    }

    /// Settles a packet at the end of `path` ahead of time, without an event for it. Returns false where that is
    /// impossible: its message may be complete or take another course by then, or its slot must be freed explicitly.
    pub(super) fn settled_at(&self, place: usize, offset: u64, path: &Path) -> bool {
        let mut table = self.incoming.borrow_mut();
        let incoming = table.get(place);
        let is_last = incoming.received == incoming.header.payload_bytes();
        // Reliable transport may cut replies short.
        let is_plain = incoming.delivery.is_some() && incoming.attachment.is_none();
        if is_last || !is_plain || !self.port.free_slot_at(incoming.message.source, path.at()) {
            return false;
        }
        incoming.unsettled -= 1;
        incoming.path.follow(path);
        self.note_settled(incoming.message, offset, path.at());
        true
    }

    /// Settles a packet without kept bytes. Its message completes no earlier than the packets before it are settled.
    pub(super) async fn settle_behind(self: &Rc<Card>, place: usize, packet: &Arrived) {
        let settled = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            let is_last = incoming.received == incoming.header.payload_bytes();
            if is_last && incoming.attachment.is_none() { incoming.path.at() } else { self.sim.now() }
        };
        self.release_slot(place, packet.offset);
        self.sim.until(settled).await;
        self.finish(place, &packet.path);
    }

    /// Settles a packet: frees its slot, unless a transfer uses it.
    pub(super) fn release_slot(&self, place: usize, offset: u64) {
        if self.incoming.borrow_mut().get(place).settles(offset) {
            self.free_slot(place, offset);
        }
    }

    /// Ends the use of a packet by a transfer that a handler left in flight.
    pub(super) fn slot_returned(&self, place: usize, offset: u64) {
        if self.incoming.borrow_mut().get(place).returns(offset) {
            self.free_slot(place, offset);
        }
    }

    fn free_slot(&self, place: usize, offset: u64) {
        let mut table = self.incoming.borrow_mut();
        let incoming = table.get(place);
        self.port.free_slot(incoming.message.source);
        if self.contexts.shared_out()
            && let Some(attachment) = &incoming.attachment
        {
            let slots = &attachment.application().slots;
            slots.set(slots.get() - 1);
        }
        self.note_settled(incoming.message, offset, self.sim.now());
    }

    /// Ends a step for which a message waited.
    pub(super) fn finish(self: &Rc<Card>, place: usize, path: &Path) {
        {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            incoming.unsettled -= 1;
            incoming.path.follow(path);
        }
        self.advance(place);
    }

    /// Completes a message once all of its bytes have arrived and are settled: runs the completion handler, then
    /// delivers events in order.
    pub(super) fn advance(self: &Rc<Card>, place: usize) {
        let completion = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            let whole = incoming.received == incoming.header.payload_bytes() && incoming.unsettled == 0;
            // The header packet is settled once the header handler has decided.
            debug_assert!(!whole || incoming.disposition != Disposition::Undecided);
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
        let last = self.incoming.borrow_mut().get(place).last.take();
        match (completion, last) {
            (Some(path), last) => self.run_completion(place, path, last),
            (None, last) => {
                if let Some(last) = last {
                    self.release_last(&last);
                }
                self.complete_in_order(place);
            }
        }
    }

    /// Completes this message, and later ones that waited only for it.
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
                if incoming.disposition == Disposition::Drop && incoming.header.kind != HeaderKind::Put {
                    // Only a deposit can be done in part.
                    fail = fail.or(FailType::Dropped);
                }
                let pending = incoming.pending && fail.is_ok();
                let mut delivery = incoming.delivery.expect("only matched messages are in the order");
                delivery.mlength = delivery.mlength.saturating_sub(incoming.dropped_bytes);
                // Handlers' writes are on the bus, which keeps order. So the event follows them.
                path.advance(stages::IN_ORDER, self.sim.now());
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
