//! Notice of early messages, for who looks for one that no receive has taken.

use nicety_kernel::{Signal, Sim};
use std::cell::Cell;

/// Counts the changes after which a look may find what the one before did not: a message has come that no receive takes, or the
/// library has failed.
pub struct Early {
    changes: Cell<u64>,
    more: Signal,
}

impl Early {
    pub(crate) fn new(sim: &Sim) -> Early {
        Early { changes: Cell::new(0), more: Signal::new(sim) }
    }

    pub(crate) fn note(&self) {
        self.changes.set(self.changes.get() + 1);
        self.more.notify_all();
    }

    /// The changes until now.
    pub fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Waits until there are more changes than so many.
    pub async fn beyond(&self, seen: u64) {
        self.more.wait_until(|| self.changes.get() > seen).await;
    }
}
