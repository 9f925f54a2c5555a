//! Threads that wait for a change.

use nicety_host::threads::Thread;
use std::cell::{Cell, RefCell};

/// Threads that sleep until a change, or are about to sleep, in the order of arrival.
#[derive(Default)]
pub(super) struct Waiters {
    threads: RefCell<Vec<(u64, Thread)>>,
    entered: Cell<u64>,
}

/// A guard for a waiting thread.
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

    /// Returns all waiting threads.
    pub(super) fn all(&self) -> Vec<Thread> {
        self.threads.borrow().iter().map(|(_, thread)| thread.clone()).collect()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waiters.threads.borrow_mut().retain(|(number, _)| *number != self.number);
    }
}
