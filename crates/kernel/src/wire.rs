//! Wires: the only connections between nodes. A wire has one direction, and a latency of at least one picosecond.

use crate::describe;
use crate::messages::Messages;
use crate::prefetch::prefetch;
use crate::queue::Key;
use crate::shard::{Arrival, Arrivals, TaskRef, UNIT};
use crate::sim::Sim;
use crate::units::{Expected, Happened, Unit};
use nicety_types::{Duration, LinkId, NodeId, Time};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A message in flight to another shard.
#[derive(Debug, Serialize, Deserialize)]
pub struct Envelope<M> {
    /// The wire.
    pub link: LinkId,
    /// When it arrives.
    pub time: Time,
    /// Number of its predecessors on the wire.
    pub count: u64,
    /// `None` for a unit.
    pub message: Option<M>,
}

/// The messages of a shard to each shard, collected until the end of the window.
pub(crate) type Outbox<M> = Rc<RefCell<Vec<Vec<Envelope<M>>>>>;

/// The far end of a wire.
pub(crate) struct Receiver<M> {
    sim: Sim,
    link: LinkId,
    /// This receiver's number in its shard.
    number: Cell<u32>,
    messages: Rc<Messages<M>>,
    taker: RefCell<Taker<M>>,
    units: RefCell<Expected>,
}

/// The receiver of arriving messages.
enum Taker<M> {
    /// A task: messages are kept for it.
    Task(Box<Inbox<M>>),
    /// A handler, with the number that it uses for the wire.
    Handler(Rc<dyn Handler<M>>, u32),
    /// They are dropped.
    None,
}

struct Inbox<M> {
    /// The slots of arrived messages, and the number of units that arrived before each and after the last.
    arrived: VecDeque<(u32, u64)>,
    /// Units that arrived before a message that was taken without them.
    units: u64,
    waiting: TaskRef,
    /// Prefetches the memory to which an arriving message points.
    prepare: Option<fn(&M)>,
}

/// Handles the arrivals on some wires of a node, at once. It may send, start tasks and wake them, and takes
/// no time.
pub trait Handler<M> {
    /// Handles a message on the wire with `number`.
    fn message(&self, number: u32, message: M);

    /// A message or unit is about to arrive on the wire with `number`: a good moment to [`prefetch`](crate::prefetch())
    /// the memory that it needs. First this is the wire's, later, when the message can be read, the message's. This is
    /// a hint that may be wrong, and no result may depend on it.
    fn prepare(&self, _number: u32, _step: Preparation<'_, M>) {}

    /// Units that were [waited for](Units::wait) have arrived on the wire with `number`, and are not taken yet.
    fn units(&self, number: u32);
}

/// The known part of an imminent arrival.
#[derive(Debug)]
pub enum Preparation<'a, M> {
    /// The wire. A unit has no further steps.
    Wire,
    /// The message.
    Message(&'a M),
    /// The message again, now with its prefetched memory.
    Again(&'a M),
}

/// A function handles messages if no units are sent.
impl<M, F: Fn(M)> Handler<M> for F {
    fn message(&self, _: u32, message: M) {
        self(message);
    }

    fn units(&self, _: u32) {}
}

impl<M: 'static> Receiver<M> {
    pub(crate) fn new(sim: Sim, link: LinkId, messages: Rc<Messages<M>>) -> Rc<Receiver<M>> {
        let inbox = Inbox { arrived: VecDeque::new(), units: 0, waiting: TaskRef::NONE, prepare: None };
        let receiver = Rc::new(Receiver {
            sim,
            link,
            number: Cell::new(0),
            messages,
            taker: RefCell::new(Taker::Task(Box::new(inbox))),
            units: RefCell::new(Expected::new()),
        });
        receiver.number.set(receiver.sim.shard().add_receiver(receiver.clone()));
        receiver
    }

    /// Accepts a message or a unit that arrives later.
    pub(crate) fn accept(&self, time: Time, count: u64, message: Option<M>) {
        match message {
            Some(message) => self.push(time, count, self.messages.put(message)),
            None => self.accept_unit(time, count),
        }
    }

    fn push(&self, time: Time, count: u64, slot: u32) {
        let arrival = Arrival { time, node: self.sim.node(), link: self.link, count };
        self.sim.shard().push_arrival(arrival, self.number.get(), slot);
    }

    fn accept_unit(&self, time: Time, count: u64) {
        self.sim.shard().expect_unit(time);
        if self.units.borrow_mut().insert(time, count) {
            self.push(time, count, UNIT);
        }
    }

    /// Whether a unit has arrived by now.
    fn has_come(&self, (time, count): Unit) -> bool {
        self.sim.shard().has_come(Key::arrival(time, self.sim.node(), self.link, count))
    }

    /// Takes the units that have arrived by now.
    fn take_units(&self) -> u64 {
        self.units.borrow_mut().take(|unit| self.has_come(unit))
    }

    /// Makes the arrival of the next unit an event.
    fn wait_for_units(&self) {
        let next = self.units.borrow_mut().want(|unit| self.has_come(unit));
        if let Some((time, count)) = next {
            self.push(time, count, UNIT);
        }
    }

    /// The inbox of a wire with a receiving task.
    fn inbox(&self) -> RefMut<'_, Inbox<M>> {
        RefMut::map(self.taker.borrow_mut(), |taker| match taker {
            Taker::Task(inbox) => &mut **inbox,
            _ => unreachable!("an end that is handled or dropped receives nothing"),
        })
    }

