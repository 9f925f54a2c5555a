//! Events: completions that the card writes to a queue in host memory, and the driver's copies of them to the queues of
//! processes.
//!
//! Both queues are bounded. An event for which one of them has no room is lost; it is counted, and the next call of the
//! process that takes an event fails and says so.

use super::error::{ApenetError, Refusal};
use super::event::{Event, EventKind};
use super::spec::Notify;
use super::{Card, stages};
use nicety_host::Vector;
use nicety_kernel::{Server, Signal, Sim, describe};
use nicety_types::{MessageId, NodeId, Path};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// An event, the path to it, and the message that it is about.
#[derive(Clone)]
pub(super) struct Noted {
    pub(super) event: Event,
    pub(super) path: Path,
    pub(super) message: MessageId,
}

/// The queue of a process.
#[derive(Default)]
struct Queue {
    events: VecDeque<Noted>,
    lost: u64,
    /// Threads of the process that wait for an event.
    waiting: u32,
}

/// The queues of a host.
pub(super) struct Events {
    /// Those in the card's queue, in order.
    written: RefCell<VecDeque<(u32, Noted)>>,
    /// Places of the card's queue that are taken, or will be by events on the bus.
    taken: Cell<u64>,
    /// By process; a process that has no queue gets no events.
    queues: RefCell<BTreeMap<u32, Queue>>,
    notify: Cell<Notify>,
    /// Notified when an event has been written or copied, or the way of notification changes.
    changed: Signal,
    /// Held by whoever copies an event.
    copying: Server,
    vector: Vector,
}

impl Events {
    pub(super) fn new(sim: &Sim, notify: Notify, vector: Vector) -> Events {
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
    pub(super) fn open(&self, process: u32) {
        self.queues.borrow_mut().entry(process).or_default();
    }

    /// Whether a process has a queue.
    pub(super) fn has_queue(&self, process: u32) -> bool {
        self.queues.borrow().contains_key(&process)
    }

    /// How programs learn of events.
    pub(super) fn notify(&self) -> Notify {
        self.notify.get()
    }

    pub(super) fn set_notify(&self, notify: Notify) {
        self.notify.set(notify);
        self.changed.notify_all();
    }

    /// The first event that a process wants; or an error if events of its were lost.
    fn find(&self, process: u32, wanted: &dyn Fn(&Event) -> bool) -> Option<Result<usize, u64>> {
        let queues = self.queues.borrow();
        let queue = queues.get(&process)?;
        if queue.lost > 0 {
            return Some(Err(queue.lost));
        }
        queue.events.iter().position(|noted| wanted(&noted.event)).map(Ok)
    }

    /// Whether a thread of a process polls the next event of the card's queue: one of the event's own process does, or
    /// any other if none of that waits.
    fn polls(&self, process: u32) -> bool {
        if self.notify.get() != Notify::Poll {
            return false;
        }
        let written = self.written.borrow();
        let Some((owner, _)) = written.front() else { return false };
        *owner == process || self.queues.borrow().get(owner).is_none_or(|queue| queue.waiting == 0)
    }

    /// Refusals of this host's messages that no program has taken, by reason and refusing node, with their number; and
    /// events that were lost and not reported, by process.
    pub(super) fn unnoticed(&self) -> (BTreeMap<(Refusal, NodeId), u64>, BTreeMap<u32, u64>) {
        let (written, queues) = (self.written.borrow(), self.queues.borrow());
        let waiting =
            queues.values().flat_map(|queue| &queue.events).chain(written.iter().map(|(_, noted)| noted));
        let mut refused = BTreeMap::new();
        for Noted { event, .. } in waiting {
            if let EventKind::Refused(_, why) = event.kind {
                *refused.entry((why, event.peer.node)).or_default() += 1;
            }
        }
        let lost = queues.iter().filter(|(_, queue)| queue.lost > 0);
        (refused, lost.map(|(process, queue)| (*process, queue.lost)).collect())
    }

    /// The queues of processes, for deadlock hints: the process, its events by name, those apart that say no more than that its
    /// own buffers are free, and whether a thread of it waits.
    pub(super) fn queued(&self) -> Vec<(u32, BTreeMap<&'static str, u64>, bool)> {
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

    fn remove(&self, process: u32, wanted: &dyn Fn(&Event) -> bool) -> Option<Noted> {
        let mut queues = self.queues.borrow_mut();
        let queue = queues.get_mut(&process)?;
        let at = queue.events.iter().position(|noted| wanted(&noted.event))?;
        queue.events.remove(at)
    }
}

/// A thread that waits for an event of its process.
struct Waiting<'e> {
    events: &'e Events,
    process: u32,
}

impl<'e> Waiting<'e> {
    fn of(events: &'e Events, process: u32) -> Waiting<'e> {
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
        // Another thread may have to poll now.
        self.events.changed.notify_all();
    }
}

/// Whose time an event's notice continues.
pub(super) enum Follow<'p> {
    /// The thread's, or the event's where the thread waited for it.
    Thread(&'p mut Path),
    /// The event's.
    Event,
}

impl Card {
    /// Writes an event of a process to host memory, behind the writes before it.
    pub(super) fn complete(self: &Rc<Card>, process: u32, event: Event, message: MessageId, path: Path) {
        let events = &self.events;
        if !events.has_queue(process) {
            return;
        }
        if events.taken.get() == self.spec.events.entries {
            return self.lose(process);
        }
        events.taken.set(events.taken.get() + 1);
        let number = self.statistics.get().events;
        self.count(|counted| counted.events += 1);
        let bytes = self.spec.events.bytes;
        let address = self.event_ring.address() + number % self.spec.events.entries * bytes;
        let mut path = self.dma.notify(message, address, bytes, path);
        if events.notify.get() == Notify::Interrupt {
            path = self.dma.bus().post(nicety_host::Notice::Event, path);
        }
        let card = self.clone();
        self.sim.spawn(async move {
            card.sim.until(path.at()).await;
            card.events.written.borrow_mut().push_back((process, Noted { event, path, message }));
            card.events.changed.notify_all();
        });
    }

