//! Wires: the only connections between nodes. A wire has one direction, and a latency of at least one picosecond.

use crate::describe;
use crate::messages::Messages;
use crate::prefetch::prefetch;
use crate::receiver::{Arrived, Handler, Receiver, Taker};
use crate::shard::Arrival;
use crate::sim::Sim;
use crate::tasks::TaskRef;
use nicety_types::{Duration, LinkId, NodeId, Time};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
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
    /// The time of its arrival.
    pub time: Time,
    /// Number of earlier messages and units on the wire.
    pub count: u64,
    /// `None` for a unit.
    pub message: Option<M>,
}

/// The messages that a shard sends to each shard, collected until the end of the window.
pub(crate) type Outbox<M> = Rc<RefCell<Vec<Vec<Envelope<M>>>>>;

/// The near end of a wire; see [`World::wire`](crate::World::wire).
pub struct WireTx<M> {
    sim: Sim,
    to: NodeId,
    link: LinkId,
    min_latency: Duration,
    count: Cell<u64>,
    way: Far<M>,
}

enum Far<M> {
    /// Both ends are in one shard. Sending a message needs only the far end's `number` and the storage `messages`.
    /// Sending a unit needs the receiver.
    Local { number: u32, messages: Rc<Messages<M>>, receiver: Rc<Receiver<M>> },
    /// The outbox of the near end's shard, and the shard of the far end.
    Remote(Outbox<M>, usize),
}