    fn take(&self) -> Option<M> {
        let mut inbox = self.inbox();
        let (slot, units) = inbox.arrived.pop_front()?;
        inbox.units += units;
        Some(self.messages.take(slot))
    }

    /// Takes the earliest arrival.
    fn take_next(&self) -> Option<Arrived<M>> {
        let mut inbox = self.inbox();
        let inbox = &mut *inbox;
        let before = std::mem::take(&mut inbox.units);
        match inbox.arrived.front_mut() {
            Some((_, units)) if before + *units > 0 => Some(Arrived::Units(before + std::mem::take(units))),
            Some(_) => inbox.arrived.pop_front().map(|(slot, _)| Arrived::Message(self.messages.take(slot))),
            None => Some(before + self.take_units()).filter(|&units| units > 0).map(Arrived::Units),
        }
    }

    /// Schedules a poll of a task at the next arrival.
    fn wait(&self, task: TaskRef, before: TaskRef) {
        let mut inbox = self.inbox();
        assert!(
            inbox.waiting == TaskRef::NONE || inbox.waiting == before,
            "two tasks receive from {} at once",
            self.link
        );
        inbox.waiting = task;
    }

    /// Prefetches for a message that a task receives.
    fn prepare_task(&self, inbox: &Inbox<M>, slot: u32, steps: usize) {
        if steps == 4 {
            prefetch(inbox);
            if slot != UNIT {
                self.messages.prefetch(slot);
            }
            return;
        }
        if let (3, Some(prepare)) = (steps, inbox.prepare)
            && slot != UNIT
        {
            self.messages.look(slot, prepare);
        }
        if inbox.waiting != TaskRef::NONE {
            self.sim.shard().prepare_task(inbox.waiting, steps);
        }
    }

    fn wake(&self, inbox: &Inbox<M>) {
        if inbox.waiting != TaskRef::NONE {
            self.sim.wake(inbox.waiting);
        }
    }
}

