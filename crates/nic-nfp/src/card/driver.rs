//! The host's driver: threads in calls, their work in the kernel, and the interrupt that all channels share.
//!
//! A thread enters the driver through the library and a system call, and does the work that the host's state machine
//! requests. The thread then sleeps in a wait queue until the interrupt handler wakes it. Further work on the message
//! is done by the thread, not by the handler: the next list of pages, or a reply.

use crate::card::record::Taken;
use crate::card::{Card, ChannelError, waited};
use crate::stages;
use nicety_channels::{
    Body, Buffer, Channel, Completion, Deadline, Direction, Error, Failure, Guard, Host, HostEffect, Kind,
    MAILBOX_BYTES, Mailbox, Message, PAGE_BYTES, Page, Payload, TargetId, ThreadId,
};
use nicety_kernel::Signal;
use nicety_types::{MessageId, Path, Stage, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes of a write to a doorbell register.
const DOORBELL: u64 = 4;

/// The result of a call: the index of the guard that received a message, and the outcome.
pub(super) type Ended = (u16, Result<Completion, Failure>);

/// A call of a thread.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Subscribe(TargetId),
    Close(Channel),
    Send(Channel, Payload),
    SendIndirect(Channel, Buffer),
    Receive(Channel, u32),
    ReceiveIndirect(Channel, Buffer),
    Select(Vec<Guard<Channel>>),
}

impl Request {
    const fn is_indirect(&self) -> bool {
        matches!(self, Request::SendIndirect(..) | Request::ReceiveIndirect(..))
    }

    /// The kind and size of the message that the call sends, if any.
    fn sends(&self) -> Option<(Kind, u64)> {
        match self {
            Request::Send(_, payload) => Some((Kind::Direct, payload.len() as u64)),
            Request::SendIndirect(_, buffer) => Some((Kind::Indirect, buffer.bytes.into())),
            _ => None,
        }
    }

    fn begin(
        &self,
        host: &mut Host,
        thread: ThreadId,
        deadline: Deadline,
        effects: &mut Vec<HostEffect>,
    ) -> Result<Option<Channel>, Error> {
        let channel = match self {
            Request::Subscribe(target) => return host.subscribe(thread, *target, effects).map(Some),
            Request::Close(channel) => host.close(thread, *channel, effects),
            Request::Send(channel, payload) => host.send(thread, *channel, payload, deadline, effects),
            Request::SendIndirect(channel, buffer) => {
                host.send_indirect(thread, *channel, *buffer, deadline, effects)
            }
            Request::Receive(channel, bytes) => host.receive(thread, *channel, *bytes, deadline, effects),
            Request::ReceiveIndirect(channel, buffer) => {
                host.receive_indirect(thread, *channel, *buffer, deadline, effects)
            }
            Request::Select(guards) => host.select(thread, guards, deadline, effects),
        };
        channel.map(|()| None)
    }

    /// Calls `claim` for each mailbox that the thread uses in this call.
    fn claim(&self, opened: Option<Channel>, mut claim: impl FnMut(Mailbox)) {
        let mut of = |channel: &Channel, direction| claim(Mailbox { channel: channel.index(), direction });
        match self {
            Request::Subscribe(_) => of(&opened.expect("a subscription has a channel"), Direction::ToCard),
            Request::Close(channel) | Request::Send(channel, _) | Request::SendIndirect(channel, _) => {
                of(channel, Direction::ToCard);
            }
            Request::Receive(channel, _) | Request::ReceiveIndirect(channel, _) => {
                of(channel, Direction::ToHost);
            }
            Request::Select(guards) => guards.iter().for_each(|guard| of(&guard.from, Direction::ToHost)),
        }
    }
}

/// A thread in a call.
pub(super) struct Thread {
    /// The thread's work, in order.
    work: RefCell<VecDeque<HostEffect>>,
    given: Signal,
    /// The path of the last event that woke the thread. `None` if a deadline woke it.
    release: Cell<Option<Path>>,
    claims: RefCell<Vec<Mailbox>>,
    /// Number of pages pinned for the thread, and a reusable list of these pages.
    pages: Cell<u64>,
    list: RefCell<Vec<Page>>,
    state: Cell<ThreadState>,
    outcome: RefCell<Option<Outcome>>,
    /// The path up to the end of the call's first work. `None` before that.
    begun: RefCell<Option<Path>>,
    /// Notified when the call's first work is done, and when the call ends.
    pub(super) ended: Signal,
    /// Notified when a thread becomes free. All threads share one signal.
    freed: Signal,
}

