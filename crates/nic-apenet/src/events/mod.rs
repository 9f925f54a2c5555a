//! Events: completions that the card writes to its queue in host memory. The driver copies each event to the queue of
//! its process.
//!
//! The card's queue and the queues of processes are bounded. An event is lost and counted if one of its two queues is
//! full. The process's next call for an event then fails with [`ApenetError::EventsLost`].
//!
//! | file | contents |
//! |---|---|
//! | `queues.rs` | the queues, without simulated time |

mod queues;

use queues::Written;
pub(crate) use queues::{Events, Wanted};

use crate::error::ApenetError;
use crate::event::Event;
use crate::spec::Notify;
use crate::{Card, Operation, Statistics, stages};
use nicety_kernel::describe;
use nicety_types::{MessageId, Path};
use queues::{Missing, QueuedEvent, Waiting};
use std::rc::Rc;

/// The path to continue when a thread notices an event.
pub(crate) enum Follow<'p> {
    /// The path of the thread. If the thread waited for the event, the event's path continues the thread's path.
    Thread(&'p mut Path),
    /// The path of the event.
    Event,
}

impl Card {
    /// Writes an event for a process to host memory, behind earlier writes. The event is lost if the card's queue is
    /// full.
    pub(crate) fn complete(self: &Rc<Card>, process: u32, event: Event, message: MessageId, path: Path) {
        let events = &self.events;
        if !events.has_queue(process) {
            return;
        }
        if events.taken.get() == self.spec.events.entries {
            return self.lose(process, &event);
        }
        events.taken.set(events.taken.get() + 1);
        self.count(|counted| counted.events += 1);
        self.write_completion(process, QueuedEvent { event, path, message }, false);
    }

    /// Writes the completion of a packet that is not the last of its message. This completion takes no entry of the
    /// queue, because the process gets no event for the packet.
    pub(crate) fn complete_packet(
        self: &Rc<Card>,
        process: u32,
        event: Event,
        message: MessageId,
        path: Path,
    ) {
        if self.events.has_queue(process) {
            self.count(|counted| counted.packet_completions += 1);
            self.write_completion(process, QueuedEvent { event, path, message }, true);
        }
    }

    fn write_completion(self: &Rc<Card>, process: u32, mut noted: QueuedEvent, part: bool) {
        let Statistics { events, packet_completions, .. } = self.statistics.get();
        let bytes = self.spec.events.bytes;
        let place = (events + packet_completions - 1) % self.spec.events.entries;
        let address = self.event_ring.address() + place * bytes;
        noted.path = self.dma.notify(noted.message, address, bytes, noted.path);
        if self.events.notify.get() == Notify::Interrupt {
            noted.path = self.dma.bus().post(nicety_host::Notice::Event, noted.path);
        }
        let card = self.clone();
        self.sim.spawn(async move {
            card.sim.until(noted.path.at()).await;
            card.events.written.borrow_mut().push_back(Written { process, noted, part });
            card.events.changed.notify_all();
        });
    }

    /// Counts an event as lost.
    fn lose(&self, process: u32, event: &Event) {
        self.count(|counted| counted.events_lost += 1);
        self.events.lose(process, event);
        self.events.changed.notify_all();
    }

    /// Copies the first event of the card's queue to the queue of its process, as the driver does. `caused` is the path
    /// of the interrupt handler that found the event; `None` for a poll.
    async fn copy_event(&self, caused: Option<&Path>) {
        let copying = self.events.copying.acquire().await;
        let first = self.events.written.borrow().front().cloned();
        let Some(Written { process, mut noted, part }) = first else { return };
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
        if part {
            return self.events.changed.notify_all();
        }
        self.events.taken.set(self.events.taken.get() - 1);
        drop(copying);
        let event = noted.event;
        if !self.events.copy(process, noted, self.spec.events.user as usize) {
            return self.lose(process, &event);
        }
        self.events.changed.notify_all();
    }

    /// Runs the driver's interrupt handler. The handler serves one interrupt at a time, and takes all written events.
    pub(crate) async fn serve_interrupts(self: Rc<Card>) {
        loop {
            let events = &self.events;
            let raised = || events.notify.get() == Notify::Interrupt && !events.written.borrow().is_empty();
            events.changed.wait_until(raised).await;
            let first = events.written.borrow().front().map(|entry| entry.noted.path.clone());
            let Some(mut path) = first else { continue };
            self.kernel.interrupt(&events.vector, &mut path).await;
            self.write_register(&mut path, self.next_message()).await;
            while !events.written.borrow().is_empty() {
                self.copy_event(Some(&path)).await;
            }
        }
    }

    /// Whether a process need not wait for a wanted event: the event is in the process's queue, or will not come.
    fn has(&self, process: u32, wanted: Wanted) -> bool {
        self.events.find(process, wanted).is_some()
    }

    /// Takes the next event that a process wants. Returns the event, and the path up to the time at which the thread
    /// notices the event.
    ///
    /// # Errors
    /// When events of the process were lost, which is reported once. Also when the completion of the operation was
    /// reported before.
    pub(crate) async fn take_event(
        self: &Rc<Card>,
        process: u32,
        wanted: Wanted,
        mut follow: Follow<'_>,
    ) -> Result<(Event, Path), ApenetError> {
        let (mut called, mut copied) = (false, false);
        loop {
            match self.events.find(process, wanted) {
                Some(Err(missing)) => return Err(self.missing(process, missing)),
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
            let _waiting = Waiting::of(&self.events, process);
            let mode = self.events.notify.get();
            let come = || {
                self.has(process, wanted) || self.events.polls(process) || self.events.notify.get() != mode
            };
            describe(move || wanted.text(process), self.events.changed.wait_until(come)).await;
            if self.events.polls(process) {
                self.copy_event(None).await;
                copied = true;
            } else if mode == Notify::Interrupt && self.has(process, wanted) {
                self.wake(process, wanted, &mut follow).await;
            }
        }
    }

    /// Wakes the thread that waited for an event.
    async fn wake(&self, process: u32, wanted: Wanted, follow: &mut Follow<'_>) {
        let its = match self.events.find(process, wanted) {
            Some(Ok(at)) => self.events.path(process, at),
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

    /// Takes the event that a thread has found. Returns `None` if another thread has taken the event.
    async fn notice(
        &self,
        process: u32,
        wanted: Wanted,
        follow: &mut Follow<'_>,
        copied: bool,
    ) -> Option<(Event, Path)> {
        if !copied {
            // The thread reads its queue. A thread that has polled for the event itself has already seen it.
            self.kernel.cpus().notice(&mut Path::clock(self.sim.now()), None).await;
        }
        let QueuedEvent { event, path: mut its, message } = self.events.remove(process, wanted)?;
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

    fn missing(&self, process: u32, missing: Missing) -> ApenetError {
        match missing {
            Missing::Ended(Operation(operation)) => ApenetError::NoOperation { operation, process },
            Missing::Lost(events) => {
                self.events.forgive(process);
                ApenetError::EventsLost { events, process }
            }
        }
    }

    /// Looks once for an event that a process wants. Takes and returns the event if there is one.
    ///
    /// # Errors
    /// Like [`Card::take_event`].
    pub(crate) async fn poll_event(
        self: &Rc<Card>,
        process: u32,
        wanted: Wanted,
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
            Some(Err(missing)) => Err(self.missing(process, missing)),
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
