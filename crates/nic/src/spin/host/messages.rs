//! `send` and `recv` on a Portals 4 card, in the way of MPI over Portals 4.
//!
//! A message is a put into the use-once entry of its receive, and nothing more if the receive is posted. A message
//! that comes first matches on the overflow list. A short one (*eager*, up to `messages.eager`) stays in a buffer
//! there until its receive is appended, and is then copied. For a longer one (*rendezvous*) the overflow list takes
//! the header only; its sender learns that from the acknowledgement, and waits until the receiver has got the bytes
//! from its memory.
//!
//! This is the protocol of Open MPI's `mtl/portals4` with `long_protocol=eager`, with one difference: a sender
//! exposes its memory as a whole, by one entry, and not message by message, which would take a command before each
//! long put.
//!
//! The work of the host's CPUs for a late receive is in `unexpected.rs`.

use crate::messages::{Arrival, Caller, Outgoing, Wanted};
use crate::spin::host::command::Appending;
use crate::spin::host::match_bits::{LONG, MESSAGES, NUMBER, NUMBER_AT, tag_of};
use crate::spin::host::unexpected::Unexpected;
use crate::spin::{CallError, Card};
use nicety_host::Cpus;
use nicety_kernel::describe;
use nicety_portals::{
    AckRequest, EqHandle, Event, EventKind, List, Md, MdOptions, Me, MeOptions, PutRequest, Request, Source,
    UnexpectedMessage,
};
use nicety_types::NodeId;
use std::cell::Cell;
use std::rc::Rc;

/// The state of a node's `send` and `recv`.
pub(in crate::spin) struct Messages {
    /// Events of sends and receives.
    pub(in crate::spin) events: EqHandle,
    pub(in crate::spin) cpus: Rc<Cpus>,
    /// Numbers of sends and receives, to distinguish their events.
    requests: Cell<u64>,
    pub(in crate::spin) unexpected: Unexpected,
}

/// A receive whose entry is on the card or in flight to it.
pub(in crate::spin) struct Posted {
    appending: Appending,
    /// Its number, in its event.
    user_ptr: u64,
    wanted: Wanted,
}

impl Messages {
    pub(in crate::spin) fn next_request(&self) -> u64 {
        let request = self.requests.get();
        self.requests.set(request + 1);
        request
    }
}

impl Card {
    /// Allocates the event queue and the portal table entry for messages.
    pub(in crate::spin) fn set_up_messages(&self, cpus: Rc<Cpus>) -> Result<(), CallError> {
        let events = self.eq_alloc(self.spec().limits.event_queue_depth)?;
        self.pt_alloc(Some(MESSAGES), Some(events))?;
        let unexpected = Unexpected::new(&self.sim);
        let messages = Messages { events, cpus, requests: Cell::new(0), unexpected };
        assert!(self.library.set(messages).is_ok(), "a card is set up once");
        Ok(())
    }

    /// The first message of `send` without a receive, and the number of such messages.
    pub(in crate::spin) fn unreceived(&self) -> Option<(UnexpectedMessage, u32)> {
        self.library.get()?;
        self.interface.borrow().unexpected(MESSAGES)
    }

    pub(in crate::spin) fn messages(&self) -> &Messages {
        self.library.get().expect("the card of a node is set up with it")
    }

