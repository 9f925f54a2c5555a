//! Messages that cards execute without their hosts. This includes matching, unexpected messages and rendezvous.
//!
//! A receive is a use-once match entry with the handlers of `matching.c`. A short message is a put to this entry. For a long
//! message, the sender puts a request without payload. The header handler of the request then gets the bytes from the sender's
//! memory. The receiving host gets an event at the match, and counts the end of the get.
//!
//! An unexpected message matches the overflow list. If it is short, its bytes wait in a buffer of the library; if it is long, its
//! request waits. When the receive is posted, the card redelivers the message to its entry ([`MeOptions::REDELIVER`]). So a late
//! receive takes the same path as an early one. The CPU of the host only posts operations and reads events.
//!
//! Each rank has one task that reads events. The task ends when no message is in flight.

use super::rank::{CardMessages, Posting, Running};
use crate::check::named;
use crate::schedule::{ANY, Kind, Op};
use nicety::portals::{
    CtHandle, DropReason, EqHandle, Event, EventKind, List, Md, MdHandle, MdOptions, Me, MeOptions,
    PutRequest, Source,
};
use nicety::spin::MessagesSpec;
use nicety::{Buffer, Error, Handlers, Host, Later, NodeId, Portals};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The portal table index of messages. Index 0 belongs to the library's `send` and `recv`.
const PT: u32 = 1;
/// `MATCHING_DATA` of matching.h. Added to the number of a request, it is the match bits for the bytes of a long message at their
/// sender.
const DATA: u64 = 1 << 63;
/// The bits of a tag in match bits.
const TAGS: u64 = u32::MAX as u64;
/// Maximum length of a message, because handlers count bytes in 32 bits.
pub(super) const LONGEST: u64 = u32::MAX as u64;

/// The messages of a rank, on its card.
pub(super) struct OnCard {
    portals: Portals,
    events: EqHandle,
    handlers: u32,
    /// Descriptors of the source memory of all messages. `out` causes SEND events, and `silent` does not.
    out: MdHandle,
    silent: MdHandle,
    /// Buffers for unexpected short messages.
    buffers: Buffer,
    spec: MessagesSpec,
    /// Maximum number of waiting receives, from the limits of the card.
    most: u32,
    receives: Cell<u32>,
    /// Operations that wait for an event. The key is the operation's number.
    expected: RefCell<FxHashMap<u32, Expected>>,
    /// Whether a task that reads events is running.
    is_reading: Cell<bool>,
}

/// An operation of a rank that has begun on its host.
struct Begun {
    rank: Rc<Running>,
    host: Host,
    number: u32,
    op: Op,
}

/// An operation that waits for an event.
struct Expected {
    op: Op,
    /// The counter of the get of a receive.
    got: Option<CtHandle>,
}

impl CardMessages for OnCard {
    /// Posts a send or a receive. Operations that depend on its end continue after its event.
    fn post(self: Rc<OnCard>, rank: Rc<Running>, host: Host, number: u32, op: Op) -> Posting {
        Box::pin(async move {
            let begun = Begun { rank, host, number, op };
            let posted = match op.kind {
                Kind::Recv => self.receive(&begun).await,
                _ => self.send(&begun).await,
            };
            posted.map_err(|error| error.inside(&named(number, &op)))?;
            if op.kind == Kind::Recv {
                begun.rank.posted(&begun.host);
            }
            Ok(())
        })
    }

    /// Returns the reason if the card has dropped an unexpected message. The run has then failed.
    fn dropped(&self) -> Option<String> {
        let card = self.portals.card();
        let (statistics, spec) = (card.statistics(), card.spec());
        let first = statistics.first_dropped()?;
        let why = match first.reason {
            DropReason::NoUnexpectedHeader => format!(
                "the card has no room for one more unexpected header; receive earlier, or raise limits.unexpected_headers \
                 ({})",
                spec.limits.unexpected_headers
            ),
            DropReason::NoMatch => format!(
                "it found the buffers for such messages full; receive earlier, or raise messages.buffers ({}) or \
                 messages.buffer ({} bytes each), or lower messages.eager ({} bytes), above which messages wait at their \
                 senders",
                spec.messages.buffers, spec.messages.buffer, spec.messages.eager
            ),
            DropReason::NoContext => format!(
                "the card has no context for one more message's handlers; raise hpu.contexts ({})",
                spec.hpu.contexts
            ),
            _ => return None,
        };
        Some(format!(
            "a message from rank {}, tag {}, came before its receive and is lost: {why}",
            first.source.0, first.match_bits as u32
        ))
    }
}