impl<M: 'static> Arrivals for Receiver<M> {
    fn arrive(&self, slot: u32) {
        if let Taker::Handler(handler, number) = &*self.taker.borrow() {
            return handler.message(*number, self.messages.take(slot));
        }
        let Taker::Task(inbox) = &mut *self.taker.borrow_mut() else {
            return drop(self.messages.take(slot));
        };
        inbox.arrived.push_back((slot, self.take_units()));
        self.wake(inbox);
    }

    fn unit(&self) -> bool {
        let happened = self.units.borrow_mut().happen(self.sim.now(), |unit| self.has_come(unit));
        let Happened { wanted, again } = happened;
        if let Some((time, count)) = again {
            self.push(time, count, UNIT);
        }
        if wanted {
            match &*self.taker.borrow() {
                Taker::Handler(handler, number) => handler.units(*number),
                Taker::Task(inbox) => self.wake(inbox),
                Taker::None => (),
            }
        }
        wanted
    }

    fn prepare(&self, slot: u32, steps: usize) {
        let taker = self.taker.borrow();
        let message = |prepare: &dyn Fn(&M)| {
            if slot != UNIT {
                self.messages.look(slot, prepare);
            }
        };
        let (handler, number) = match &*taker {
            Taker::Handler(handler, number) => (handler, number),
            Taker::Task(inbox) => return self.prepare_task(inbox, slot, steps),
            Taker::None => return,
        };
        match steps {
            1 => message(&|message| handler.prepare(*number, Preparation::Again(message))),
            2 => message(&|message| handler.prepare(*number, Preparation::Message(message))),
            3 => handler.prepare(*number, Preparation::Wire),
            _ => {
                prefetch(&**handler);
                if slot != UNIT {
                    self.messages.prefetch(slot);
                }
            }
        }
    }

    fn close(&self) {
        // Dropped while nothing is borrowed: the handler may own a user of the wire.
        if matches!(*self.taker.borrow(), Taker::Handler(..)) {
            drop(self.taker.replace(Taker::None));
        }
    }
}

/// The near end of a wire; see [`World::wire`](crate::World::wire).
pub struct WireTx<M> {
    sim: Sim,
    to: NodeId,
    link: LinkId,
    min_latency: Duration,
    count: Cell<u64>,
    way: Way<M>,
}

enum Way<M> {
    /// Both ends are in one shard. A message needs only the number of the far end and the storage.
    Local { number: u32, messages: Rc<Messages<M>>, receiver: Rc<Receiver<M>> },
    /// The outbox of the near end's shard, and the shard of the far end.
    Remote(Outbox<M>, usize),
}

