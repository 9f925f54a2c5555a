//! Completion: the card settles packets, runs completion handlers, and delivers events in message order.
//!
//! | part | file |
//! |---|---|
//! | effects of the Portals interface, and their way to the host | `effects.rs` |

mod effects;

use crate::Card;
use crate::incoming::{Disposition, outcome};
use crate::stages;
use nicety_kernel::{Signal, Sim};
use nicety_nic_processors::clusters::course;
use nicety_nic_processors::ready::Arrived;
use nicety_portals::{Delivery, Effect, Effects, Error, FailType, HeaderKind, Interface, MeHandle};
use nicety_types::{MessageId, Path, Time};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The origin of a change in the host's view.
#[derive(Clone)]
pub(crate) struct ChangeOrigin {
    /// The path up to the time at which the host can see the change.
    pub(crate) path: Path,
    /// The message that caused the change, if any.
    pub(crate) message: Option<MessageId>,
}

/// The state of completion.
pub(crate) struct Complete {
    /// Memory for effects, which is reused at each change of the interface.
    effects: RefCell<Effects>,
    /// The match entries that handlers have left linked ("pending").
    held: RefCell<Vec<MeHandle>>,
    /// Changes in flight to the host's view, in the order in which the host sees them.
    posted: RefCell<VecDeque<(Time, Effect, ChangeOrigin)>>,
    posting: Signal,
}

impl Complete {
    pub(crate) fn new(sim: &Sim) -> Complete {
        Complete {
            effects: RefCell::default(),
            held: RefCell::default(),
            posted: RefCell::default(),
            posting: Signal::new(sim),
        }
    }

    /// Unlinks a match entry, even if handlers have left it linked.
    ///
    /// # Errors
    /// When messages still refer to the entry, or there is no such entry.
    pub(crate) fn unlink(
        &self,
        interface: &mut Interface,
        effects: &mut Effects,
        me: MeHandle,
    ) -> Result<(), Error> {
        let mut held = self.held.borrow_mut();
        let open = held.iter().position(|&open| open == me);
        let refused = interface.me_unlink(me);
        let Some(place) = open.filter(|_| refused.is_err()) else { return refused };
        interface.me_release(me, effects)?;
        let unlinked = match interface.me_unlink(me) {
            // The entry was use-once, and its last message has already unlinked it.
            Err(Error::Stale(_)) => Ok(()),
            result => result,
        };
        match unlinked {
            Ok(()) => _ = held.swap_remove(place),
            // Messages still refer to the entry, so it stays linked.
            Err(_) => interface.me_hold(me)?,
        }
        unlinked
    }

    /// Completes a message at its match entry. If `pending`, the entry stays linked and gets no event.
    fn close(
        &self,
        delivery: &Delivery,
        fail: FailType,
        pending: bool,
        interface: &mut Interface,
        effects: &mut Effects,
    ) {
        let mut held = self.held.borrow_mut();
        let place = held.iter().position(|&me| me == delivery.me);
        let completed = match (pending, place) {
            (true, Some(_)) => interface.complete_silently(delivery, effects),
            (true, None) => {
                held.push(delivery.me);
                let kept = interface.me_hold(delivery.me);
                kept.and_then(|()| interface.complete_silently(delivery, effects))
            }
            (false, None) => interface.complete(delivery, fail, effects),
            (false, Some(place)) => {
                held.swap_remove(place);
                let completed = interface.complete(delivery, fail, effects);
                completed.and_then(|()| interface.me_release(delivery.me, effects))
            }
        };
        completed.expect("the entry lives until its messages complete");
    }
}

impl Card {
    /// Settles a packet: frees its slot. If this was the last unsettled packet, completes its message. `offset` is the
    /// packet's offset in the message.
    pub(crate) fn settled(self: &Rc<Card>, place: usize, offset: u64, path: &Path) {
        self.release_slot(place, offset);
        self.finish(place, path);
    }

    /// Settles now a packet that will be settled at the end of `path`, which saves an event of the simulation. Returns
    /// false if this is impossible: the message may be complete or change before that time, or the slot must be freed
    /// explicitly.
    pub(crate) fn settled_at(&self, place: usize, offset: u64, path: &Path) -> bool {
        let mut table = self.incoming.borrow_mut();
        let incoming = table.get(place);
        let is_last = incoming.received == incoming.header.payload_bytes();
        // A reply is excluded because reliable transport may end it early.
        let is_plain = incoming.delivery.is_some() && incoming.attachment.is_none();
        if is_last || !is_plain || !self.receive.free_slot_at(incoming.message.source, path.at()) {
            return false;
        }
        incoming.unsettled -= 1;
        incoming.path.follow(path);
        self.processors().note_settled(incoming.message, offset, path.at());
        true
    }

