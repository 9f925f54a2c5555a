//! Contexts: the limit on messages for handlers on the card, and the treatment of messages that exceed it.
//!
//! A message takes a context when it matches an entry with handlers, and frees the context when it is complete. If
//! there is no free context and the portal table entry has flow control, the message disables the portal table entry.
//! Without flow control, the message waits in the packet buffer. All later messages of its initiator to the same portal
//! table entry wait, too.
//!
//! If waiting packets fill the buffer, packets that would complete other messages cannot enter. If no completion
//! handler is in progress either, no context can become free. Then the message that began to wait last is dropped.
//!
//! With scheduling by weight, applications share contexts and the packet buffer by their weights. An application gets
//! at most its share of contexts and of slots.

use crate::Card;
use nicety_kernel::{Signal, Sim};
use nicety_nic_processors::programs::application::Application;
use nicety_nic_processors::ready::Arrived;
use nicety_nic_processors::stages;
use nicety_nic_processors::{ContextUse, Scheduling};
use nicety_portals::{Header, HeaderKind};
use nicety_types::{Duration, MessageId, NodeId, Time};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// An initiator and a portal table entry. Messages with equal keys match in the order of their arrival.
type Key = (NodeId, u32);

/// A message that waits for a context before it is matched.
struct Waiting {
    message: MessageId,
    header: Header,
    /// Number of messages that began to wait earlier.
    number: u64,
}

/// The messages that wait for a context.
#[derive(Default)]
struct Queue {
    /// The waiting messages of each key, in the order of their arrival. No list is empty.
    lines: Vec<(Key, VecDeque<Waiting>)>,
    entered: u64,
}

impl Queue {
    fn line(&self, key: Key) -> Option<usize> {
        self.lines.iter().position(|(of, _)| *of == key)
    }

    fn enter(&mut self, message: MessageId, header: Header) {
        let key = (header.source, header.pt);
        let line = self.line(key).unwrap_or_else(|| {
            self.lines.push((key, VecDeque::new()));
            self.lines.len() - 1
        });
        self.lines[line].1.push_back(Waiting { message, header, number: self.entered });
        self.entered += 1;
    }

    fn leave(&mut self, message: MessageId, key: Key) {
        let line = self.line(key).expect("it waits until now");
        let waiting = &mut self.lines[line].1;
        let place = waiting.iter().position(|waiting| waiting.message == message);
        waiting.remove(place.expect("it waits until now"));
        if waiting.is_empty() {
            self.lines.swap_remove(line);
        }
    }

    fn contains(&self, message: MessageId) -> bool {
        self.lines.iter().any(|(_, line)| line.iter().any(|waiting| waiting.message == message))
    }

    /// Returns the first message of each key.
    fn first(&self) -> impl Iterator<Item = &Waiting> {
        self.lines.iter().map(|(_, line)| &line[0])
    }

    /// Returns the message that began to wait last.
    fn last(&self) -> Option<&Waiting> {
        self.lines.iter().filter_map(|(_, line)| line.back()).max_by_key(|waiting| waiting.number)
    }

    /// Returns whether an earlier message with the same key still waits.
    fn behind_another(&self, message: MessageId, key: Key) -> bool {
        self.line(key).is_some_and(|line| self.lines[line].1[0].message != message)
    }
}

/// A packet that waits until a context may have become free.
struct InLine {
    message: MessageId,
    /// The header of a message that waits for a context. `None` for another packet of such a message.
    header: Option<Header>,
    /// Whether the wait is over.
    over: Cell<bool>,
    go: Signal,
}

/// Waiting packets, in order.
type Batch = VecDeque<Rc<InLine>>;

/// The contexts of a card.
pub(crate) struct Contexts {
    limit: u32,
    live: Cell<u32>,
    used: Cell<ContextUse>,
    /// The time of the last change of the number of contexts in use.
    changed: Cell<Time>,
    /// Number of messages that have taken a context so far.
    taken: Cell<u64>,
    /// Number of completion handlers in progress, plus the number of transfers that handlers have left in flight.
    completing: Cell<u32>,
    waiting: RefCell<Queue>,
    /// Number of packets of waiting messages. `buffer` is the capacity of the packet buffer in packets.
    held: Cell<u32>,
    buffer: u32,
    /// Packets that wait until a context may have become free, in order. `further` is the number of these packets that
    /// are not the first packet of their message.
    line: RefCell<Batch>,
    further: Cell<u32>,
    /// Unused entries, kept for reuse.
    unused: RefCell<Vec<Rc<InLine>>>,
    card: OnceCell<Weak<Card>>,
    sim: Sim,
    shared_out: bool,
}

