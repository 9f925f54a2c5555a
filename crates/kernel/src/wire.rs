//! Wires: the only way from one node to another. One direction, at least one latency long.

use crate::describe;
use crate::shard::{Arrival, Arrivals, TaskRef};
use crate::sim::Sim;
use nicety_types::{Duration, LinkId, NodeId, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A message on its way to another shard.
pub(crate) struct Envelope<M> {
    pub(crate) link: LinkId,
    pub(crate) time: Time,
    pub(crate) count: u64,
    pub(crate) message: M,
}

/// What a shard sends to others, until all have come to the end of the window.
pub(crate) type Outbox<M> = Rc<RefCell<Vec<Envelope<M>>>>;

/// The messages on all wires that end in a shard, by slot. Those that are used again were used a moment ago.
pub(crate) struct Messages<M>(RefCell<Slots<M>>);

struct Slots<M> {
    slots: Vec<Option<M>>,
    free: Vec<u32>,
}

impl<M> Messages<M> {
    pub(crate) fn new() -> Rc<Messages<M>> {
        Rc::new(Messages(RefCell::new(Slots { slots: Vec::new(), free: Vec::new() })))
    }

    fn put(&self, message: M) -> u32 {
        let Slots { slots, free } = &mut *self.0.borrow_mut();
        match free.pop() {
            Some(slot) => {
                slots[slot as usize] = Some(message);
                slot
            }
            None => {
                slots.push(Some(message));
                // Room for all of them to be free, so that freeing never allocates.
                free.reserve(slots.capacity());
                u32::try_from(slots.len() - 1).expect("fewer than 2^32 messages on wires")
            }
        }
    }

    fn take(&self, slot: u32) -> M {
        let Slots { slots, free } = &mut *self.0.borrow_mut();
        free.push(slot);
        slots[slot as usize].take().expect("a message is taken once")
    }
}

/// What is done with each message that arrives, where no task waits for them.
type Handler<M> = Box<dyn FnMut(M)>;

/// The far end of a wire.
pub(crate) struct Receiver<M> {
    sim: Sim,
    link: LinkId,
    /// This receiver's number in its shard.
    number: Cell<u32>,
    messages: Rc<Messages<M>>,
    handler: RefCell<Option<Handler<M>>>,
    inbox: RefCell<Inbox>,
}

struct Inbox {
    /// The slots of the messages that have arrived.
    arrived: VecDeque<u32>,
    waiting: TaskRef,
    /// Whether nobody will ever look at what arrives.
    abandoned: bool,
}

impl<M: 'static> Receiver<M> {
    pub(crate) fn new(sim: Sim, link: LinkId, messages: Rc<Messages<M>>) -> Rc<Receiver<M>> {
        let inbox = Inbox { arrived: VecDeque::new(), waiting: TaskRef::NONE, abandoned: false };
        let receiver = Rc::new(Receiver {
            sim,
            link,
            number: Cell::new(0),
            messages,
            handler: RefCell::new(None),
            inbox: RefCell::new(inbox),
        });
        receiver.number.set(receiver.sim.shard().add_receiver(receiver.clone()));
        receiver
    }

    /// Takes a message that arrives later.
    pub(crate) fn accept(&self, time: Time, count: u64, message: M) {
        let slot = self.messages.put(message);
        let arrival = Arrival { time, node: self.sim.node(), link: self.link, count };
        self.sim.shard().push_arrival(arrival, self.number.get(), slot);
    }

    fn take(&self) -> Option<M> {
        let slot = self.inbox.borrow_mut().arrived.pop_front()?;
        Some(self.messages.take(slot))
    }
}

impl<M: 'static> Arrivals for Receiver<M> {
    fn arrive(&self, slot: u32) {
        if let Some(handler) = &mut *self.handler.borrow_mut() {
            return handler(self.messages.take(slot));
        }
        let mut inbox = self.inbox.borrow_mut();
        if inbox.abandoned {
            drop(inbox);
            drop(self.messages.take(slot));
            return;
        }
        inbox.arrived.push_back(slot);
        let task = inbox.waiting;
        drop(inbox);
        if task != TaskRef::NONE {
            self.sim.wake(task);
        }
    }

    fn close(&self) {
        let handler = self.handler.take();
        drop(handler);
    }
}

struct Sender<M> {
    sim: Sim,
    to: NodeId,
    link: LinkId,
    min_latency: Duration,
    count: Cell<u64>,
    way: Way<M>,
}

enum Way<M> {
    /// Both ends are in one shard: its messages, and the receiver's number there.
    Local(Rc<Messages<M>>, u32),
    Remote(Outbox<M>),
}

/// The near end of a wire; see [`World::wire`](crate::World::wire). Clones send on the same wire.
pub struct WireTx<M>(Rc<Sender<M>>);