    /// Counts an event as lost.
    fn lose(&self, process: u32) {
        self.count(|counted| counted.events_lost += 1);
        if let Some(queue) = self.events.queues.borrow_mut().get_mut(&process) {
            queue.lost += 1;
        }
        self.events.changed.notify_all();
    }

    /// The driver copies the first event of the card's queue to the queue of its process; `caused` is the path of the
    /// handler or poll that found it.
    async fn copy_event(&self, caused: Option<&Path>) {
        let copying = self.events.copying.acquire().await;
        let first = self.events.written.borrow().front().cloned();
        let Some((process, mut noted)) = first else { return };
        match caused {
            Some(caused) => noted.path.follow(caused),
            None => {
                noted.path.advance(stages::EVENT_QUEUED, self.sim.now());
                self.kernel.cpus().notice(&mut noted.path, Some(noted.message)).await;
            }
        }
        noted.path.advance(stages::EVENT_QUEUED, self.sim.now());
        self.kernel.cpus().spend(self.spec.driver.event, stages::EVENT, &mut noted.path).await;
        self.events.written.borrow_mut().pop_front();
        self.events.taken.set(self.events.taken.get() - 1);
        drop(copying);
        let limit = self.spec.events.user as usize;
        let full = self.events.queues.borrow().get(&process).is_none_or(|queue| queue.events.len() >= limit);
        if full {
            return self.lose(process);
        }
        if let Some(queue) = self.events.queues.borrow_mut().get_mut(&process) {
            queue.events.push_back(noted);
        }
        self.events.changed.notify_all();
    }

    /// The driver's interrupt handler, which takes all events that have come; one interrupt at a time.
    pub(super) async fn serve_interrupts(self: Rc<Card>) {
        loop {
            let events = &self.events;
            let raised = || events.notify.get() == Notify::Interrupt && !events.written.borrow().is_empty();
            events.changed.wait_until(raised).await;
            let first = events.written.borrow().front().map(|(_, noted)| noted.path.clone());
            let Some(mut path) = first else { continue };
            self.kernel.interrupt(&events.vector, &mut path).await;
            self.write_register(&mut path, self.next_message()).await;
            while !events.written.borrow().is_empty() {
                self.copy_event(Some(&path)).await;
            }
        }
    }

    /// Whether a process would find an event that it wants, or that events were lost, without waiting.
    fn has(&self, process: u32, wanted: &dyn Fn(&Event) -> bool) -> bool {
        self.events.find(process, wanted).is_some()
    }

