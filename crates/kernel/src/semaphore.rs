//! The counter under [`Credits`](crate::Credits), [`Pool`](crate::Pool), [`Server`](crate::Server) and
//! [`Channel`](crate::Channel): units that are taken first come, first served, and released.
//!
//! The first waiter in line is served before any later waiter gets a unit. A unit is granted at the instant when it
//! becomes free. The waiter holds the unit from then on, even before the waiter's task is polled. A waiter that is
//! dropped before this poll releases the unit.

use crate::describe;
use crate::sim::{Sim, Timer};
use crate::tasks::TaskRef;
use crate::waiters::{Line, NO_PLACE};
use nicety_types::{Duration, Time};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

pub(crate) struct Semaphore {
    sim: Sim,
    available: Cell<u64>,
    closed: Cell<bool>,
    line: RefCell<Line<Waiter>>,
}

#[derive(Clone, Copy)]
struct Waiter {
    task: TaskRef,
    amount: u64,
    /// Time for which the waiter uses the unit, if known beforehand. The waiter is then polled only at the end of its
    /// use.
    service: Option<Duration>,
    state: State,
    timer: Timer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    InLine,
    Granted(Time),
    Closed,
}

/// The error of a request that can never be granted, because the semaphore is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

impl Semaphore {
    pub(crate) fn new(sim: &Sim, available: u64) -> Rc<Semaphore> {
        Rc::new(Semaphore {
            sim: sim.clone(),
            available: Cell::new(available),
            closed: Cell::new(false),
            line: RefCell::new(Line::new()),
        })
    }

    pub(crate) fn available(&self) -> u64 {
        self.available.get()
    }

    /// The number of waiters.
    pub(crate) fn waiting(&self) -> usize {
        self.line.borrow().len()
    }

    /// Takes `amount` if it is available and no task waits.
    pub(crate) fn try_take(&self, amount: u64) -> bool {
        let available = self.available.get();
        let free = available >= amount && self.line.borrow().is_empty();
        if free {
            self.available.set(available - amount);
        }
        free
    }

    pub(crate) fn release(&self, amount: u64) {
        let available = self.available.get().checked_add(amount).expect("more than 2^64 credits");
        self.available.set(available);
        self.grant();
    }

    /// Serves the waiters in line until too few units are left for the first waiter.
    fn grant(&self) {
        let mut line = self.line.borrow_mut();
        while let Some(number) = line.first() {
            let waiter = line.get(number);
            let Some(left) = self.available.get().checked_sub(waiter.amount) else { return };
            self.available.set(left);
            let now = self.sim.now();
            waiter.state = State::Granted(now);
            match waiter.service {
                Some(service) if !service.is_zero() => {
                    waiter.timer = self.sim.timer(now + service, waiter.task)
                }
                _ => self.sim.wake(waiter.task),
            }
            line.leave(number);
        }
    }

    /// Fails all waiters, and all later requests that find too few units.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        let mut line = self.line.borrow_mut();
        while let Some(number) = line.first() {
            let waiter = line.get(number);
            waiter.state = State::Closed;
            self.sim.wake(waiter.task);
            line.leave(number);
        }
    }

    fn enter(&self, amount: u64, service: Option<Duration>) -> u32 {
        let task = self.sim.current();
        let waiter = Waiter { task, amount, service, state: State::InLine, timer: Timer::NONE };
        self.line.borrow_mut().push(waiter)
    }

    /// Returns the state of a waiter at a poll. If the waiter continues to wait, the polling task is the one that is
    /// woken.
    fn look(&self, number: u32) -> (State, Timer) {
        let task = self.sim.current();
        let mut line = self.line.borrow_mut();
        let waiter = line.get(number);
        waiter.task = task;
        if !waiter.timer.is_none() {
            waiter.timer.follow(&self.sim, task);
        }
        (waiter.state, waiter.timer)
    }

    /// Removes a waiter that is dropped before it has used its units.
    fn abandon(&self, number: u32) {
        let mut line = self.line.borrow_mut();
        let Waiter { amount, state, mut timer, .. } = *line.get(number);
        if state == State::InLine {
            line.leave(number);
        }
        line.free(number);
        drop(line);
        timer.cancel(&self.sim);
        match state {
            State::Granted(_) => self.release(amount),
            // The units may be enough for the waiters that are now first in line.
            State::InLine => self.grant(),
            State::Closed => (),
        }
    }

    fn free(&self, number: u32) {
        self.line.borrow_mut().free(number);
    }

    fn describe(&self, amount: u64) -> String {
        let units = if amount == 1 { "a unit".to_owned() } else { format!("{amount} units") };
        format!("{units} of a resource with {} free and {} in line", self.available(), self.waiting())
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} available, {} waiting", self.available(), self.waiting())
    }
}

