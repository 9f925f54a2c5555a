//! Threads that wait for a change, each from its entering until it leaves.

use nicety_host::threads::Thread;
use std::cell::{Cell, RefCell};

/// Threads that sleep until something changes, or are about to, in the order in which they came.
#[derive(Default)]
pub(super) struct Waiters {
    threads: RefCell<Vec<(u64, Thread)>>,
    entered: Cell<u64>,
}

/// A thread among those that wait, until it is dropped.
pub(super) struct Waiting<'w> {
    waiters: &'w Waiters,
    number: u64,
}

impl Waiters {
    /// Adds a thread.
    pub(super) fn enter(&self, thread: &Thread) -> Waiting<'_> {
        let number = self.entered.get();
        self.entered.set(number + 1);
        self.threads.borrow_mut().push((number, thread.clone()));
        Waiting { waiters: self, number }
    }

    /// Those that wait.
    pub(super) fn all(&self) -> Vec<Thread> {
        self.threads.borrow().iter().map(|(_, thread)| thread.clone()).collect()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waiters.threads.borrow_mut().retain(|(number, _)| *number != self.number);
    }
}