impl OnCard {
    /// Sets up a rank's card, as a library does before a measured program.
    ///
    /// # Errors
    /// When the card cannot run handlers, or has too few resources.
    pub(super) fn set_up(host: &Host, handlers: &Handlers, out: &Buffer) -> Result<Rc<OnCard>, Error> {
        let portals = host.portals()?;
        let (limits, spec) = (portals.ni_limits(), portals.card().spec().messages);
        let events = portals.eq_alloc(limits.event_queue_depth)?;
        portals.pt_alloc(Some(PT), Some(events))?;
        let md = |options| {
            portals.md_bind(Md {
                start: out.address(),
                length: out.len(),
                options,
                eq: Some(events),
                ..Md::default()
            })
        };
        let card = OnCard {
            events,
            handlers: portals.attach(handlers, &[], None)?,
            out: md(MdOptions::empty())?,
            silent: md(MdOptions::EVENT_SEND_DISABLE)?,
            buffers: host.alloc_phantom(u64::from(spec.buffers) * spec.buffer)?,
            spec,
            most: limits.entries.min(limits.list_length),
            receives: Cell::new(0),
            expected: RefCell::default(),
            is_reading: Cell::new(false),
            portals: portals.clone(),
        };
        let data = Me {
            start: out.address(),
            length: out.len(),
            match_bits: DATA,
            ignore_bits: DATA - 1,
            options: MeOptions::OP_GET,
            ..Me::default()
        };
        portals.me_set_up(PT, data, List::Priority)?;
        for index in 0..spec.buffers {
            portals.me_set_up(PT, card.buffer(index.into()), List::Overflow)?;
        }
        // Requests have no payload. So this entry accepts them even if all buffers are full.
        let requests = MeOptions::OP_PUT | MeOptions::NO_TRUNCATE | MeOptions::EVENT_COMM_DISABLE;
        let requests = Me { ignore_bits: !DATA, options: requests, ..Me::default() };
        portals.me_set_up(PT, requests, List::Overflow)?;
        Ok(Rc::new(card))
    }

    /// Returns the match entry of a buffer. The entry unlinks when the buffer may have no room for another message.
    fn buffer(&self, index: u64) -> Me {
        Me {
            start: self.buffers.address() + index * self.spec.buffer,
            length: self.spec.buffer,
            ignore_bits: !DATA,
            options: MeOptions::OP_PUT
                | MeOptions::MANAGE_LOCAL
                | MeOptions::NO_TRUNCATE
                | MeOptions::EVENT_COMM_DISABLE,
            min_free: self.spec.eager,
            user_ptr: index,
            ..Me::default()
        }
    }

    /// Sends a short message as a put. For a long message, sends a request with the operation's number and the message's length.
    async fn send(self: &Rc<OnCard>, begun: &Begun) -> Result<(), Error> {
        let Begun { number, op, .. } = *begun;
        let is_long = op.size > self.spec.eager;
        let (md, length) = if is_long { (self.silent, 0) } else { (self.out, op.size) };
        let request = if is_long { u64::from(number) << 32 | op.size } else { 0 };
        let put = PutRequest {
            hdr_data: request,
            user_ptr: number.into(),
            ..PutRequest::new(md, length, NodeId(op.peer), PT, op.tag.into())
        };
        self.expect(begun, None);
        begun.host.portals()?.put(&put).await
    }

