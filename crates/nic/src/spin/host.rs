//! A host's side of its card: the Portals calls, each with its time.
//!
//! Allocating counters, queues, descriptors and portal table entries is the library's work before a program is
//! measured and takes no time. Posting an operation costs the CPU o; the command then crosses the bus and, where
//! it changes what matches, waits for the matching unit like a packet.

use super::attachments::AttachError;
use super::send::{Bytes, Leaving, Report};
use super::view::Seen;
use super::{Card, HandlerError};
use nicety_host::{Cpus, Memory, Notice, Transfer};
use nicety_kernel::describe;
use nicety_portals::{
    CtEvent, CtHandle, EqHandle, Error, Event, List, Md, MdHandle, Me, MeHandle, PutRequest,
};
use nicety_types::{MessageId, Path, Starter, Time};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// Why a host's call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The interface refused it.
    Portals(Error),
    /// Memory that is not the host's.
    Memory(nicety_host::MemoryError),
    /// There is no such rank.
    Rank {
        /// The rank asked for.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
    /// A rank cannot send to itself on this topology.
    ToItself {
        /// The rank.
        rank: u32,
    },
    /// Operations that a counter counts have failed.
    Failures {
        /// How many.
        failures: u64,
    },
    /// No handlers have this number.
    NotAttached {
        /// The number.
        cookie: u32,
    },
    /// Program or state do not fit on the card.
    Handlers(HandlerError),
    /// Something that the host has put on its card is not there, or cannot be used so.
    Attached(AttachError),
    /// An event queue overflowed.
    EventsLost {
        /// Events lost.
        lost: u64,
    },
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Portals(error) => error.fmt(f),
            CallError::Memory(error) => error.fmt(f),
            CallError::Rank { rank, ranks } => {
                write!(f, "there is no rank {rank}; the cluster has ranks 0 to {}", ranks - 1)
            }
            CallError::ToItself { rank } => {
                write!(f, "rank {rank} cannot send to itself: no link leads from a card back to it")
            }
            CallError::Failures { failures } => {
                write!(f, "{failures} of the operations waited for failed at their target")
            }
            CallError::NotAttached { cookie } => {
                write!(f, "no handlers were attached under number {cookie}; attach them before the append")
            }
            CallError::Handlers(error) => error.fmt(f),
            CallError::Attached(error) => error.fmt(f),
            CallError::EventsLost { lost } => write!(
                f,
                "the event queue was full and {lost} events are lost; allocate a deeper queue or read it more often"
            ),
        }
    }
}

impl std::error::Error for CallError {}

impl From<Error> for CallError {
    fn from(error: Error) -> CallError {
        CallError::Portals(error)
    }
}

impl From<HandlerError> for CallError {
    fn from(error: HandlerError) -> CallError {
        CallError::Handlers(error)
    }
}

impl From<AttachError> for CallError {
    fn from(error: AttachError) -> CallError {
        CallError::Attached(error)
    }
}

impl From<nicety_host::MemoryError> for CallError {
    fn from(error: nicety_host::MemoryError) -> CallError {
        CallError::Memory(error)
    }
}

/// What the card answers to an append, and the path until the host sees it.
type Answer = (Result<MeHandle, Error>, Path);

/// The result of an append that is on its way to the card.
pub struct Appending {
    result: Rc<RefCell<Option<Answer>>>,
}

impl Card {
    /// The host's memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The card's specification.
    pub fn spec(&self) -> &crate::SpinSpec {
        &self.spec
    }

    /// A counter (`PtlCTAlloc`).
    ///
    /// # Errors
    /// When there are no more.
    pub fn ct_alloc(&self) -> Result<CtHandle, CallError> {
        Ok(self.interface.borrow_mut().ct_alloc()?)
    }

    /// An event queue of `depth` events (`PtlEQAlloc`).
    ///
    /// # Errors
    /// When there are no more, or not of that depth.
    pub fn eq_alloc(&self, depth: u32) -> Result<EqHandle, CallError> {
        Ok(self.interface.borrow_mut().eq_alloc(depth)?)
    }

    /// A memory descriptor (`PtlMDBind`).
    ///
    /// # Errors
    /// When there are no more, or the memory is not the host's.
    pub fn md_bind(&self, md: Md) -> Result<MdHandle, CallError> {
        self.memory.check(md.start, md.length)?;
        Ok(self.interface.borrow_mut().md_bind(md)?)
    }

