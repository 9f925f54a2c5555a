//! The host's view of its card: the counters and event queues in host memory. Each change has the path up to its time.

pub(crate) use crate::complete::ChangeOrigin;

use nicety_kernel::Signal;
use nicety_portals::{CtEvent, CtHandle, EqHandle, Event};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::VecDeque;

/// An entry of a queue.
pub(crate) enum Slot {
    Event(Event, ChangeOrigin),
    /// The number of events that were lost at this position because the queue was full.
    Lost(u64),
}

type Queue = VecDeque<Slot>;

/// The host's copy of counters and event queues. Every change wakes waiting programs.
pub struct HostView {
    counters: RefCell<FxHashMap<CtHandle, (CtEvent, ChangeOrigin)>>,
    queues: RefCell<FxHashMap<EqHandle, Queue>>,
    pub(crate) changed: Signal,
}

impl HostView {
    pub(crate) fn new(changed: Signal) -> HostView {
        HostView { counters: RefCell::default(), queues: RefCell::default(), changed }
    }

    pub(crate) fn event(&self, eq: EqHandle, event: Event, seen: ChangeOrigin) {
        self.push(eq, event, seen);
        self.changed.notify_all();
    }

    /// Adds an event, like [`HostView::event`]. The caller wakes the programs that wait for the event.
    pub(crate) fn push(&self, eq: EqHandle, event: Event, seen: ChangeOrigin) {
        self.queues.borrow_mut().entry(eq).or_default().push_back(Slot::Event(event, seen));
    }

    pub(crate) fn lost(&self, eq: EqHandle) {
        {
            let mut queues = self.queues.borrow_mut();
            let queue = queues.entry(eq).or_default();
            match queue.back_mut() {
                Some(Slot::Lost(lost)) => *lost += 1,
                _ => queue.push_back(Slot::Lost(1)),
            }
        }
        self.changed.notify_all();
    }

    pub(crate) fn count(&self, ct: CtHandle, value: CtEvent, seen: ChangeOrigin) {
        self.counters.borrow_mut().insert(ct, (value, seen));
        self.changed.notify_all();
    }

    /// Returns a counter's value in the host's view, and the origin of its last change.
    pub(crate) fn counter(&self, ct: CtHandle) -> Option<(CtEvent, ChangeOrigin)> {
        self.counters.borrow().get(&ct).cloned()
    }

    /// Removes a freed counter.
    pub(crate) fn forget_counter(&self, ct: CtHandle) {
        self.counters.borrow_mut().remove(&ct);
    }

    /// Removes a freed queue.
    pub(crate) fn forget_queue(&self, eq: EqHandle) {
        self.queues.borrow_mut().remove(&eq);
    }

    /// Takes from a queue the first event that `wanted` accepts, or the first loss if the loss comes earlier.
    pub(crate) fn take(&self, eq: EqHandle, wanted: impl Fn(&Event) -> bool) -> Option<Slot> {
        let mut queues = self.queues.borrow_mut();
        let queue = queues.get_mut(&eq)?;
        let index = queue.iter().position(|slot| next(slot, &wanted))?;
        queue.remove(index)
    }

    /// Returns whether [`HostView::take`] would take an event or a loss.
    pub(crate) fn has(&self, eq: EqHandle, wanted: impl Fn(&Event) -> bool) -> bool {
        self.queues.borrow().get(&eq).is_some_and(|queue| queue.iter().any(|slot| next(slot, &wanted)))
    }
}

/// Returns whether a program that waits for events that `wanted` accepts stops at this entry.
fn next(slot: &Slot, wanted: impl Fn(&Event) -> bool) -> bool {
    match slot {
        Slot::Event(event, _) => wanted(event),
        Slot::Lost(_) => true,
    }
}