impl Thread {
    /// Records the end of the call's first work.
    fn has_begun(&self, path: &Path) {
        if self.begun.borrow().is_none() {
            self.begun.replace(Some(path.clone()));
            self.ended.notify_all();
        }
    }
}

/// The outcome of a call: its result, the opened channel, the received message, and the path to the end of the call.
pub(super) struct Outcome {
    pub(super) result: Result<Ended, ChannelError>,
    pub(super) opened: Option<Channel>,
    pub(super) received: Option<MessageId>,
    pub(super) path: Path,
}

/// The result of a call that has begun.
struct Through {
    ended: Ended,
    opened: Option<Channel>,
    received: Option<MessageId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    Free,
    Called,
    /// The thread is in a call, but the caller has dropped the call's future.
    Abandoned,
    Done,
}

/// The caller's handle of a thread in a call. If the caller drops it, the call still completes.
pub(super) struct Caller {
    pub(super) thread: Rc<Thread>,
    pub(super) id: ThreadId,
}

impl Caller {
    /// Returns the result of the call, if it has ended.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.thread.outcome.take()
    }

    /// Returns the path up to the end of the call's first work, or `None` before that. After its first work, the card
    /// has the message, or the call waits for the other end.
    pub(super) fn begun(&self) -> Option<Path> {
        self.thread.begun.borrow().clone()
    }

    /// Returns the error of a call that could not begin.
    pub(super) fn refusal(&self) -> Option<ChannelError> {
        self.thread.outcome.borrow().as_ref().and_then(|outcome| outcome.result.as_ref().err().copied())
    }

    /// Frees the thread of a call that has no separate task.
    pub(super) fn end(self) {
        self.thread.state.set(ThreadState::Done);
    }

    pub(super) fn is_done(&self) -> bool {
        self.thread.state.get() == ThreadState::Done
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let free = self.is_done();
        self.thread.state.set(if free { ThreadState::Free } else { ThreadState::Abandoned });
        if free {
            self.thread.freed.notify_all();
        }
    }
}

impl Card {
    /// Returns a free thread for a call.
    pub(super) fn take_thread(&self) -> Result<Caller, Error> {
        let mut threads = self.threads.borrow_mut();
        let free = threads.iter().position(|thread| thread.state.get() == ThreadState::Free);
        let limit = self.spec.channels.threads;
        let index = match free {
            Some(index) => index,
            None if threads.len() < usize::from(limit) => {
                threads.push(Rc::new(Thread {
                    work: RefCell::default(),
                    given: Signal::new(&self.sim),
                    release: Cell::default(),
                    claims: RefCell::default(),
                    pages: Cell::default(),
                    list: RefCell::default(),
                    state: Cell::new(ThreadState::Free),
                    outcome: RefCell::default(),
                    begun: RefCell::default(),
                    ended: Signal::new(&self.sim),
                    freed: self.thread_freed.clone(),
                }));
                threads.len() - 1
            }
            None => return Err(Error::NoSpace { what: "thread", name: "threads", limit: limit.into() }),
        };
        let thread = threads[index].clone();
        thread.state.set(ThreadState::Called);
        thread.begun.take();
        Ok(Caller { thread, id: ThreadId(index as u16) })
    }

    /// Makes a call of a thread, from the entry into the library to the return.
    pub(super) async fn call(
        self: Rc<Card>,
        thread: Rc<Thread>,
        id: ThreadId,
        request: Request,
        deadline: Deadline,
        mut path: Path,
    ) {
        let outcome = self.go_through(&thread, id, request, deadline, &mut path).await;
        let (result, opened, received) = match outcome {
            Ok(Through { ended, opened, received }) => (Ok(ended), opened, received),
            Err(error) => (Err(error.into()), None, None),
        };
        if thread.state.get() == ThreadState::Abandoned {
            thread.state.set(ThreadState::Free);
            thread.freed.notify_all();
            return;
        }
        thread.has_begun(&path);
        thread.outcome.replace(Some(Outcome { result, opened, received, path }));
        thread.state.set(ThreadState::Done);
        thread.ended.notify_all();
    }