    /// A put, and the wait until the buffer may be used again: for its SEND event, and for a long message until the
    /// receiver's card has accepted or got it.
    pub(in crate::spin) async fn send_message(
        self: &Rc<Card>,
        caller: Caller<'_>,
        message: Outgoing,
    ) -> Result<(), CallError> {
        let Outgoing { to, tag, address, bytes } = message;
        let (messages, start) = (self.messages(), caller.sim.now());
        let user_ptr = messages.next_request();
        let long = bytes > self.spec.messages.eager;
        let number = user_ptr & NUMBER;
        let eq = Some(messages.events);
        let md =
            self.md_bind(Md { start: address, length: bytes, options: MdOptions::default(), eq, ct: None })?;
        let mut put = PutRequest { user_ptr, ..PutRequest::new(md, bytes, NodeId(to), MESSAGES, tag.into()) };
        if long {
            put.match_bits |= LONG | number << NUMBER_AT;
            (put.hdr_data, put.ack) = (address, AckRequest::Full);
        }
        let put = Request::Put(put);
        caller.timed(put.name(), async |path| self.post(caller.cpus, path, &put).await).await?;
        let own = |kind| move |event: &Event| event.kind == kind && event.user_ptr == user_ptr;
        let leave = || format!("its send to rank {to}, tag {tag}, to leave");
        let sent = self.message_event(caller, "wait for an event", own(EventKind::Send), leave).await?;
        // A message that could not be delivered ends the run; no acknowledgement of it comes.
        if long && sent.fail.is_ok() {
            let reach = || format!("its send to rank {to}, tag {tag}, to be acknowledged");
            let mut ended =
                self.message_event(caller, "wait for an event", own(EventKind::Ack), reach).await?;
            if ended.fail.is_ok() && ended.list == List::Overflow {
                let eager = self.spec.messages.eager;
                let taken = || {
                    format!(
                        "rank {to} to receive its message of tag {tag}: with {bytes} bytes, more than messages.eager \
                         ({eager}), it stays with its sender until then"
                    )
                };
                let got = |event: &Event| {
                    event.kind == EventKind::Get && event.initiator.0 == to && event.match_bits == number
                };
                ended = self.message_event(caller, "wait for the receiver", got, taken).await?;
            }
            self.md_release(md)?;
            if !ended.fail.is_ok() {
                return Err(CallError::NotTaken { to, tag, bytes, fail: ended.fail });
            }
        } else {
            self.md_release(md)?;
        }
        caller.called("send", start);
        Ok(())
    }

    async fn message_event(
        &self,
        caller: Caller<'_>,
        call: &'static str,
        wanted: impl Fn(&Event) -> bool,
        what: impl Fn() -> String,
    ) -> Result<Event, CallError> {
        let events = self.messages().events;
        let wait = async |path: &mut _| self.eq_wait(caller.cpus, path, events, wanted, what).await;
        caller.timed(call, wait).await
    }

    /// A use-once entry for a message.
    pub(in crate::spin) async fn post_receive(
        self: &Rc<Card>,
        caller: Caller<'_>,
        wanted: Wanted,
    ) -> Result<Posted, CallError> {
        let Wanted { source, tag, address, room } = wanted;
        let messages = self.messages();
        messages.unexpected.check()?;
        let user_ptr = messages.next_request();
        let me = Me {
            start: address,
            length: room,
            match_bits: tag.unwrap_or(0).into(),
            ignore_bits: if tag.is_some() { LONG | NUMBER << NUMBER_AT } else { !0 },
            source: source.map_or(Source::Any, |rank| Source::Rank(NodeId(rank))),
            options: MeOptions::OP_PUT
                | MeOptions::USE_ONCE
                | MeOptions::EVENT_LINK_DISABLE
                | MeOptions::EVENT_UNLINK_DISABLE,
            user_ptr,
            ..Me::default()
        };
        let post = async |path: &mut _| self.me_append(caller.cpus, path, MESSAGES, me, List::Priority).await;
        let appending = caller.timed("append an entry", post).await?;
        // The card has still to serve the append, which may find its message waiting.
        messages.unexpected.expect(user_ptr, wanted);
        Ok(Posted { appending, user_ptr, wanted })
    }

    /// Waits for the PUT event of a receive, or until the library has delivered a message that came before it.
    pub(in crate::spin) async fn received_message(
        &self,
        caller: Caller<'_>,
        posted: Posted,
    ) -> Result<Arrival, CallError> {
        let Posted { appending, user_ptr, wanted } = posted;
        let Messages { events, unexpected, .. } = self.messages();
        let put = |event: &Event| event.kind == EventKind::Put && event.user_ptr == user_ptr;
        let wait = async |path: &mut _| {
            let came = || self.view.has(*events, put);
            let over = || {
                appending.refused().is_some()
                    || unexpected.is_over(user_ptr)
                    || came()
                    || unexpected.check().is_err()
            };
            describe(|| wanted.what(), self.view.changed.wait_until(over)).await;
            if let Some(finished) = unexpected.take(user_ptr) {
                return finished.seen_on(path);
            }
            unexpected.forget(user_ptr);
            if let Some(error) = appending.refused() {
                return Err(error.into());
            }
            if !came() {
                unexpected.check()?;
            }
            let event = self.eq_wait(caller.cpus, path, *events, put, || wanted.what()).await?;
            let (source, tag) = (event.initiator.0, tag_of(event.match_bits));
            Ok(Arrival { source, tag, bytes: event.rlength, room: event.mlength })
        };
        caller.timed("wait for an event", wait).await
    }
}