impl<M: Send + 'static> WireTx<M> {
    fn new(sim: Sim, end: &Receiver<M>, min_latency: Duration, way: Far<M>) -> WireTx<M> {
        WireTx { sim, to: end.sim.node(), link: end.link, min_latency, count: Cell::new(0), way }
    }

    pub(crate) fn local(sim: Sim, receiver: &Rc<Receiver<M>>, min_latency: Duration) -> WireTx<M> {
        let (number, messages) = (receiver.number.get(), receiver.messages.clone());
        let way = Far::Local { number, messages, receiver: receiver.clone() };
        WireTx::new(sim, receiver, min_latency, way)
    }

    pub(crate) fn remote(
        sim: Sim,
        end: &Receiver<M>,
        (outbox, shard): (Outbox<M>, usize),
        min_latency: Duration,
    ) -> WireTx<M> {
        WireTx::new(sim, end, min_latency, Far::Remote(outbox, shard))
    }

    /// Sends a message that arrives at `arrival`. Messages of one wire with the same arrival time arrive in the order
    /// in which they were sent.
    ///
    /// # Panics
    /// If `arrival` is earlier than now plus the wire's minimum latency: other nodes may already have advanced to that
    /// time.
    pub fn send(&self, arrival: Time, message: M) {
        let count = self.departs(arrival);
        match &self.way {
            Far::Local { number, messages, .. } => {
                let at = Arrival { time: arrival, node: self.to, link: self.link, count };
                self.sim.shard().push_arrival(at, *number, messages.put(message));
            }
            Far::Remote(outbox, shard) => {
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

    /// Sends a unit that arrives at `arrival`: a message without data, such as a credit. Only the number of units
    /// matters. The arrival is an event only if the far end waits for the unit. In either case the unit has its place
    /// in the order of arrivals.
    ///
    /// # Panics
    /// Like [`WireTx::send`].
    pub fn send_unit(&self, arrival: Time) {
        let count = self.departs(arrival);
        match &self.way {
            Far::Local { receiver, .. } => receiver.accept_unit(arrival, count),
            Far::Remote(outbox, shard) => {
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

    /// Prefetches the far end, like [`prefetch`](crate::prefetch()). Sending a unit reads the far end; sending a
    /// message does not.
    pub fn prefetch(&self) {
        if let Far::Local { receiver, .. } = &self.way {
            prefetch(&**receiver);
        }
    }

    /// Prefetches the memory for a unit, after [`WireTx::prefetch`] has fetched the far end.
    pub fn prefetch_units(&self) {
        if let Far::Local { receiver, .. } = &self.way {
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

/// The far end of a wire; see [`World::wire`](crate::World::wire). One task at a time receives from it, or a
/// [handler](WireRx::handle) gets the arrivals. After the far end is dropped, arrivals are discarded.
pub struct WireRx<M: 'static> {
    receiver: Rc<Receiver<M>>,
    from: NodeId,
}

impl<M: Send + 'static> WireRx<M> {
    pub(crate) fn new(receiver: Rc<Receiver<M>>, from: NodeId) -> WireRx<M> {
        WireRx { receiver, from }
    }

    /// Calls `prefetch` with a message that is about to arrive for a task, once the message can be read. The function may
    /// [`prefetch`](crate::prefetch()) the memory to which the message points. This is a hint, like [`Handler::prepare`].
    pub fn prepare(&self, prefetch: fn(&M)) {
        self.receiver.inbox().prepare = Some(prefetch);
    }

    /// Waits for a message and takes it. A future that is dropped while it waits takes no message.
    ///
    /// # Panics
    /// If another task is already waiting.
    pub fn recv(&self) -> Recv<'_, M> {
        Recv { rx: self, task: TaskRef::NONE }
    }

    /// Waits for a message or units, and takes the first to arrive. Units that arrive while no task [waits for
    /// them](WireRx::wait_for_units) are taken with the next arrival. A future that is dropped while it waits takes
    /// nothing.
    ///
    /// # Panics
    /// If another task is already waiting.
    pub fn next(&self) -> Next<'_, M> {
        Next(self.recv())
    }

    /// Calls `handler` for each message, in the event of its arrival. A receiving task would need another event. The
    /// handler belongs to the node, and gets `number` as the number of this wire. The caller takes the units of this
    /// wire from the returned [`Units`].
    ///
    /// # Panics
    /// If messages have already arrived.
    pub fn handle(self, handler: Rc<dyn Handler<M>>, number: u32) -> Units<M> {
        assert!(self.is_empty(), "messages have arrived on {} before their handler", self.link());
        *self.receiver.taker.borrow_mut() = Taker::Handler(handler, number);
        Units(self.receiver.clone())
    }

    /// Takes the arrived units, if a task waits by [`WireRx::next`] and no message has arrived. If the arrivals of
    /// units were events, the waiting task would already have taken them. Otherwise returns 0.
    pub fn take_units(&self) -> u64 {
        let inbox = self.receiver.inbox();
        if inbox.waiting == TaskRef::NONE || !inbox.arrived.is_empty() {
            0
        } else {
            self.receiver.take_units()
        }
    }

    /// Makes the arrival of the next unit poll the task that waits by [`WireRx::next`], once. Has no effect if a unit
    /// has already arrived: the task's next poll takes that unit.
    pub fn wait_for_units(&self) {
        self.receiver.wait_for_units();
    }

    /// Takes the first message that has arrived, if any.
    pub fn try_recv(&self) -> Option<M> {
        self.receiver.take()
    }

    /// Number of messages that have arrived and are not taken.
    pub fn len(&self) -> usize {
        self.receiver.inbox().arrived.len()
    }

    /// Whether no arrived message is left to take.
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

/// Waits for a message or units; see [`WireRx::next`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Next<'a, M: 'static>(Recv<'a, M>);

impl<M: Send + 'static> Future for Next<'_, M> {
    type Output = Arrived<M>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Arrived<M>> {
        // The kernel polls this task for its description. No event has woken it, although a unit may have arrived.
        let arrived = if describe::is_describing() { None } else { self.0.rx.receiver.take_next() };
        if arrived.is_none() {
            self.0.pend();
        }
        arrived.map_or(Poll::Pending, Poll::Ready)
    }
}

/// The units on a wire with a [handler](WireRx::handle) of messages.
pub struct Units<M: 'static>(Rc<Receiver<M>>);

impl<M: 'static> Units<M> {
    /// Takes the units that come before the current event in the order of arrivals, and returns their number.
    pub fn take(&self) -> u64 {
        self.0.take_units()
    }

    /// Prefetches the units, like [`prefetch`](crate::prefetch()).
    pub fn prefetch(&self) {
        prefetch(&*self.0);
    }

    /// Number of units sent and not taken.
    pub fn outstanding(&self) -> u64 {
        self.0.units.borrow().len()
    }

    /// Makes the arrival of the next unit notify the handler, once. Has no effect if an untaken unit has already arrived.
    pub fn wait(&self) {
        self.0.wait_for_units();
    }
}

impl<M> fmt::Debug for Units<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Units({})", self.0.link)
    }
}