impl<M: Send + 'static> WireTx<M> {
    fn new(sim: Sim, end: &Receiver<M>, min_latency: Duration, way: Way<M>) -> WireTx<M> {
        WireTx { sim, to: end.sim.node(), link: end.link, min_latency, count: Cell::new(0), way }
    }

    pub(crate) fn local(sim: Sim, receiver: &Rc<Receiver<M>>, min_latency: Duration) -> WireTx<M> {
        let (number, messages) = (receiver.number.get(), receiver.messages.clone());
        let way = Way::Local { number, messages, receiver: receiver.clone() };
        WireTx::new(sim, receiver, min_latency, way)
    }

    pub(crate) fn remote(
        sim: Sim,
        end: &Receiver<M>,
        (outbox, shard): (Outbox<M>, usize),
        min_latency: Duration,
    ) -> WireTx<M> {
        WireTx::new(sim, end, min_latency, Way::Remote(outbox, shard))
    }

    /// Sends a message that arrives at `arrival`. Messages of one wire with the same arrival time arrive in the order
    /// in which they were sent.
    ///
    /// # Panics
    /// If `arrival` is earlier than the wire's minimum latency from now: other nodes may already have advanced.
    pub fn send(&self, arrival: Time, message: M) {
        let count = self.departs(arrival);
        match &self.way {
            Way::Local { number, messages, .. } => {
                let at = Arrival { time: arrival, node: self.to, link: self.link, count };
                self.sim.shard().push_arrival(at, *number, messages.put(message));
            }
            Way::Remote(outbox, shard) => {
                let link = self.link;
                outbox.borrow_mut()[*shard].push(Envelope {
                    link,
                    time: arrival,
                    count,
                    message: Some(message),
                });
            }
        }
    }

    /// Sends a unit that arrives at `arrival`: a message without data, such as a credit, for which only the count
    /// matters. Its arrival is an event only if the far end waits for it. It has its place in the order of arrivals in
    /// either case.
    ///
    /// # Panics
    /// As [`WireTx::send`].
    pub fn send_unit(&self, arrival: Time) {
        let count = self.departs(arrival);
        match &self.way {
            Way::Local { receiver, .. } => receiver.accept_unit(arrival, count),
            Way::Remote(outbox, shard) => {
                let link = self.link;
                outbox.borrow_mut()[*shard].push(Envelope { link, time: arrival, count, message: None });
            }
        }
    }

    /// Registers a message or unit that arrives at `arrival`. Returns its number on the wire.
    fn departs(&self, arrival: Time) -> u64 {
        let WireTx { sim, link, min_latency, count, .. } = self;
        let earliest = sim.now() + *min_latency;
        assert!(
            arrival >= earliest,
            "a message on {link} from {} to {} cannot arrive at {arrival}: sent at {} with a latency of at least \
             {min_latency}, it arrives at {earliest} or later",
            sim.node(),
            self.to,
            sim.now(),
        );
        let number = count.get();
        count.set(number + 1);
        number
    }

    /// Prefetches the far end, like [`prefetch`](crate::prefetch()). A unit needs it, a message does not.
    pub fn prefetch(&self) {
        if let Way::Local { receiver, .. } = &self.way {
            prefetch(&**receiver);
        }
    }

    /// Prefetches the memory for a unit, after [`WireTx::prefetch`] has fetched the far end.
    pub fn prefetch_units(&self) {
        if let Way::Local { receiver, .. } = &self.way {
            receiver.units.borrow().prefetch();
        }
    }

    /// The wire's number, in order of creation.
    pub fn link(&self) -> LinkId {
        self.link
    }

    /// The node at the far end.
    pub fn to(&self) -> NodeId {
        self.to
    }

    /// The minimum latency of a message.
    pub fn min_latency(&self) -> Duration {
        self.min_latency
    }
}

impl<M> fmt::Debug for WireTx<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WireTx({} from {} to {})", self.link, self.sim.node(), self.to)
    }
}

/// The far end of a wire; see [`World::wire`](crate::World::wire). One task receives from it at a time, or a
/// [handler](WireRx::handle) gets the arrivals. Once it is dropped, arrivals are discarded.
pub struct WireRx<M: 'static> {
    receiver: Rc<Receiver<M>>,
    from: NodeId,
}