impl Contexts {
    pub(crate) fn new(sim: &Sim, limit: u32, buffer: u32, scheduling: Scheduling) -> Contexts {
        Contexts {
            limit,
            live: Cell::new(0),
            used: Cell::default(),
            changed: Cell::new(sim.now()),
            taken: Cell::new(0),
            completing: Cell::new(0),
            waiting: RefCell::default(),
            held: Cell::new(0),
            buffer,
            line: RefCell::default(),
            further: Cell::new(0),
            unused: RefCell::default(),
            card: OnceCell::new(),
            sim: sim.clone(),
            shared_out: scheduling == Scheduling::WeightedFair,
        }
    }

    /// Returns whether applications have shares of contexts and of the packet buffer.
    pub(crate) const fn shared_out(&self) -> bool {
        self.shared_out
    }

    /// Takes a context for a message that has matched an entry with handlers. Returns the number of contexts taken
    /// earlier.
    pub(crate) fn take(&self, application: &Application) -> u64 {
        self.has(self.live.get() + 1);
        application.contexts.set(application.contexts.get() + 1);
        self.taken.replace(self.taken.get() + 1)
    }

    /// Frees the context of a message that is complete.
    pub(crate) fn give_back(&self, application: &Application) {
        self.has(self.live.get() - 1);
        application.contexts.set(application.contexts.get() - 1);
        self.look();
    }

    /// Sets the number of contexts in use.
    fn has(&self, live: u32) {
        self.used.set(self.used());
        self.changed.set(self.sim.now());
        self.live.set(live);
    }

    /// Returns the time for which contexts were in use so far.
    pub(crate) fn used(&self) -> ContextUse {
        let (since, live) = (self.sim.now().since(self.changed.get()), self.live.get());
        let ContextUse { taken, full } = self.used.get();
        let all = if live >= self.limit { since } else { Duration::ZERO };
        ContextUse { taken: taken + since * u64::from(live), full: full + all }
    }

    /// Counts a completion handler that is about to run, or a transfer that a handler has left in flight.
    pub(crate) fn completes(&self) {
        self.completing.set(self.completing.get() + 1);
    }

    /// Records the end of a completion handler or transfer that [`Contexts::completes`] has counted.
    pub(crate) fn completed(&self) {
        self.completing.set(self.completing.get() - 1);
        self.look();
    }

    /// Sets the card to which these contexts belong.
    pub(crate) fn belong_to(&self, card: &Rc<Card>) {
        assert!(self.card.set(Rc::downgrade(card)).is_ok(), "a card has its contexts once");
    }

    /// Starts a task that checks which packets can stop waiting, in the order in which they began to wait. Such a
    /// packet continues at once, before the next check. The checks do not wake packets, because hundreds may wait and
    /// usually none can continue.
    fn look(&self) {
        if self.held.get() == 0 || self.line.borrow().is_empty() {
            return;
        }
        let Some(card) = self.card.get().and_then(Weak::upgrade) else { return };
        let mut batch = self.line.take();
        self.sim.spawn(async move {
            while let Some(first) = card.first_over(&batch) {
                card.receive.contexts.line.borrow_mut().extend(batch.drain(..first));
                let goes = batch.pop_front().expect("it is there");
                goes.over.set(true);
                goes.go.go_first().await;
            }
            let mut line = card.receive.contexts.line.borrow_mut();
            if line.is_empty() {
                *line = batch;
            } else {
                line.extend(batch);
            }
        });
    }

    /// Waits for a change: with a header as the first packet of a message, and without a header as another packet of a
    /// message.
    async fn wait_in_line(&self, message: MessageId, header: Option<Header>) {
        let unused = self.unused.borrow_mut().pop().and_then(Rc::into_inner);
        let go = unused.map_or_else(|| Signal::new(&self.sim), |unused| unused.go);
        let further = u32::from(header.is_none());
        let place = Rc::new(InLine { message, header, over: Cell::new(false), go });
        self.line.borrow_mut().push_back(place.clone());
        self.further.set(self.further.get() + further);
        place.go.wait_until(|| place.over.get()).await;
        self.further.set(self.further.get() - further);
        self.unused.borrow_mut().push(place);
    }

    /// Counts a waiting packet. If waiting packets fill the buffer, checks all waiting packets.
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
    /// Returns whether the handlers of an entry have a context for another message, by the limit and by their
    /// application's share.
    fn has_context(&self, handlers: u32) -> bool {
        let contexts = &self.receive.contexts;
        contexts.live.get() < contexts.limit
            && (!contexts.shared_out || {
                let application =
                    self.processors().attachments.get(handlers).map(|a| a.application().clone());
                application.is_none_or(|a| {
                    a.contexts.get() < self.processors().attachments.share(&a, contexts.limit)
                })
            })
    }