    async fn go_through(
        self: &Rc<Card>,
        thread: &Rc<Thread>,
        id: ThreadId,
        request: Request,
        deadline: Deadline,
        path: &mut Path,
    ) -> Result<Through, Error> {
        let base = path.clone();
        let (cpus, spec) = (self.kernel.cpus(), &self.spec.channels);
        cpus.spend(spec.library, Stage::LIBRARY, path).await;
        self.kernel.call(path).await;
        if request.is_indirect() {
            cpus.spend(spec.driver.indirect, stages::DRIVER, path).await;
        }
        let opened = self.on_host(Some((id, &request)), Some(path.clone()), |host, effects| {
            request.begin(host, id, deadline, effects)
        })?;
        // The message that the call sends, the message that it receives, and the path of the last event that woke the
        // thread.
        let (mut sent, mut taken, mut released): (_, Option<Taken>, _) = (None, None, None);
        loop {
            let Some(effect) = thread.work.borrow_mut().pop_front() else {
                thread.has_begun(path);
                thread.given.wait_until(|| !thread.work.borrow().is_empty()).await;
                released = thread.release.take().filter(|release| release.at() > path.at());
                if let Some(release) = &released {
                    path.follow(release);
                }
                waited(path, stages::RECEIVER, &self.sim);
                self.kernel.wake(path).await;
                continue;
            };
            match effect {
                HostEffect::Pin { buffer, .. } => self.pin(thread, id, buffer, path).await,
                HostEffect::Unpin { .. } => {
                    let pages = thread.pages.take();
                    self.kernel.unpin(pages, path).await;
                    self.count(|counters| counters.pinned -= pages);
                }
                HostEffect::Post { mailbox, bytes } => {
                    match request.sends() {
                        Some((kind, bytes)) if sent.is_none() => {
                            sent = Some(self.posted(mailbox, kind, bytes, &base));
                        }
                        None if taken.is_none() => {
                            taken = self.taken(mailbox, &bytes, path, released.as_ref());
                        }
                        _ => {}
                    }
                    self.post(mailbox, bytes, path).await;
                }
                HostEffect::Wake { guard, result, .. } => {
                    if let (Some(Some(message)), Err(failure)) = (sent, &result) {
                        self.failed(message, failure);
                    }
                    let received = taken.filter(|_| result.is_ok()).map(|taken| self.received(&taken, path));
                    return Ok(Through { ended: (guard, result), opened, received });
                }
                HostEffect::Retry { .. } | HostEffect::Drop { .. } => unreachable!("counted where they come"),
            }
        }
    }

    /// Pins the pages of a thread's buffer, and passes their addresses to the host's state machine. Host memory has the
    /// same addresses on the bus.
    async fn pin(self: &Rc<Card>, thread: &Thread, id: ThreadId, buffer: Buffer, path: &mut Path) {
        let (address, bytes) = (buffer.address, u64::from(buffer.bytes));
        let there = self.dma.memory().check(address, bytes).is_ok();
        let mut pages = thread.list.take();
        if there {
            let end = address + bytes;
            let mut at = address;
            while at < end {
                let next = (at / u64::from(PAGE_BYTES) + 1) * u64::from(PAGE_BYTES);
                let piece = next.min(end) - at;
                pages.push(Page::new(at, piece as u32).expect("a piece of one page of the host"));
                at += piece;
            }
        }
        self.kernel.pin(pages.len() as u64, path).await;
        if there {
            thread.pages.set(pages.len() as u64);
            self.count(|counters| counters.pinned += pages.len() as u64);
        }
        let told = self.on_host(None, Some(path.clone()), |host, effects| match there {
            true => host.pinned(id, &pages, effects),
            false => host.pin_failed(id, effects),
        });
        told.expect("a thread's buffer is pinned once, and whole");
        pages.clear();
        thread.list.replace(pages);
    }

    /// Writes a mailbox and rings the card's doorbell for it.
    async fn post(self: &Rc<Card>, mailbox: Mailbox, bytes: [u8; MAILBOX_BYTES], path: &mut Path) {
        let (cpus, driver) = (self.kernel.cpus(), &self.spec.channels.driver);
        if let Ok(Message { body: Body::Pages(_), .. }) = Message::decode(&bytes) {
            cpus.spend(driver.list, stages::DRIVER, path).await;
        }
        cpus.spend(driver.post, stages::DRIVER, path).await;
        self.count(|counters| counters.posted += 1);
        self.lane(mailbox, |lane| lane.outbox = bytes);
        let crossing = self.dma.bus().push(self.next_message(), DOORBELL, DOORBELL, path.clone());
        let card = self.clone();
        self.sim.spawn(async move {
            let path = crossing.packet(0).await.landed();
            card.sim.until(path.at()).await;
            card.lane(mailbox, |lane| lane.rung = path);
            card.on_card(None, |machine, effects| machine.ring(mailbox, effects))
                .expect("the card has the channels that the host has");
        });
    }