impl<M: Send + 'static> WireRx<M> {
    pub(crate) fn new(receiver: Rc<Receiver<M>>, from: NodeId) -> WireRx<M> {
        WireRx { receiver, from }
    }

    /// Calls `prefetch` for a message that is about to arrive for a task, once it can be read. That is a good moment to
    /// [`prefetch`](crate::prefetch()) the memory to which it points. This is a hint, like [`Handler::prepare`].
    pub fn prepare(&self, prefetch: fn(&M)) {
        self.receiver.inbox().prepare = Some(prefetch);
    }

    /// Waits for a message and takes it. If dropped while it waits, it takes none.
    ///
    /// # Panics
    /// If another task is already waiting.
    pub fn recv(&self) -> Recv<'_, M> {
        Recv { rx: self, task: TaskRef::NONE }
    }

    /// Waits for a message or units, and takes the first to arrive. Units that arrive while no task [waits for
    /// them](WireRx::wait_for_units) are taken with the next arrival. If dropped while it waits, it takes nothing.
    ///
    /// # Panics
    /// If another task is already waiting.
    pub fn next(&self) -> Next<'_, M> {
        Next(self.recv())
    }

    /// Handles each message at its arrival, in one event; a task would need another event. The handler is part of the
    /// node, and uses `number` for this wire. The returned value takes units.
    ///
    /// # Panics
    /// If messages have already arrived.
    pub fn handle(self, handler: Rc<dyn Handler<M>>, number: u32) -> Units<M> {
        assert!(self.is_empty(), "messages have arrived on {} before their handler", self.link());
        *self.receiver.taker.borrow_mut() = Taker::Handler(handler, number);
        Units(self.receiver.clone())
    }

    /// Takes the arrived units, if a task waits by [`WireRx::next`] and has got nothing yet. It would have taken them
    /// at their arrival.
    pub fn take_units(&self) -> u64 {
        let inbox = self.receiver.inbox();
        if inbox.waiting == TaskRef::NONE || !inbox.arrived.is_empty() {
            0
        } else {
            self.receiver.take_units()
        }
    }

    /// Makes the next unit poll the task that waits by [`WireRx::next`], once. It does not if a unit has already
    /// arrived, which the task will find.
    pub fn wait_for_units(&self) {
        self.receiver.wait_for_units();
    }

    /// Takes the first message that has arrived, if any.
    pub fn try_recv(&self) -> Option<M> {
        self.receiver.take()
    }

    /// Number of messages that have arrived and wait.
    pub fn len(&self) -> usize {
        self.receiver.inbox().arrived.len()
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The wire's number, in order of creation.
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
        let taker = match &mut *self.receiver.taker.borrow_mut() {
            Taker::Handler(..) => return,
            taker => std::mem::replace(taker, Taker::None),
        };
        self.receiver.units.borrow_mut().close();
        if let Taker::Task(inbox) = taker {
            inbox.arrived.iter().for_each(|(slot, _)| drop(self.receiver.messages.take(*slot)));
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
        self.pend();
        Poll::Pending
    }
}

impl<M: Send + 'static> Recv<'_, M> {
    fn pend(&mut self) {
        let receiver = &self.rx.receiver;
        let task = receiver.sim.current();
        receiver.wait(task, self.task);
        self.task = task;
        describe::leaf(|| format!("a message on {} from {}", self.rx.receiver.link, self.rx.from));
    }
}

impl<M> Drop for Recv<'_, M> {
    fn drop(&mut self) {
        if self.task != TaskRef::NONE {
            self.rx.receiver.inbox().waiting = TaskRef::NONE;
        }
    }
}

/// An arrival on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived<M> {
    /// A message.
    Message(M),
    /// Number of units.
    Units(u64),
}

/// Waits for a message or units; see [`WireRx::next`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Next<'a, M: 'static>(Recv<'a, M>);

impl<M: Send + 'static> Future for Next<'_, M> {
    type Output = Arrived<M>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Arrived<M>> {
        // A task that is polled for its description has not been woken, though a unit may have arrived unnoticed.
        let arrived = if describe::is_describing() { None } else { self.0.rx.receiver.take_next() };
        if arrived.is_none() {
            self.0.pend();
        }
        arrived.map_or(Poll::Pending, Poll::Ready)
    }
}

/// The units on a wire with [handled](WireRx::handle) messages.
pub struct Units<M: 'static>(Rc<Receiver<M>>);

impl<M: 'static> Units<M> {
    /// Takes the units that arrived before the current event, in order of arrival.
    pub fn take(&self) -> u64 {
        self.0.take_units()
    }

    /// Prefetches them, like [`prefetch`](crate::prefetch()).
    pub fn prefetch(&self) {
        prefetch(&*self.0);
    }

    /// Number of units sent and not taken.
    pub fn outstanding(&self) -> u64 {
        self.0.units.borrow().len()
    }

    /// Makes the next arrival notify the handler, once. It does not if an untaken unit has already arrived.
    pub fn wait(&self) {
        self.0.wait_for_units();
    }
}

impl<M> fmt::Debug for Units<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Units({})", self.0.link)
    }
}