    /// Gives a memory descriptor back (`PtlMDRelease`).
    ///
    /// # Errors
    /// When it is in use, or none.
    pub fn md_release(&self, md: MdHandle) -> Result<(), CallError> {
        Ok(self.interface.borrow_mut().md_release(md)?)
    }

    /// A portal table entry (`PtlPTAlloc`).
    ///
    /// # Errors
    /// When the index is taken or past the table.
    pub fn pt_alloc(&self, index: Option<u32>, eq: Option<EqHandle>) -> Result<u32, CallError> {
        Ok(self.interface.borrow_mut().pt_alloc(index, eq)?)
    }

    fn check_rank(&self, rank: u32) -> Result<(), CallError> {
        if rank >= self.nodes {
            Err(CallError::Rank { rank, ranks: self.nodes })
        } else if rank == self.node.0 {
            Err(CallError::ToItself { rank })
        } else {
            Ok(())
        }
    }

    /// Sends a message (`PtlPut`). Returns when it has been posted.
    ///
    /// # Errors
    /// When the request is not valid; nothing has been sent then.
    pub async fn put(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        request: &PutRequest,
    ) -> Result<(), CallError> {
        self.check_rank(request.target.0)?;
        let out = self.interface.borrow_mut().put(request)?;
        let message = self.next_message();
        self.record_sent(message, &out.header, Starter::Host, path);
        cpus.post(path, message).await;
        let transfer = self.bus.push(message, out.header.length, self.spec.packet_payload, *path);
        let leaving = Leaving {
            message,
            header: out.header,
            length: out.header.length,
            bytes: Bytes::Host { start: out.start, transfer },
            report: Some(Report::Sent(out.operation)),
            place: None,
        };
        self.sim.spawn(self.clone().send(leaving));
        Ok(())
    }

    /// Has the card send a message once a counter has reached `threshold` (`PtlTriggeredPut`). Returns when it has been
    /// posted.
    ///
    /// # Errors
    /// When the rank is not valid. What the card refuses when the command reaches it is among its faults.
    pub async fn triggered_put(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        request: PutRequest,
        ct: CtHandle,
        threshold: u64,
    ) -> Result<(), CallError> {
        self.check_rank(request.target.0)?;
        let command = self.next_message();
        cpus.post(path, command).await;
        let (card, crossing) = (self.clone(), self.bus.push(command, 0, 1, *path));
        self.sim.spawn(async move {
            let path = card.command_served(command, crossing).await;
            let mut result = Ok(());
            card.with_effects(path, |interface, effects| {
                result = interface.triggered_put(&request, ct, threshold, effects);
            });
            if let Err(error) = result {
                card.fault(None, format!("the card refused a triggered put: {error}"));
            }
        });
        Ok(())
    }

    /// Appends a match entry (`PtlMEAppend`). Returns when it has been posted.
    ///
    /// # Errors
    /// When the memory is not the host's; what the card refuses, [`Card::appended`] tells.
    pub async fn me_append(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        pt: u32,
        me: Me,
        list: List,
    ) -> Result<Appending, CallError> {
        self.memory.check(me.start, me.length)?;
        let attachment = match me.handlers {
            None => None,
            Some(cookie) => Some(self.attachments.get(cookie).ok_or(CallError::NotAttached { cookie })?),
        };
        if let Some(attachment) = &attachment {
            attachment.appending.set(attachment.appending.get() + 1);
        }
        let command = self.next_message();
        cpus.post(path, command).await;
        let appending = Appending { result: Rc::default() };
        let (card, result) = (self.clone(), appending.result.clone());
        let crossing = self.bus.push(command, 0, 1, *path);
        self.sim.spawn(async move {
            let path = card.command_served(command, crossing).await;
            if let Some(attachment) = attachment {
                attachment.appending.set(attachment.appending.get() - 1);
            }
            let mut handle = Err(Error::ArgInvalid("the entry was never appended"));
            card.with_effects(path, |interface, effects| handle = interface.me_append(pt, me, list, effects));
            // The host sees the answer one crossing later.
            let seen = card.bus.post(Notice::Event, path);
            card.sim.until(seen.at()).await;
            *result.borrow_mut() = Some((handle, seen));
            card.view.changed.notify_all();
        });
        Ok(appending)
    }

