//! What the host can see of its card: counters and event queues in host memory, each with the path that tells how
//! it came there.

use nicety_kernel::Signal;
use nicety_portals::{CtEvent, CtHandle, EqHandle, Event};
use nicety_types::Path;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

#[derive(Default)]
struct Queue {
    events: VecDeque<(Event, Path)>,
    /// Events lost because the queue was full, since the host last looked.
    lost: u64,
}

/// The host's copy of counters and event queues. Waiting programs are told at every change.
pub struct HostView {
    counters: RefCell<HashMap<CtHandle, (CtEvent, Path)>>,
    queues: RefCell<HashMap<EqHandle, Queue>>,
    pub(super) changed: Signal,
}

impl HostView {
    pub(super) fn new(changed: Signal) -> HostView {
        HostView { counters: RefCell::default(), queues: RefCell::default(), changed }
    }

    pub(super) fn event(&self, eq: EqHandle, event: Event, path: Path) {
        self.queues.borrow_mut().entry(eq).or_default().events.push_back((event, path));
        self.changed.notify_all();
    }

    pub(super) fn lost(&self, eq: EqHandle) {
        self.queues.borrow_mut().entry(eq).or_default().lost += 1;
        self.changed.notify_all();
    }

    pub(super) fn count(&self, ct: CtHandle, value: CtEvent, path: Path) {
        self.counters.borrow_mut().insert(ct, (value, path));
        self.changed.notify_all();
    }

    /// A counter as the host sees it, and the path of its last change.
    pub(super) fn counter(&self, ct: CtHandle) -> Option<(CtEvent, Path)> {
        self.counters.borrow().get(&ct).copied()
    }

    /// Takes the first event that `wanted` accepts out of a queue.
    pub(super) fn take(&self, eq: EqHandle, wanted: impl Fn(&Event) -> bool) -> Option<(Event, Path)> {
        let mut queues = self.queues.borrow_mut();
        let events = &mut queues.get_mut(&eq)?.events;
        let index = events.iter().position(|(event, _)| wanted(event))?;
        events.remove(index)
    }

    /// Whether a queue holds an event that `wanted` accepts, or has lost one.
    pub(super) fn has(&self, eq: EqHandle, wanted: impl Fn(&Event) -> bool) -> bool {
        let queues = self.queues.borrow();
        queues.get(&eq).is_some_and(|q| q.lost > 0 || q.events.iter().any(|(event, _)| wanted(event)))
    }

    /// How many events a queue has lost since this was last asked.
    pub(super) fn take_lost(&self, eq: EqHandle) -> u64 {
        self.queues.borrow_mut().get_mut(&eq).map_or(0, |q| std::mem::take(&mut q.lost))
    }
}