impl<M: Send + 'static> WireTx<M> {
    pub(crate) fn local(sim: Sim, receiver: &Receiver<M>, min_latency: Duration) -> WireTx<M> {
        let (to, link) = (receiver.sim.node(), receiver.link);
        let way = Way::Local(receiver.messages.clone(), receiver.number.get());
        WireTx(Rc::new(Sender { sim, to, link, min_latency, count: Cell::new(0), way }))
    }

    pub(crate) fn remote(sim: Sim, end: &Receiver<M>, outbox: Outbox<M>, min_latency: Duration) -> WireTx<M> {
        let (to, link) = (end.sim.node(), end.link);
        WireTx(Rc::new(Sender { sim, to, link, min_latency, count: Cell::new(0), way: Way::Remote(outbox) }))
    }

    /// Sends a message that arrives at `arrival`. Messages of one wire that arrive at the same instant do so in
    /// the order in which they were sent.
    ///
    /// # Panics
    /// When `arrival` is earlier than the wire's smallest latency from now: other nodes may already have gone on.
    pub fn send(&self, arrival: Time, message: M) {
        let Sender { sim, link, min_latency, count, .. } = &*self.0;
        let earliest = sim.now() + *min_latency;
        assert!(
            arrival >= earliest,
            "a message on {link} from {} to {} cannot arrive at {arrival}: sent at {} with a latency of at least \
             {min_latency}, it arrives at {earliest} or later",
            sim.node(),
            self.0.to,
            sim.now(),
        );
        let number = count.get();
        count.set(number + 1);
        match &self.0.way {
            Way::Local(messages, receiver) => {
                let at = Arrival { time: arrival, node: self.0.to, link: *link, count: number };
                sim.shard().push_arrival(at, *receiver, messages.put(message));
            }
            Way::Remote(outbox) => {
                outbox.borrow_mut().push(Envelope { link: *link, time: arrival, count: number, message });
            }
        }
    }

    /// The wire's number, in the order of creation.
    pub fn link(&self) -> LinkId {
        self.0.link
    }

    /// The node at the far end.
    pub fn to(&self) -> NodeId {
        self.0.to
    }

    /// The least time a message takes.
    pub fn min_latency(&self) -> Duration {
        self.0.min_latency
    }
}

impl<M> Clone for WireTx<M> {
    fn clone(&self) -> WireTx<M> {
        WireTx(self.0.clone())
    }
}

impl<M> fmt::Debug for WireTx<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WireTx({} from {} to {})", self.0.link, self.0.sim.node(), self.0.to)
    }
}

/// The far end of a wire; see [`World::wire`](crate::World::wire). One task receives from it at a time, or a
/// [handler](WireRx::handle) gets what arrives. Once it is dropped, what arrives is discarded.
pub struct WireRx<M: 'static> {
    receiver: Rc<Receiver<M>>,
    from: NodeId,
}

impl<M: Send + 'static> WireRx<M> {
    pub(crate) fn new(receiver: Rc<Receiver<M>>, from: NodeId) -> WireRx<M> {
        WireRx { receiver, from }
    }

    /// Waits for a message and takes it. Dropped while it waits, it takes none.
    ///
    /// # Panics
    /// When another task is waiting already.
    pub fn recv(&self) -> Recv<'_, M> {
        Recv { rx: self, task: TaskRef::NONE }
    }

    /// Has each message handled as it arrives, which is one event; a task would be woken by it, which is another.
    /// The handler is part of the node: it may send, start tasks and wake them, and takes no time.
    ///
    /// # Panics
    /// When messages have arrived already.
    pub fn handle(self, handler: impl FnMut(M) + 'static) {
        assert!(self.is_empty(), "messages have arrived on {} before their handler", self.link());
        *self.receiver.handler.borrow_mut() = Some(Box::new(handler));
    }

    /// Takes the first message that has arrived, if there is one.
    pub fn try_recv(&self) -> Option<M> {
        self.receiver.take()
    }

    /// How many messages have arrived and wait.
    pub fn len(&self) -> usize {
        self.receiver.inbox.borrow().arrived.len()
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The wire's number, in the order of creation.
    pub fn link(&self) -> LinkId {
        self.receiver.link
    }

    /// The node at the near end.
    pub fn from(&self) -> NodeId {
        self.from
    }
}

impl<M> Drop for WireRx<M> {
    fn drop(&mut self) {
        let mut inbox = self.receiver.inbox.borrow_mut();
        inbox.abandoned = true;
        let arrived = std::mem::take(&mut inbox.arrived);
        drop(inbox);
        for slot in arrived {
            drop(self.receiver.messages.take(slot));
        }
    }
}

impl<M> fmt::Debug for WireRx<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WireRx({} from {} to {})", self.receiver.link, self.from, self.receiver.sim.node())
    }
}

/// Waits for a message; see [`WireRx::recv`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a, M: 'static> {
    rx: &'a WireRx<M>,
    task: TaskRef,
}

impl<M: Send + 'static> Future for Recv<'_, M> {
    type Output = M;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<M> {
        let receiver = &self.rx.receiver;
        if let Some(message) = receiver.take() {
            return Poll::Ready(message);
        }
        let task = receiver.sim.current();
        let mut inbox = receiver.inbox.borrow_mut();
        assert!(
            inbox.waiting == TaskRef::NONE || inbox.waiting == self.task,
            "two tasks receive from {} at once",
            receiver.link
        );
        inbox.waiting = task;
        drop(inbox);
        self.task = task;
        describe::leaf(|| format!("a message on {} from {}", self.rx.receiver.link, self.rx.from));
        Poll::Pending
    }
}

impl<M> Drop for Recv<'_, M> {
    fn drop(&mut self) {
        if self.task != TaskRef::NONE {
            self.rx.receiver.inbox.borrow_mut().waiting = TaskRef::NONE;
        }
    }
}