    /// Takes the next event that a process wants. Returns its path, too, with what it took to notice it.
    ///
    /// # Errors
    /// When events of the process were lost; the error is reported once.
    pub(super) async fn take_event(
        self: &Rc<Card>,
        process: u32,
        wanted: &dyn Fn(&Event) -> bool,
        what: &'static str,
        mut follow: Follow<'_>,
    ) -> Result<(Event, Path), ApenetError> {
        let (mut called, mut copied) = (false, false);
        loop {
            match self.events.find(process, wanted) {
                Some(Err(events)) => return Err(self.lost(process, events)),
                Some(Ok(_)) => {
                    if let Some(taken) = self.notice(process, wanted, &mut follow, copied).await {
                        return Ok(taken);
                    }
                    continue;
                }
                None => {}
            }
            if !called {
                called = true;
                match &mut follow {
                    Follow::Thread(path) => self.kernel.call(path).await,
                    Follow::Event => self.kernel.call(&mut Path::clock(self.sim.now())).await,
                }
                continue;
            }
            let text = move || match process {
                super::LIBRARY => what.to_owned(),
                _ => format!("{what} (process {process})"),
            };
            let waiting = Waiting::of(&self.events, process);
            let mode = self.events.notify.get();
            let come = || {
                self.has(process, wanted) || self.events.polls(process) || self.events.notify.get() != mode
            };
            describe(text, self.events.changed.wait_until(come)).await;
            if self.events.polls(process) {
                self.copy_event(None).await;
                copied = true;
            } else if mode == Notify::Interrupt && self.has(process, wanted) {
                self.wake(process, wanted, &mut follow).await;
            }
            drop(waiting);
        }
    }

    /// The thread that waited for an event runs again.
    async fn wake(&self, process: u32, wanted: &dyn Fn(&Event) -> bool, follow: &mut Follow<'_>) {
        let its = match self.events.find(process, wanted) {
            Some(Ok(at)) => self.events.queues.borrow()[&process].events[at].path.clone(),
            _ => Path::clock(self.sim.now()),
        };
        match follow {
            Follow::Thread(path) => {
                path.follow(&its);
                self.kernel.wake(path).await;
            }
            Follow::Event => self.kernel.wake(&mut Path::clock(self.sim.now())).await,
        }
    }

    /// A thread takes the event that it has found; none if another was faster.
    async fn notice(
        &self,
        process: u32,
        wanted: &dyn Fn(&Event) -> bool,
        follow: &mut Follow<'_>,
        copied: bool,
    ) -> Option<(Event, Path)> {
        if !copied {
            // It reads the queue; a thread that has polled the event itself has seen it.
            self.kernel.cpus().notice(&mut Path::clock(self.sim.now()), None).await;
        }
        let Noted { event, path: mut its, message } = self.events.remove(process, wanted)?;
        let now = self.sim.now();
        self.recorder.message_noticed(message, now);
        let path = match follow {
            Follow::Thread(path) => {
                path.follow(&its);
                path.advance(nicety_types::Stage::NOTICE, now);
                path.clone()
            }
            Follow::Event => {
                its.advance(stages::EVENT_QUEUED, now);
                its
            }
        };
        Some((event, path))
    }

    fn lost(&self, process: u32, events: u64) -> ApenetError {
        if let Some(queue) = self.events.queues.borrow_mut().get_mut(&process) {
            queue.lost = 0;
        }
        ApenetError::EventsLost { events, process }
    }

    /// Takes an event that a process wants if it has come: looks once.
    ///
    /// # Errors
    /// As [`Card::take_event`].
    pub(super) async fn poll_event(
        self: &Rc<Card>,
        process: u32,
        wanted: &dyn Fn(&Event) -> bool,
        path: &mut Path,
    ) -> Result<Option<Event>, ApenetError> {
        let mut copied = false;
        if self.events.notify.get() == Notify::Poll && !self.has(process, wanted) {
            self.kernel.call(path).await;
            while !self.has(process, wanted) && !self.events.written.borrow().is_empty() {
                self.copy_event(None).await;
                copied = true;
            }
        }
        match self.events.find(process, wanted) {
            Some(Err(events)) => Err(self.lost(process, events)),
            Some(Ok(_)) => {
                let taken = self.notice(process, wanted, &mut Follow::Thread(path), copied).await;
                Ok(taken.map(|(event, _)| event))
            }
            None => {
                self.kernel.cpus().notice(path, None).await;
                Ok(None)
            }
        }
    }
}
