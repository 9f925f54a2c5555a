//! Notification of messages that arrive before their receives, for callers that look for such messages.

use nicety_kernel::{Signal, Sim};
use std::cell::Cell;

/// Counts the changes after which a probe may find a message that the previous probe did not find. A change is a
/// message without a receive, or a failure of the library.
pub struct Early {
    changes: Cell<u64>,
    more: Signal,
}

impl Early {
    /// Returns a count without changes.
    pub fn new(sim: &Sim) -> Early {
        Early { changes: Cell::new(0), more: Signal::new(sim) }
    }

    /// Counts a change, and wakes the callers that wait for a change.
    pub fn note(&self) {
        self.changes.set(self.changes.get() + 1);
        self.more.notify_all();
    }

    /// Number of changes so far.
    pub fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Waits until there are more than `seen` changes.
    pub async fn beyond(&self, seen: u64) {
        self.more.wait_until(|| self.changes.get() > seen).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_kernel::{Config, World};
    use nicety_types::Duration;
    use std::rc::Rc;

    #[test]
    fn a_wait_ends_with_the_change_behind_those_that_were_seen() {
        let mut world: World<()> = World::new(Config::default());
        let node = world.add_node();
        let sim = world.sim(node);
        let (early, seen) = (Rc::new(Early::new(&sim)), Rc::new(Cell::new(None)));
        early.note();
        let (looked, end, clock) = (early.clone(), seen.clone(), sim.clone());
        sim.spawn(async move {
            // The wait ignores a change before the look. It returns at a change between the look and the wait.
            looked.beyond(looked.changes() - 1).await;
            looked.beyond(looked.changes()).await;
            end.set(Some((clock.now().ps(), looked.changes())));
        });
        let (notes, clock) = (early.clone(), sim.clone());
        sim.spawn(async move {
            clock.delay(Duration::from_ps(70)).await;
            notes.note();
        });
        world.run().unwrap();
        assert_eq!(seen.get(), Some((70, 2)));
    }
}