    /// Returns whether the packets of an application fill its share of the packet buffer.
    pub(crate) fn buffer_is_taken(&self, application: &Application) -> bool {
        application.slots.get()
            >= self.processors().attachments.share(application, self.receive.contexts.buffer)
    }

    /// Returns whether the card has a context for a message, if the message needs one. `None` if the message must wait.
    fn room(&self, header: &Header, message: MessageId) -> Option<bool> {
        if self.receive.contexts.waiting.borrow().behind_another(message, (header.source, header.pt)) {
            return None;
        }
        let prospect = self.interface.borrow().prospect(header);
        match prospect.and_then(|prospect| Some((prospect.handlers?, prospect.flow_control))) {
            None => Some(true),
            Some((handlers, true)) => {
                let application =
                    self.processors().attachments.get(handlers).map(|a| a.application().clone());
                let taken =
                    application.is_some_and(|a| self.receive.contexts.shared_out && self.buffer_is_taken(&a));
                Some(self.has_context(handlers) && !taken)
            }
            Some((handlers, false)) => self.has_context(handlers).then_some(true),
        }
    }

    /// Returns, before a message is matched, whether the card has a context for it. Returns true for a message that
    /// needs no context. `None` if the message must wait.
    pub(crate) fn room_at_once(&self, header: &Header, message: MessageId) -> Option<bool> {
        let contexts = &self.receive.contexts;
        let plenty = contexts.live.get() < contexts.limit && !contexts.shared_out;
        if header.kind == HeaderKind::Reply || plenty && contexts.waiting.borrow().lines.is_empty() {
            return Some(true);
        }
        self.room(header, message)
    }

    /// Waits for a context, or until no context can become free. Returns whether there is a context.
    pub(crate) async fn wait_for_context(&self, header: &Header, packet: &mut Arrived) -> bool {
        let (contexts, message) = (&self.receive.contexts, packet.message);
        contexts.waiting.borrow_mut().enter(message, *header);
        contexts.hold();
        if !self.is_over(header, message) {
            contexts.wait_in_line(message, Some(*header)).await;
        }
        let room = self.room(header, message).unwrap_or(false);
        contexts.let_go();
        contexts.waiting.borrow_mut().leave(message, (header.source, header.pt));
        packet.path.advance(stages::HANDLER_QUEUED, self.sim.now());
        room
    }

    /// Returns whether the buffer is stuck and this message must be dropped. No waiting message can continue, the
    /// packet buffer holds only packets of waiting messages, and this message began to wait last.
    fn stuck(&self, message: MessageId) -> bool {
        let contexts = &self.receive.contexts;
        let waiting = contexts.waiting.borrow();
        contexts.held.get() >= contexts.buffer
            && contexts.completing.get() == 0
            && waiting.last().is_some_and(|last| last.message == message)
            && !waiting.first().any(|waiting| self.room(&waiting.header, waiting.message).is_some())
    }

    /// Returns whether a message need not wait any more.
    fn is_over(&self, header: &Header, message: MessageId) -> bool {
        self.room(header, message).is_some() || self.stuck(message)
    }

    /// Returns the index of the first packet of a batch that need not wait any more.
    fn first_over(&self, batch: &Batch) -> Option<usize> {
        // Of messages with equal keys, only the first can get a context. Of all messages, only the last can be dropped.
        let none = self.receive.contexts.further.get() == 0 && {
            let waiting = self.receive.contexts.waiting.borrow();
            let mut candidates = waiting.first().chain(waiting.last());
            !candidates.any(|waiting| self.is_over(&waiting.header, waiting.message))
        };
        let is_over = |place: &Rc<InLine>| match &place.header {
            Some(header) => self.is_over(header, place.message),
            None => self.place_of(place.message).is_some(),
        };
        if none { None } else { batch.iter().position(is_over) }
    }

    /// Returns whether a message waits for a context. Its other packets wait with it.
    pub(crate) fn awaits_context(&self, message: MessageId) -> bool {
        self.receive.contexts.waiting.borrow().contains(message)
    }

    /// Makes another packet of a waiting message wait until the message has matched. Returns the message's index.
    pub(crate) async fn behind_its_header(&self, packet: &mut Arrived) -> usize {
        let message = packet.message;
        self.receive.contexts.hold();
        if self.place_of(message).is_none() {
            self.receive.contexts.wait_in_line(message, None).await;
        }
        self.receive.contexts.let_go();
        packet.path.advance(stages::HANDLER_QUEUED, self.sim.now());
        self.place_of(message).expect("just seen")
    }

    /// Lets the waiting packets of a message continue after the message has matched.
    pub(crate) fn after_match(&self) {
        self.receive.contexts.look();
    }
}