/// Takes units, first come, first served. After this future is ready, the caller must release the units.
#[derive(Debug)]
pub(crate) struct Take {
    pub(crate) semaphore: Rc<Semaphore>,
    pub(crate) amount: u64,
    place: u32,
}

impl Take {
    pub(crate) fn new(semaphore: &Rc<Semaphore>, amount: u64) -> Take {
        Take { semaphore: semaphore.clone(), amount, place: NO_PLACE }
    }

    pub(crate) fn poll_take(&mut self) -> Poll<Result<(), Closed>> {
        let semaphore = &*self.semaphore;
        if self.place == NO_PLACE {
            if semaphore.try_take(self.amount) {
                return Poll::Ready(Ok(()));
            }
            if semaphore.closed.get() {
                return Poll::Ready(Err(Closed));
            }
            self.place = semaphore.enter(self.amount, None);
            return Poll::Pending;
        }
        let (state, _) = semaphore.look(self.place);
        if state == State::InLine {
            describe::leaf(|| semaphore.describe(self.amount));
            return Poll::Pending;
        }
        semaphore.free(self.place);
        self.place = NO_PLACE;
        Poll::Ready(if state == State::Closed { Err(Closed) } else { Ok(()) })
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        if self.place != NO_PLACE {
            self.semaphore.abandon(self.place);
        }
    }
}

/// Takes one unit, uses it for a known time and releases it. Returns the instant at which the use began. A dropped
/// future leaves the line, or releases its unit at once.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Serve {
    semaphore: Rc<Semaphore>,
    service: Duration,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Fresh,
    InLine(u32),
    Using { since: Time, timer: Timer },
    Done,
}

impl Serve {
    pub(crate) fn new(semaphore: &Rc<Semaphore>, service: Duration) -> Serve {
        Serve { semaphore: semaphore.clone(), service, step: Step::Fresh }
    }

    fn finish(&mut self, since: Time) -> Poll<Time> {
        self.step = Step::Done;
        self.semaphore.release(1);
        Poll::Ready(since)
    }
}

impl Future for Serve {
    type Output = Time;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Time> {
        let this = &mut *self;
        let semaphore = &*this.semaphore;
        let sim = &semaphore.sim;
        match this.step {
            Step::Fresh => {
                let now = sim.now();
                if !semaphore.try_take(1) {
                    this.step = Step::InLine(semaphore.enter(1, Some(this.service)));
                } else if this.service.is_zero() {
                    return this.finish(now);
                } else {
                    let timer = sim.timer(now + this.service, sim.current());
                    this.step = Step::Using { since: now, timer };
                }
            }
            Step::InLine(place) => {
                let (state, mut timer) = semaphore.look(place);
                match state {
                    State::Granted(since) if sim.now() >= since + this.service => {
                        timer.cancel(sim);
                        semaphore.free(place);
                        return this.finish(since);
                    }
                    State::InLine => describe::leaf(|| semaphore.describe(1)),
                    _ => (),
                }
            }
            Step::Using { since, ref mut timer } => {
                if sim.now() >= since + this.service {
                    timer.cancel(sim);
                    return this.finish(since);
                }
                timer.follow(sim, sim.current());
            }
            Step::Done => panic!("a finished service was polled again"),
        }
        Poll::Pending
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        match self.step {
            Step::Fresh | Step::Done => (),
            Step::InLine(place) => self.semaphore.abandon(place),
            Step::Using { mut timer, .. } => {
                timer.cancel(&self.semaphore.sim);
                self.semaphore.release(1);
            }
        }
    }
}