    /// Settles a packet that has no bytes left after truncation. Its message completes only after all packets before it
    /// are settled.
    pub(crate) async fn settle_behind(self: &Rc<Card>, place: usize, packet: &Arrived) {
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

    /// Marks a packet as settled, and frees its slot unless a transfer uses the packet.
    pub(crate) fn release_slot(&self, place: usize, offset: u64) {
        if self.incoming.borrow_mut().get(place).settles(offset) {
            self.free_slot(place, offset);
        }
    }

    /// Ends the use of a packet by a transfer that a handler left in flight. Frees the packet's slot if it has no other
    /// use.
    pub(crate) fn slot_returned(&self, place: usize, offset: u64) {
        if self.incoming.borrow_mut().get(place).returns(offset) {
            self.free_slot(place, offset);
        }
    }

    fn free_slot(&self, place: usize, offset: u64) {
        let mut table = self.incoming.borrow_mut();
        let incoming = table.get(place);
        self.receive.free_slot(incoming.message.source);
        if self.receive.contexts().shared_out()
            && let Some(attachment) = &incoming.attachment
        {
            let slots = &attachment.application().slots;
            slots.set(slots.get() - 1);
        }
        self.processors().note_settled(incoming.message, offset, self.sim.now());
    }

    /// Records the end of a step for which a message waited, and advances the message.
    pub(crate) fn finish(self: &Rc<Card>, place: usize, path: &Path) {
        {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            incoming.unsettled -= 1;
            incoming.path.follow(path);
        }
        self.advance(place);
    }

    /// Completes a message once all of its bytes have arrived and are settled. Runs the completion handler, then
    /// delivers events in order.
    pub(crate) fn advance(self: &Rc<Card>, place: usize) {
        let completion = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            let whole = incoming.received == incoming.header.payload_bytes() && incoming.unsettled == 0;
            // The header packet is settled only after the header handler has decided the disposition.
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
                    course::release_last(self, last.slot);
                }
                self.complete_in_order(place);
            }
        }
    }

    /// Completes this message if it is the first in order. Then completes later messages that waited only for it.
    fn complete_in_order(self: &Rc<Card>, place: usize) {
        let key = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            (incoming.header.source, incoming.header.pt)
        };
        loop {
            let next = self.incoming.borrow_mut().next_done(key);
            let Some(next) = next else { return };
            self.complete_message(next);
        }
    }

    /// Completes a message. All earlier messages of its order are complete.
    fn complete_message(self: &Rc<Card>, place: usize) {
        let (message, delivery, fail, pending, path) = {
            let table = self.incoming.borrow();
            let incoming = &table.places[place];
            let (message, mut fail, mut path) = (incoming.message, incoming.fail, incoming.path.clone());
            if incoming.disposition == Disposition::Drop && incoming.header.kind != HeaderKind::Put {
                // A put may lose a part of its bytes. A get or an atomic operation that was dropped has failed.
                fail = fail.or(FailType::Dropped);
            }
            let pending = incoming.pending && fail.is_ok();
            let mut delivery = incoming.delivery.expect("only matched messages are in the order");
            delivery.mlength = delivery.mlength.saturating_sub(incoming.dropped_bytes);
            // Handlers' writes are already on the bus, which keeps their order, so the event follows these writes.
            path.advance(stages::IN_ORDER, self.sim.now());
            (message, delivery, fail, pending, path)
        };
        let attachment = self.attachment_of(place);
        self.incoming.borrow_mut().remove(place);
        if let Some(attachment) = attachment {
            self.receive.contexts().give_back(attachment.application());
        }
        if delivery.header.kind.wants_reply() {
            self.receive.reply_ended();
        }
        let seen = self.with_effects_of(Some(message), path, |interface, effects| {
            self.complete.close(&delivery, fail, pending, interface, effects);
        });
        self.recorder.message_completed(message, &seen, if pending { "pending" } else { outcome(fail) });
    }
}
