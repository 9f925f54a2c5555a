//! What the host can see of its card: counters and event queues in host memory, each with the path that tells how
//! it came there.

use nicety_kernel::Signal;
use nicety_portals::{CtEvent, CtHandle, EqHandle, Event};
use nicety_types::{MessageId, Path};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

/// How something came into the host's view.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// Where the time went until the host could see it.
    pub(super) path: Path,
    /// The message it is of, where it is of one.
    pub(super) message: Option<MessageId>,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<(Event, Seen)>,
    /// Events lost because the queue was full, since the host last looked.
    lost: u64,
}

/// The host's copy of counters and event queues. Waiting programs are told at every change.
pub struct HostView {
    counters: RefCell<HashMap<CtHandle, (CtEvent, Seen)>>,
    queues: RefCell<HashMap<EqHandle, Queue>>,
    pub(super) changed: Signal,
}

impl HostView {
    pub(super) fn new(changed: Signal) -> HostView {
        HostView { counters: RefCell::default(), queues: RefCell::default(), changed }
    }

    pub(super) fn event(&self, eq: EqHandle, event: Event, seen: Seen) {
        self.queues.borrow_mut().entry(eq).or_default().events.push_back((event, seen));
        self.changed.notify_all();
    }

    pub(super) fn lost(&self, eq: EqHandle) {
        self.queues.borrow_mut().entry(eq).or_default().lost += 1;
        self.changed.notify_all();
    }

    pub(super) fn count(&self, ct: CtHandle, value: CtEvent, seen: Seen) {
        self.counters.borrow_mut().insert(ct, (value, seen));
        self.changed.notify_all();
    }

    /// A counter as the host sees it, and how its last change came.
    pub(super) fn counter(&self, ct: CtHandle) -> Option<(CtEvent, Seen)> {
        self.counters.borrow().get(&ct).copied()
    }

    /// Takes the first event that `wanted` accepts out of a queue.
    pub(super) fn take(&self, eq: EqHandle, wanted: impl Fn(&Event) -> bool) -> Option<(Event, Seen)> {
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
