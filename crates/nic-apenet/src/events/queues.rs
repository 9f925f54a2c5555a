//! The queues of events: the card's queue in host memory, and the queues of processes. They take no simulated time.

use crate::error::Refusal;
use crate::event::{Event, EventKind};
use crate::spec::Notify;
use crate::{LIBRARY, Operation};
use nicety_host::Vector;
use nicety_kernel::{Server, Signal, Sim};
use nicety_types::{MessageId, NodeId, Path};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

/// An event, its path and its message.
#[derive(Clone)]
pub(crate) struct QueuedEvent {
    pub(crate) event: Event,
    pub(crate) path: Path,
    pub(crate) message: MessageId,
}

/// A completion in the card's queue.
#[derive(Clone)]
pub(crate) struct Written {
    pub(crate) process: u32,
    pub(crate) noted: QueuedEvent,
    /// Whether this is the completion of a packet that is not the last of its message. The process gets no event for
    /// it.
    pub(crate) part: bool,
}

/// The events that a call takes.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// The next event.
    Any,
    /// The next event of a put or send of another process.
    Received,
    /// The completion or refusal of an operation.
    End(Operation),
}

impl Wanted {
    fn takes(self, event: &Event) -> bool {
        match self {
            Wanted::Any => true,
            Wanted::Received => event.kind == EventKind::Received,
            Wanted::End(operation) => event.operation() == Some(operation),
        }
    }

    /// Describes the wait, as the object of "waits for".
    pub(crate) fn text(self, process: u32) -> String {
        let what = match self {
            Wanted::Any if process == LIBRARY => return "messages".to_owned(),
            Wanted::Any => "an event",
            Wanted::Received => "a put or send",
            Wanted::End(_) => "the end of an operation",
        };
        format!("{what} (process {process})")
    }
}

/// The reason why a process finds no event, now or later.
#[derive(Clone, Copy)]
pub(crate) enum Missing {
    /// Number of lost events.
    Lost(u64),
    /// The process has no such operation, or its completion was reported.
    Ended(Operation),
}

/// The queue of a process.
#[derive(Default)]
struct Queue {
    events: VecDeque<QueuedEvent>,
    /// Maps each operation without a reported completion to whether the operation is a get.
    open: FxHashMap<Operation, bool>,
    lost: u64,
    /// Number of threads of the process that wait for an event.
    waiting: u32,
}

impl Queue {
    /// Records that an event was taken or lost, and that the event's operation has thus ended. A put does not end with
    /// its refusal. It ends with its later event, when the card has read its bytes.
    fn told(&mut self, event: &Event) {
        let Some(operation) = event.operation() else { return };
        if !matches!(event.kind, EventKind::Refused(..)) || self.open.get(&operation) == Some(&true) {
            self.open.remove(&operation);
        }
    }
}

/// The queues of a host.
pub(crate) struct Events {
    /// Completions in the card's queue, in order.
    pub(crate) written: RefCell<VecDeque<Written>>,
    /// Number of entries of the card's queue that are in use, or are reserved for events on the bus.
    pub(crate) taken: Cell<u64>,
    /// Maps a process to its queue. A process without a queue gets no events.
    queues: RefCell<BTreeMap<u32, Queue>>,
    pub(crate) notify: Cell<Notify>,
    /// Notified when an event has been written or copied, or the way of notification changes.
    pub(crate) changed: Signal,
    /// Held while an event is copied.
    pub(crate) copying: Server,
    pub(crate) vector: Vector,
}

impl Events {
    pub(crate) fn new(sim: &Sim, notify: Notify, vector: Vector) -> Events {
        Events {
            written: RefCell::default(),
            taken: Cell::new(0),
            queues: RefCell::default(),
            notify: Cell::new(notify),
            changed: Signal::new(sim),
            copying: Server::new(sim),
            vector,
        }
    }

    /// Opens the queue of a process.
    pub(crate) fn open(&self, process: u32) {
        self.queues.borrow_mut().entry(process).or_default();
    }

    /// Whether a process has a queue.
    pub(crate) fn has_queue(&self, process: u32) -> bool {
        self.queues.borrow().contains_key(&process)
    }

    /// Returns the way in which the driver is notified of events.
    pub(crate) fn notify(&self) -> Notify {
        self.notify.get()
    }

    pub(crate) fn set_notify(&self, notify: Notify) {
        self.notify.set(notify);
        self.changed.notify_all();
    }

    /// Records a posted operation. An event will report the operation's completion.
    pub(crate) fn posted(&self, process: u32, operation: Operation, get: bool) {
        if let Some(queue) = self.queues.borrow_mut().get_mut(&process) {
            queue.open.insert(operation, get);
        }
    }

    /// Copies an event to the queue of its process, as the driver does. Returns whether the queue had room.
    pub(crate) fn copy(&self, process: u32, noted: QueuedEvent, limit: usize) -> bool {
        let mut queues = self.queues.borrow_mut();
        match queues.get_mut(&process).filter(|queue| queue.events.len() < limit) {
            Some(queue) => queue.events.push_back(noted),
            None => return false,
        }
        true
    }

