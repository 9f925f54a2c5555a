//! The far end of a wire: the arrivals, and the task or handler that gets them.

use crate::messages::Messages;
use crate::prefetch::prefetch;
use crate::queue::Key;
use crate::shard::{Arrival, Arrivals, UNIT};
use crate::sim::Sim;
use crate::tasks::TaskRef;
use crate::units::{ArrivalOutcome, Expected, Unit};
use nicety_types::{LinkId, Time};
use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;

/// The far end of a wire.
pub(crate) struct Receiver<M> {
    pub(crate) sim: Sim,
    pub(crate) link: LinkId,
    /// This receiver's number in its shard.
    pub(crate) number: Cell<u32>,
    pub(crate) messages: Rc<Messages<M>>,
    pub(crate) taker: RefCell<Taker<M>>,
    pub(crate) units: RefCell<Expected>,
}

/// The receiver of arriving messages.
pub(crate) enum Taker<M> {
    /// A task. Messages are kept until the task takes them.
    Task(Box<Inbox<M>>),
    /// A handler, with the number that it uses for the wire.
    Handler(Rc<dyn Handler<M>>, u32),
    /// No receiver: messages are dropped.
    None,
}

/// Arrivals that a task has not taken yet.
pub(crate) struct Inbox<M> {
    /// The slot of each arrived message. The second number counts the units that arrived after the preceding message.
    pub(crate) arrived: VecDeque<(u32, u64)>,
    /// Number of units that arrived before a message that was taken without them.
    units: u64,
    pub(crate) waiting: TaskRef,
    /// Prefetches the memory to which an arriving message points.
    pub(crate) prepare: Option<fn(&M)>,
}

/// Handles the arrivals on some wires of a node, at the instant of each arrival. A handler may send messages, start
/// tasks and wake tasks. It takes no virtual time.
pub trait Handler<M> {
    /// Handles a message on the wire with `number`.
    fn message(&self, number: u32, message: M);

    /// A message or unit is about to arrive on the wire with `number`. The handler may [`prefetch`](crate::prefetch())
    /// the memory that the arrival needs. The first call prefetches the memory of the wire. Later calls can read the
    /// message, and prefetch memory to which the message points. The hint may be wrong, and no result may depend on it.
    fn prepare(&self, _number: u32, _step: Preparation<'_, M>) {}

    /// Units that were [waited for](crate::Units::wait) have arrived on the wire with `number`, and are not taken yet.
    fn units(&self, number: u32);
}

/// The part of an imminent arrival that is already known.
#[derive(Debug)]
pub enum Preparation<'a, M> {
    /// Only the wire. For a unit there is no later call.
    Wire,
    /// The message.
    Message(&'a M),
    /// The message again. The memory that the handler prefetched in the preceding call has arrived.
    Again(&'a M),
}

/// A function can handle messages. It ignores units.
impl<M, F: Fn(M)> Handler<M> for F {
    fn message(&self, _: u32, message: M) {
        self(message);
    }

    fn units(&self, _: u32) {}
}

/// An arrival on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived<M> {
    /// A message.
    Message(M),
    /// Number of units.
    Units(u64),
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

    /// Accepts a message or a unit that will arrive at `time`.
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

    pub(crate) fn accept_unit(&self, time: Time, count: u64) {
        self.sim.shard().expect_unit(time);
        if self.units.borrow_mut().insert(time, count) {
            self.push(time, count, UNIT);
        }
    }

    /// Whether a unit has arrived by the current event.
    fn has_come(&self, (time, count): Unit) -> bool {
        self.sim.shard().has_come(Key::arrival(time, self.sim.node(), self.link, count))
    }

    /// Takes the units that have arrived by the current event, and returns their number.
    pub(crate) fn take_units(&self) -> u64 {
        self.units.borrow_mut().take(|unit| self.has_come(unit))
    }

    /// Queues the arrival of the next unit as an event, unless a unit has already arrived.
    pub(crate) fn wait_for_units(&self) {
        let next = self.units.borrow_mut().want(|unit| self.has_come(unit));
        if let Some((time, count)) = next {
            self.push(time, count, UNIT);
        }
    }

    /// The inbox of a wire with a receiving task.
    pub(crate) fn inbox(&self) -> RefMut<'_, Inbox<M>> {
        RefMut::map(self.taker.borrow_mut(), |taker| match taker {
            Taker::Task(inbox) => &mut **inbox,
            _ => unreachable!("an end that is handled or dropped receives nothing"),
        })
    }

    pub(crate) fn take(&self) -> Option<M> {
        let mut inbox = self.inbox();
        let (slot, units) = inbox.arrived.pop_front()?;
        inbox.units += units;
        Some(self.messages.take(slot))
    }

    /// Takes the earliest arrival, if any.
    pub(crate) fn take_next(&self) -> Option<Arrived<M>> {
        let mut inbox = self.inbox();
        let inbox = &mut *inbox;
        let before = std::mem::take(&mut inbox.units);
        match inbox.arrived.front_mut() {
            Some((_, units)) if before + *units > 0 => Some(Arrived::Units(before + std::mem::take(units))),
            Some(_) => inbox.arrived.pop_front().map(|(slot, _)| Arrived::Message(self.messages.take(slot))),
            None => Some(before + self.take_units()).filter(|&units| units > 0).map(Arrived::Units),
        }
    }

    /// Makes the next arrival poll `task`. `before` is the same receiver's previous task.
    pub(crate) fn wait(&self, task: TaskRef, before: TaskRef) {
        let mut inbox = self.inbox();
        assert!(
            inbox.waiting == TaskRef::NONE || inbox.waiting == before,
            "two tasks receive from {} at once",
            self.link
        );
        inbox.waiting = task;
    }

    /// Prefetches for an arrival that a task receives.
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
        let ArrivalOutcome { wanted, again } = happened;
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
        // Nothing is borrowed during this drop, because the handler may own an object that uses the wire.
        if matches!(*self.taker.borrow(), Taker::Handler(..)) {
            drop(self.taker.replace(Taker::None));
        }
    }
}