    async fn receive(self: &Rc<OnCard>, begun: &Begun) -> Result<(), Error> {
        let Begun { number, op, .. } = *begun;
        let portals = begun.host.portals()?;
        if self.receives.get() >= self.most {
            return Err(Error::Program(format!(
                "{} receives wait for their messages, and the card has room for no more; post fewer at a time, or raise \
                 limits.match_entries",
                self.most
            )));
        }
        let (into, got) = (begun.rank.room(&op)?, portals.ct_alloc()?);
        let me = Me {
            start: into.address(),
            length: into.len(),
            match_bits: if op.tag == ANY { 0 } else { op.tag.into() },
            ignore_bits: if op.tag == ANY { TAGS } else { 0 },
            source: if op.peer == ANY { Source::Any } else { Source::Rank(NodeId(op.peer)) },
            options: MeOptions::OP_PUT
                | MeOptions::USE_ONCE
                | MeOptions::REDELIVER
                | MeOptions::EVENT_LINK_DISABLE
                | MeOptions::EVENT_UNLINK_DISABLE,
            ct: Some(got),
            handlers: Some(self.handlers),
            user_ptr: number.into(),
            ..Me::default()
        };
        self.receives.set(self.receives.get() + 1);
        self.expect(begun, Some(got));
        portals.me_append(PT, me, List::Priority).await?;
        Ok(())
    }

    /// Records an operation that waits for an event.
    fn expect(self: &Rc<OnCard>, begun: &Begun, got: Option<CtHandle>) {
        let Begun { rank, host, number, op } = begun;
        self.expected.borrow_mut().insert(*number, Expected { op: *op, got });
        if !self.is_reading.replace(true) {
            let (own, rank) = (self.clone(), rank.clone());
            rank.tasks.clone().start(host, 0, host.path(), |host| own.read(rank, host));
        }
    }

    /// Reads events as long as operations wait for them.
    async fn read(self: Rc<OnCard>, rank: Rc<Running>, host: Host) -> Result<Option<Later>, Error> {
        let portals = host.portals()?;
        let what = || format!("the events of {} messages", self.expected.borrow().len());
        while !self.expected.borrow().is_empty() {
            let event = portals.eq_wait(self.events, |_| true, what).await?;
            let number = match event.kind {
                EventKind::AutoUnlink => continue,
                // All messages in this buffer have been redelivered to receives, so the buffer can be used again.
                EventKind::AutoFree => {
                    portals.me_append(PT, self.buffer(event.user_ptr), List::Overflow).await?;
                    continue;
                }
                EventKind::Get => event.match_bits & !DATA,
                _ => event.user_ptr,
            } as u32;
            let Some(expected) = self.expected.borrow_mut().remove(&number) else { continue };
            let (own, rank, thread) = (self.clone(), rank.clone(), expected.op.cpu.into());
            rank.tasks.clone().start(&host, thread, host.path(), move |host| async move {
                let Expected { op, got } = expected;
                let begun = Begun { rank, host, number, op };
                let ended = own.end(&begun, got, event).await;
                ended.map_err(|error| error.inside(&named(number, &op)))?;
                begun.rank.completed(number, op, &begun.host);
                Ok(None)
            });
        }
        self.is_reading.set(false);
        Ok(None)
    }

    /// Handles the event of an operation. A receive of a long message ends only after its get.
    async fn end(&self, begun: &Begun, got: Option<CtHandle>, event: Event) -> Result<(), Error> {
        let Begun { number, op, .. } = *begun;
        let portals = begun.host.portals()?;
        let is_cut = op.kind == Kind::Recv && event.mlength < event.rlength;
        if is_cut || !event.fail.is_ok() {
            return Err(failed(&op, &event));
        }
        let Some(got) = got else { return Ok(()) };
        if event.hdr_data != 0 {
            portals.ct_wait(got, 1).await?;
        }
        portals.ct_free(got)?;
        self.receives.set(self.receives.get() - 1);
        if op.peer == ANY || op.tag == ANY {
            begun.rank.taken.borrow_mut().insert(number, (event.initiator.0, event.match_bits as u32));
        }
        Ok(())
    }
}

/// Returns the error for an event that reports a failed operation.
fn failed(op: &Op, event: &Event) -> Error {
    let (from, tag) = (event.initiator.0, event.match_bits as u32);
    let bytes = if event.hdr_data == 0 { event.rlength } else { event.hdr_data & LONGEST };
    let why = match op.kind {
        Kind::Recv if bytes > op.size => format!("it is longer than the receive of {} bytes", op.size),
        _ => event.fail.to_string(),
    };
    Error::Program(match op.kind {
        Kind::Recv => {
            format!("a message of {bytes} bytes from rank {from} with tag {tag} was not received: {why}")
        }
        _ => format!("the message was not sent: {why}"),
    })
}