    /// Counts a lost event of a process.
    pub(crate) fn lose(&self, process: u32, event: &Event) {
        if let Some(queue) = self.queues.borrow_mut().get_mut(&process) {
            queue.lost += 1;
            queue.told(event);
        }
    }

    /// Clears the count of lost events of a process, after it has been reported.
    pub(crate) fn forgive(&self, process: u32) {
        if let Some(queue) = self.queues.borrow_mut().get_mut(&process) {
            queue.lost = 0;
        }
    }

    /// Returns the path of the event at index `at` of a process's queue.
    pub(crate) fn path(&self, process: u32, at: usize) -> Path {
        self.queues.borrow()[&process].events[at].path.clone()
    }

    /// Returns the index of the first event that a process wants, or the reason why no such event will come. Returns
    /// `None` if the event may still come.
    pub(crate) fn find(&self, process: u32, wanted: Wanted) -> Option<Result<usize, Missing>> {
        let queues = self.queues.borrow();
        let queue = queues.get(&process)?;
        if queue.lost > 0 {
            return Some(Err(Missing::Lost(queue.lost)));
        }
        if let Some(at) = queue.events.iter().position(|noted| wanted.takes(&noted.event)) {
            return Some(Ok(at));
        }
        let Wanted::End(operation) = wanted else { return None };
        // A refused put may have ended while its refusal is still in the card's queue.
        let written =
            |entry: &Written| !entry.part && entry.process == process && wanted.takes(&entry.noted.event);
        let ended = !queue.open.contains_key(&operation) && !self.written.borrow().iter().any(written);
        ended.then_some(Err(Missing::Ended(operation)))
    }

    /// Whether a thread of this process polls for the next event of the card's queue. A thread of the event's own
    /// process polls. If no thread of that process waits, a thread of any process polls.
    pub(crate) fn polls(&self, process: u32) -> bool {
        if self.notify.get() != Notify::Poll {
            return false;
        }
        let written = self.written.borrow();
        let Some(Written { process: owner, .. }) = written.front() else { return false };
        *owner == process || self.queues.borrow().get(owner).is_none_or(|queue| queue.waiting == 0)
    }

    /// Returns two maps of events that no program has taken. The first maps a reason and a refusing node to the number
    /// of refusals of this host's messages. The second maps a process to the number of its lost events.
    pub(crate) fn unnoticed(&self) -> (BTreeMap<(Refusal, NodeId), u64>, BTreeMap<u32, u64>) {
        let (written, queues) = (self.written.borrow(), self.queues.borrow());
        let waiting =
            queues.values().flat_map(|queue| &queue.events).chain(written.iter().map(|entry| &entry.noted));
        let mut refused = BTreeMap::new();
        for QueuedEvent { event, .. } in waiting {
            if let (EventKind::Refused(_, why), Some(by)) = (event.kind, event.refused_by) {
                *refused.entry((why, by)).or_default() += 1;
            }
        }
        let lost = queues.iter().filter(|(_, queue)| queue.lost > 0);
        (refused, lost.map(|(process, queue)| (*process, queue.lost)).collect())
    }

    /// Returns the queues of processes for deadlock hints: the process, the number of its events by name, and whether a
    /// thread of the process waits. Events that only free the process's own buffers are left out.
    pub(crate) fn queued(&self) -> Vec<(u32, BTreeMap<&'static str, u64>, bool)> {
        let of = |(&process, queue): (&u32, &Queue)| {
            let mut names: BTreeMap<&'static str, u64> = BTreeMap::new();
            let kinds = queue.events.iter().map(|noted| noted.event.kind);
            for kind in kinds.filter(|kind| !matches!(kind, EventKind::Sent(_))) {
                *names.entry(kind.name()).or_default() += 1;
            }
            (process, names, queue.waiting > 0)
        };
        self.queues.borrow().iter().map(of).collect()
    }

    pub(crate) fn remove(&self, process: u32, wanted: Wanted) -> Option<QueuedEvent> {
        let mut queues = self.queues.borrow_mut();
        let queue = queues.get_mut(&process)?;
        let at = queue.events.iter().position(|noted| wanted.takes(&noted.event))?;
        let taken = queue.events.remove(at)?;
        queue.told(&taken.event);
        Some(taken)
    }
}

/// A guard for a thread that waits for an event of its process.
pub(crate) struct Waiting<'e> {
    events: &'e Events,
    process: u32,
}

impl<'e> Waiting<'e> {
    pub(crate) fn of(events: &'e Events, process: u32) -> Waiting<'e> {
        let waiting = Waiting { events, process };
        waiting.add(1);
        waiting
    }

    fn add(&self, threads: i32) {
        if let Some(queue) = self.events.queues.borrow_mut().get_mut(&self.process) {
            queue.waiting = queue.waiting.saturating_add_signed(threads);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.add(-1);
        // Another thread may have to poll from now on.
        self.events.changed.notify_all();
    }
}