    /// Handles the card's interrupt, which reaches the host at `at`. The handler reads the mailbox that was written
    /// first. If the card wrote a mailbox twice before, the handler may read another mailbox than that of this
    /// interrupt.
    pub(super) async fn interrupt(self: Rc<Card>, at: Time) {
        self.sim.until(at).await;
        let mut handler = Path::from(at);
        self.kernel.interrupt(&self.vector, &mut handler).await;
        let seen = {
            let mut effects = self.host_effects.take();
            let mailbox = self.host.borrow_mut().interrupt_one(&mut effects);
            self.host_effects.replace(effects);
            mailbox
        };
        let path = seen.map(|mailbox| {
            let mut path = self.lane(mailbox, |lane| lane.raised.clone());
            let own = handler.at().since(at).saturating_sub(handler.total(Stage::INTERRUPT_QUEUED));
            path.advance(Stage::INTERRUPT_QUEUED, Time::from_ps(handler.at().ps() - own.ps()));
            for (stage, time) in handler.stages().filter(|(stage, _)| *stage != Stage::INTERRUPT_QUEUED) {
                path.advance(stage, handler.at().min(path.at() + time));
            }
            if mailbox.direction == Direction::ToHost {
                self.message_arrived(mailbox, &path);
            }
            path
        });
        self.hand_out_all(path);
    }

    /// Runs a step of the host's state machine, and distributes the step's effects. If the step begins a call, `caller`
    /// is the call's thread and the call.
    pub(super) fn on_host<R>(
        self: &Rc<Card>,
        caller: Option<(ThreadId, &Request)>,
        path: Option<Path>,
        act: impl FnOnce(&mut Host, &mut Vec<HostEffect>) -> R,
    ) -> R
    where
        R: Opens,
    {
        let mut effects = self.host_effects.take();
        let result = act(&mut self.host.borrow_mut(), &mut effects);
        if let Some((id, request)) = caller
            && let Some(opened) = result.begun()
        {
            let threads = self.threads.borrow();
            let mut claims = threads[usize::from(id.0)].claims.borrow_mut();
            request.claim(opened, |mailbox| {
                self.lane(mailbox, |lane| lane.owner = Some(id));
                claims.push(mailbox);
            });
        }
        self.host_effects.replace(effects);
        self.hand_out_all(path);
        result
    }

    /// Distributes the effects of the host's state machine to the threads or the handler.
    fn hand_out_all(self: &Rc<Card>, path: Option<Path>) {
        let mut effects = self.host_effects.take();
        for effect in effects.drain(..) {
            self.hand_out(effect, path.clone());
        }
        self.host_effects.replace(effects);
        self.arm();
    }

    fn hand_out(self: &Rc<Card>, effect: HostEffect, path: Option<Path>) {
        let id = match effect {
            HostEffect::Retry { .. } => {
                self.count(|counters| counters.retries += 1);
                return;
            }
            HostEffect::Drop { .. } => {
                self.count(|counters| counters.dropped += 1);
                return;
            }
            HostEffect::Pin { thread, .. }
            | HostEffect::Unpin { thread }
            | HostEffect::Wake { thread, .. } => Some(thread),
            HostEffect::Post { mailbox, .. } => self.lane(mailbox, |lane| lane.owner),
        };
        let Some(id) = id else {
            // No thread waits for this effect, so the interrupt handler posts the reply.
            let HostEffect::Post { mailbox, bytes } = effect else {
                unreachable!("only a post has no thread")
            };
            let (card, mut path) = (self.clone(), path.unwrap_or(Path::from(self.sim.now())));
            self.sim.spawn(async move { card.post(mailbox, bytes, &mut path).await });
            return;
        };
        let thread = self.threads.borrow()[usize::from(id.0)].clone();
        if matches!(effect, HostEffect::Wake { .. }) {
            for mailbox in thread.claims.borrow_mut().drain(..) {
                self.lane(mailbox, |lane| lane.owner.take_if(|owner| *owner == id));
            }
        }
        thread.work.borrow_mut().push_back(effect);
        thread.release.set(path);
        thread.given.notify_all();
    }
}

/// The result of a step of the host's state machine. It says whether a call has begun, and which channel it has opened.
pub(super) trait Opens {
    fn begun(&self) -> Option<Option<Channel>> {
        None
    }
}

impl Opens for Result<Option<Channel>, Error> {
    fn begun(&self) -> Option<Option<Channel>> {
        self.as_ref().ok().copied()
    }
}

impl Opens for Result<(), Error> {}
impl Opens for () {}