    /// Waits until the card has appended an entry, and the host has noticed.
    ///
    /// # Errors
    /// When the card refused it.
    pub async fn appended(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        appending: Appending,
    ) -> Result<MeHandle, CallError> {
        let done = self.view.changed.wait_until(|| appending.result.borrow().is_some());
        describe(|| "its card to append a match entry".to_string(), done).await;
        let (result, seen) = appending.result.take().expect("just waited for");
        path.follow(&seen);
        cpus.notice(path, None).await;
        Ok(result?)
    }

    /// A command's way from the bus, on which it was pushed when it was posted, to the end of its service in the matching
    /// unit.
    async fn command_served(&self, command: MessageId, crossing: Transfer) -> Path {
        let crossing = crossing.packet(0).await;
        self.sim.until(crossing.head).await;
        let mut path = crossing.landed();
        self.matched(command, self.spec.match_command, &mut path).await;
        path
    }

    /// A counter as the host sees it (`PtlCTGet`).
    pub fn ct_get(&self, ct: CtHandle) -> CtEvent {
        self.view.counter(ct).map_or_else(CtEvent::default, |(value, _)| value)
    }

    /// When the host could see a counter's last change; none where it has not changed.
    pub fn ct_changed(&self, ct: CtHandle) -> Option<Time> {
        self.view.counter(ct).map(|(_, seen)| seen.path.at())
    }

    /// Waits until a counter has reached `threshold` successes, and notices it (`PtlCTWait`).
    ///
    /// # Errors
    /// When operations it counts have failed.
    pub async fn ct_wait(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        ct: CtHandle,
        threshold: u64,
    ) -> Result<CtEvent, CallError> {
        let reached = || {
            self.view.counter(ct).is_some_and(|(value, _)| value.success >= threshold || value.failure > 0)
        };
        let why = || format!("a counter to reach {threshold}; it is at {}", self.ct_get(ct).success);
        if threshold > 0 {
            describe(why, self.view.changed.wait_until(reached)).await;
        }
        let nothing = (CtEvent::default(), Seen { path: *path, message: None });
        let (value, seen) = self.view.counter(ct).unwrap_or(nothing);
        self.notice(cpus, path, &seen).await;
        match value.failure {
            0 => Ok(value),
            failures => Err(CallError::Failures { failures }),
        }
    }

    /// Waits for the first event in a queue that `wanted` accepts, and notices it; events before it stay
    /// (`PtlEQWait`). `what` says in a deadlock's report what it waits for.
    ///
    /// # Errors
    /// When the queue overflowed.
    pub async fn eq_wait(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        eq: EqHandle,
        wanted: impl Fn(&Event) -> bool,
        what: impl Fn() -> String,
    ) -> Result<Event, CallError> {
        describe(what, self.view.changed.wait_until(|| self.view.has(eq, &wanted))).await;
        let lost = self.view.take_lost(eq);
        if lost > 0 {
            return Err(CallError::EventsLost { lost });
        }
        let (event, seen) = self.view.take(eq, &wanted).expect("just seen");
        self.interface.borrow_mut().eq_consumed(eq, 1)?;
        self.notice(cpus, path, &seen).await;
        Ok(event)
    }

    /// The host's CPU notices what it can see.
    async fn notice(&self, cpus: &Cpus, path: &mut Path, seen: &Seen) {
        path.follow(&seen.path);
        cpus.notice(path, seen.message).await;
        if let Some(message) = seen.message {
            self.recorder.message_noticed(message, self.sim.now());
        }
    }

    /// As [`Card::eq_wait`], for an event of an entry whose append is under way: ends with the append's error where the
    /// card refused it.
    ///
    /// # Errors
    /// When the card refused the entry, or the queue overflowed.
    pub async fn eq_wait_of(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        eq: EqHandle,
        appending: &Appending,
        wanted: impl Fn(&Event) -> bool,
        what: impl Fn() -> String,
    ) -> Result<Event, CallError> {
        let refused = || matches!(&*appending.result.borrow(), Some((Err(_), _)));
        let over = || refused() || self.view.has(eq, &wanted);
        describe(&what, self.view.changed.wait_until(over)).await;
        if let Some((Err(error), _)) = &*appending.result.borrow() {
            return Err((*error).into());
        }
        self.eq_wait(cpus, path, eq, wanted, what).await
    }
}
