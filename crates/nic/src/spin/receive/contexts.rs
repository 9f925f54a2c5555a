//! Contexts: the limit on messages for handlers on the card, and the treatment of further ones.
//!
//! A message takes a context when it matches an entry with handlers, and frees it when it is complete. A message that
//! finds none disables its portal table entry if that has flow control. Otherwise it waits in the packet buffer,
//! along with all later messages of its initiator to the same portal table entry. If only waiting packets are left in
//! the buffer, and no completion handler is in progress, the packets that would complete the other messages could not
//! enter any more: then the last message to wait is dropped.
//!
//! With scheduling by weight, contexts and the packet buffer are shared by weight too: an application gets its share
//! of each and no more.

use crate::spin::Card;
use crate::spin::incoming::Arrived;
use crate::spin::programs::application::Application;
use crate::spin::spec::Scheduling;
use crate::spin::stages;
use nicety_kernel::{Signal, Sim};
use nicety_portals::{Header, HeaderKind};
use nicety_types::{MessageId, NodeId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// A message in front of the matching unit that waits for a context.
struct Waiting {
    message: MessageId,
    header: Header,
}

impl Waiting {
    /// Messages with equal keys match in the order of their arrival.
    fn key(&self) -> (NodeId, u32) {
        (self.header.source, self.header.pt)
    }
}

/// The contexts of a card.
pub(in crate::spin) struct Contexts {
    limit: u32,
    live: Cell<u32>,
    /// Messages that have taken one so far.
    taken: Cell<u64>,
    /// Completion handlers in progress, and transfers that handlers have left in flight.
    completing: Cell<u32>,
    /// In the order of arrival.
    waiting: RefCell<VecDeque<Waiting>>,
    /// Packets of these messages, and the capacity of the packet buffer.
    held: Cell<u32>,
    buffer: u32,
    changed: Signal,
    shared_out: bool,
}

impl Contexts {
    pub(in crate::spin) fn new(sim: &Sim, limit: u32, buffer: u32, scheduling: Scheduling) -> Contexts {
        Contexts {
            limit,
            live: Cell::new(0),
            taken: Cell::new(0),
            completing: Cell::new(0),
            waiting: RefCell::default(),
            held: Cell::new(0),
            buffer,
            changed: Signal::new(sim),
            shared_out: scheduling == Scheduling::WeightedFair,
        }
    }

    /// Whether applications have shares of contexts and packet buffer.
    pub(in crate::spin) const fn shared_out(&self) -> bool {
        self.shared_out
    }

    /// Takes a context for a message that has matched an entry with handlers. Returns how many have before it.
    pub(in crate::spin) fn take(&self, application: &Application) -> u64 {
        self.live.set(self.live.get() + 1);
        application.contexts.set(application.contexts.get() + 1);
        self.taken.replace(self.taken.get() + 1)
    }

    /// Frees the context of a complete message.
    pub(in crate::spin) fn give_back(&self, application: &Application) {
        self.live.set(self.live.get() - 1);
        application.contexts.set(application.contexts.get() - 1);
        self.look();
    }

    /// Counts a completion handler about to run, or a transfer left in flight.
    pub(in crate::spin) fn completes(&self) {
        self.completing.set(self.completing.get() + 1);
    }

    /// Uncounts it at its end.
    pub(in crate::spin) fn completed(&self) {
        self.completing.set(self.completing.get() - 1);
        self.look();
    }

    /// Wakes the waiting messages.
    fn look(&self) {
        if self.held.get() > 0 {
            self.changed.notify_all();
        }
    }

    fn position(&self, message: MessageId) -> Option<usize> {
        self.waiting.borrow().iter().position(|waiting| waiting.message == message)
    }

    /// Whether a message with the same key that arrived earlier has still to match.
    fn behind_another(&self, message: MessageId, key: (NodeId, u32)) -> bool {
        let waiting = self.waiting.borrow();
        waiting.iter().take_while(|waiting| waiting.message != message).any(|waiting| waiting.key() == key)
    }

    /// Counts a waiting packet.
    fn hold(&self) {
        self.held.set(self.held.get() + 1);
        if self.held.get() >= self.buffer {
            self.look();
        }
    }

    fn let_go(&self) {
        self.held.set(self.held.get() - 1);
    }
}

impl Card {
    /// Whether an entry's handlers have a context for another message, by the limit and their application's share.
    fn has_context(&self, handlers: u32) -> bool {
        let contexts = &self.contexts;
        contexts.live.get() < contexts.limit
            && (!contexts.shared_out || {
                let application = self.attachments.get(handlers).map(|a| a.application().clone());
                application.is_none_or(|a| a.contexts.get() < self.attachments.share(&a, contexts.limit))
            })
    }

    /// Whether the packets of an application fill its share of the packet buffer.
    pub(in crate::spin) fn buffer_is_taken(&self, application: &Application) -> bool {
        application.slots.get() >= self.attachments.share(application, self.contexts.buffer)
    }

    /// Whether there is a context for a message; none if the message has to wait.
    fn room(&self, header: &Header, message: MessageId) -> Option<bool> {
        if self.contexts.behind_another(message, (header.source, header.pt)) {
            return None;
        }
        let prospect = self.interface.borrow().prospect(header);
        match prospect.and_then(|prospect| Some((prospect.handlers?, prospect.flow_control))) {
            None => Some(true),
            Some((handlers, true)) => {
                let application = self.attachments.get(handlers).map(|a| a.application().clone());
                let taken = application.is_some_and(|a| self.contexts.shared_out && self.buffer_is_taken(&a));
                Some(self.has_context(handlers) && !taken)
            }
            Some((handlers, false)) => self.has_context(handlers).then_some(true),
        }
    }

    /// Before a message is matched: whether there is a context for it if it needs one; none if it has to wait.
    pub(in crate::spin) fn room_at_once(&self, header: &Header, message: MessageId) -> Option<bool> {
        let contexts = &self.contexts;
        let plenty = contexts.live.get() < contexts.limit && !contexts.shared_out;
        if header.kind == HeaderKind::Reply || plenty && contexts.waiting.borrow().is_empty() {
            return Some(true);
        }
        self.room(header, message)
    }

    /// Waits for a context, or until there can be none; returns whether there is one.
    pub(in crate::spin) async fn wait_for_context(&self, header: &Header, packet: &mut Arrived) -> bool {
        let (contexts, message) = (&self.contexts, packet.message);
        contexts.waiting.borrow_mut().push_back(Waiting { message, header: *header });
        contexts.hold();
        let over = || self.room(header, message).is_some() || self.stuck(message);
        contexts.changed.wait_until(over).await;
        let room = self.room(header, message).unwrap_or(false);
        contexts.let_go();
        let position = contexts.position(message).expect("it waits until now");
        contexts.waiting.borrow_mut().remove(position);
        packet.path.advance(stages::HANDLER_QUEUED, self.sim.now());
        room
    }

    /// Whether no waiting message can proceed, the packet buffer holds nothing else, and this message is the last.
    fn stuck(&self, message: MessageId) -> bool {
        let contexts = &self.contexts;
        let waiting = contexts.waiting.borrow();
        contexts.held.get() >= contexts.buffer
            && contexts.completing.get() == 0
            && waiting.back().is_some_and(|last| last.message == message)
            && !waiting.iter().any(|waiting| self.room(&waiting.header, waiting.message).is_some())
    }

    /// Whether a message waits for a context; its further packets wait with it.
    pub(in crate::spin) fn awaits_context(&self, message: MessageId) -> bool {
        self.contexts.position(message).is_some()
    }

    /// Waits with a further packet until its message has matched.
    pub(in crate::spin) async fn behind_its_header(&self, packet: &mut Arrived) -> usize {
        let message = packet.message;
        self.contexts.hold();
        self.contexts.changed.wait_until(|| self.place_of(message).is_some()).await;
        self.contexts.let_go();
        packet.path.advance(stages::HANDLER_QUEUED, self.sim.now());
        self.place_of(message).expect("just seen")
    }

    /// A message has matched: wakes its waiting packets.
    pub(in crate::spin) fn after_match(&self) {
        self.contexts.look();
    }
}
