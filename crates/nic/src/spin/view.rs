//! What the host can see of its card: counters and event queues in host memory, each with the path that tells how
//! it came there.

use nicety_kernel::Signal;
use nicety_portals::{CtEvent, CtHandle, EqHandle, Event};
use nicety_types::{MessageId, Path};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::VecDeque;

/// How something came into the host's view.
#[derive(Clone)]
pub(super) struct Seen {
    /// Where the time went until the host could see it.
    pub(super) path: Path,
    /// The message it is of, where it is of one.
    pub(super) message: Option<MessageId>,
}

/// What comes next in a queue.
pub(super) enum Slot {
    Event(Event, Seen),
    /// That many events were lost here because the queue was full.
    Lost(u64),
}

type Queue = VecDeque<Slot>;

/// The host's copy of counters and event queues. Waiting programs are told at every change.
pub struct HostView {
    counters: RefCell<FxHashMap<CtHandle, (CtEvent, Seen)>>,
    queues: RefCell<FxHashMap<EqHandle, Queue>>,
    pub(super) changed: Signal,
}

impl HostView {
    pub(super) fn new(changed: Signal) -> HostView {
        HostView { counters: RefCell::default(), queues: RefCell::default(), changed }
    }

    pub(super) fn event(&self, eq: EqHandle, event: Event, seen: Seen) {
        self.queues.borrow_mut().entry(eq).or_default().push_back(Slot::Event(event, seen));
        self.changed.notify_all();
    }

    pub(super) fn lost(&self, eq: EqHandle) {
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

    pub(super) fn count(&self, ct: CtHandle, value: CtEvent, seen: Seen) {
        self.counters.borrow_mut().insert(ct, (value, seen));
        self.changed.notify_all();
    }

    /// A counter as the host sees it, and how its last change came.
    pub(super) fn counter(&self, ct: CtHandle) -> Option<(CtEvent, Seen)> {
        self.counters.borrow().get(&ct).cloned()
    }

    /// A counter that was freed is seen no more.
    pub(super) fn forget_counter(&self, ct: CtHandle) {
        self.counters.borrow_mut().remove(&ct);
    }

    /// A queue that was freed is seen no more.
    pub(super) fn forget_queue(&self, eq: EqHandle) {
        self.queues.borrow_mut().remove(&eq);
    }

    /// Takes the first event that `wanted` accepts out of a queue, or the first loss where that comes before it.
    pub(super) fn take(&self, eq: EqHandle, wanted: impl Fn(&Event) -> bool) -> Option<Slot> {
        let mut queues = self.queues.borrow_mut();
        let queue = queues.get_mut(&eq)?;
        let index = queue.iter().position(|slot| next(slot, &wanted))?;
        queue.remove(index)
    }

    /// Whether [`HostView::take`] has something to take.
    pub(super) fn has(&self, eq: EqHandle, wanted: impl Fn(&Event) -> bool) -> bool {
        self.queues.borrow().get(&eq).is_some_and(|queue| queue.iter().any(|slot| next(slot, &wanted)))
    }
}

/// Whether somebody who wants these events goes no further.
fn next(slot: &Slot, wanted: impl Fn(&Event) -> bool) -> bool {
    match slot {
        Slot::Event(event, _) => wanted(event),
        Slot::Lost(_) => true,
    }
}
