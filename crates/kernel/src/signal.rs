//! [`Signal`]: notifies tasks of a change.

use crate::describe;
use crate::sim::Sim;
use crate::tasks::TaskRef;
use crate::waiters::{Line, NO_PLACE};
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Wakes the tasks that wait for a change of some other state. A signal does not store notifications: a task that
/// begins to wait after a notification waits for the next one. So check the state before waiting, or use
/// [`wait_until`](Signal::wait_until). A clone is another handle to the same signal.
#[derive(Clone)]
pub struct Signal(Rc<Shared>);

struct Shared {
    sim: Sim,
    line: RefCell<Line<Waiter>>,
}

#[derive(Clone, Copy)]
struct Waiter {
    task: TaskRef,
    notified: Notified,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Notified {
    No,
    /// Only this waiter is notified. A waiter that is dropped before its poll passes the notification on to the next
    /// waiter.
    Alone,
    WithAll,
}

impl Signal {
    /// Returns a signal without waiters.
    pub fn new(sim: &Sim) -> Signal {
        Signal(Rc::new(Shared { sim: sim.clone(), line: RefCell::new(Line::new()) }))
    }

    /// Wakes the task that has waited longest, if any, and lets it run before all other woken tasks. The calling task
    /// continues directly after the woken task.
    pub fn go_first(&self) -> GoFirst {
        GoFirst { signal: self.clone(), gone: false }
    }

    /// Wakes the task that has waited longest, if any.
    pub fn notify_one(&self) {
        self.notify(Notified::Alone);
    }

    /// Wakes all waiting tasks in order of arrival.
    pub fn notify_all(&self) {
        while self.notify(Notified::WithAll) {}
    }

    fn notify(&self, how: Notified) -> bool {
        let Some(task) = self.notified(how) else { return false };
        self.0.sim.wake(task);
        true
    }

    /// Notifies the task that has waited longest, if any.
    fn notified(&self, how: Notified) -> Option<TaskRef> {
        let mut line = self.0.line.borrow_mut();
        let number = line.first()?;
        line.leave(number);
        let waiter = line.get(number);
        waiter.notified = how;
        Some(waiter.task)
    }

    /// Waits for a notification that comes after the first poll. A waiter that was notified alone, and is dropped
    /// before its next poll, passes the notification on to the next waiter.
    pub fn wait(&self) -> Wait {
        Wait { signal: self.clone(), place: NO_PLACE }
    }

    /// Waits until `condition` holds. Checks the condition at once and after each notification. If several tasks wait
    /// for different conditions, use [`notify_all`](Signal::notify_all). A notification of one task is used up even if
    /// that task's condition does not hold.
    pub fn wait_until<C: FnMut() -> bool + Unpin>(&self, condition: C) -> WaitUntil<C> {
        WaitUntil { wait: self.wait(), condition }
    }

    /// Number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.0.line.borrow().len()
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signal({} waiting)", self.waiting())
    }
}

/// Lets a waiting task go first; see [`Signal::go_first`].
#[derive(Debug)]
#[must_use = "it is done where it is awaited"]
pub struct GoFirst {
    signal: Signal,
    gone: bool,
}

impl Future for GoFirst {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.gone {
            return Poll::Ready(());
        }
        self.gone = true;
        let shard = self.signal.0.sim.shard();
        shard.wake_first(self.signal.0.sim.current());
        if let Some(task) = self.signal.notified(Notified::Alone) {
            shard.wake_first(task);
        }
        Poll::Pending
    }
}

/// Waits for a notification; see [`Signal::wait`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Wait {
    signal: Signal,
    place: u32,
}

impl Wait {
    /// Leaves the line. Returns the kind of notification.
    fn leave(&mut self) -> Notified {
        let mut line = self.signal.0.line.borrow_mut();
        let notified = line.get(self.place).notified;
        if notified == Notified::No {
            line.leave(self.place);
        }
        line.free(self.place);
        self.place = NO_PLACE;
        notified
    }
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Shared { sim, line } = &*this.signal.0;
        let task = sim.current();
        if this.place == NO_PLACE {
            this.place = line.borrow_mut().push(Waiter { task, notified: Notified::No });
            return Poll::Pending;
        }
        let mut waiters = line.borrow_mut();
        let waiter = waiters.get(this.place);
        waiter.task = task;
        if waiter.notified == Notified::No {
            describe::leaf(|| "a signal".to_owned());
            return Poll::Pending;
        }
        drop(waiters);
        this.leave();
        Poll::Ready(())
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.place != NO_PLACE && self.leave() == Notified::Alone {
            self.signal.notify_one();
        }
    }
}

/// Waits until a condition holds; see [`Signal::wait_until`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct WaitUntil<C> {
    wait: Wait,
    condition: C,
}

impl<C: FnMut() -> bool + Unpin> Future for WaitUntil<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // The condition is not checked while descriptions are collected. A program with a condition that now holds
        // would run on.
        if !describe::is_describing() && (self.condition)() {
            if self.wait.place != NO_PLACE {
                self.wait.leave();
            }
            return Poll::Ready(());
        }
        while Pin::new(&mut self.wait).poll(context).is_ready() {}
        Poll::Pending
    }
}
