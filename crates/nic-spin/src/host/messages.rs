//! `send` and `recv` on a Portals 4 card, as in MPI over Portals 4.
//!
//! A message is a put to the use-once entry of its receive. If the receive is posted, this put is the whole protocol.
//! An unexpected message matches on the overflow list. A short unexpected message (*eager*, up to `messages.eager`)
//! stays in a buffer of this list until its receive is appended, and is then copied. For a longer message
//! (*rendezvous*), the overflow list takes only the header. The acknowledgement tells the sender that only the header
//! was taken. The sender then waits until the receiver has got the bytes from the sender's memory.
//!
//! This is the protocol of Open MPI's `mtl/portals4` with `long_protocol=eager`, with one difference. Here a sender
//! exposes all of its memory by one entry. With an entry for each message, a command would precede each long put.
//!
//! `unexpected.rs` has the work of the host's CPUs for a receive that is posted late.

use crate::host::command::Appending;
use crate::host::in_order::InOrder;
use crate::host::long::{LongMessage, LongNumbers};
use crate::host::match_bits::{LONG, MESSAGES, tag_of};
use crate::host::unexpected::Unexpected;
use crate::host::view::ChangeOrigin;
use crate::{CallError, Card};
use nicety_host::Cpus;
use nicety_kernel::{Signal, Sim, describe};
use nicety_nic_core::{Arrival, Caller, Outgoing, PostedReceive, Tags, Wanted};
use nicety_portals::{
    AckRequest, Effects, EqHandle, Event, EventKind, FailType, Interface, List, Md, MdOptions, Me, MeOptions,
    PutRequest, Request, SearchOp, Source, UnexpectedMessage,
};
use nicety_types::{NodeId, Path};
use rustc_hash::FxHashMap;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

/// The state of a node's `send` and `recv`.
pub(crate) struct Messages {
    /// The queue for events of sends and receives.
    pub(crate) events: EqHandle,
    pub(crate) cpus: Rc<Cpus>,
    /// Number of the next send or receive. The number distinguishes their events.
    requests: Cell<u64>,
    /// The order of sends, by target, and the order of receives. Messages between two ranks match in the order of these
    /// calls.
    sends: InOrder,
    receives: InOrder,
    long: LongNumbers,
    pub(crate) unexpected: Unexpected,
    sim: Sim,
    /// The signals of waiting sends and receives, by number. An event wakes only the send or receive to which it
    /// belongs.
    waiting: RefCell<FxHashMap<u64, Signal>>,
    /// The calls to make when a message arrives for a receive. These calls refer to the card, so a task of the node
    /// owns them. Thus they are dropped together with the simulation.
    calls: OnceCell<Weak<Calls>>,
}

/// Maps the number of a receive to the call to make.
type Calls = RefCell<FxHashMap<u64, Box<dyn FnOnce()>>>;

/// A guard for a wait in progress. When the wait ends or is dropped, its signal is removed unless another wait uses the
/// signal.
struct Wait<'m> {
    messages: &'m Messages,
    number: u64,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut waiting = self.messages.waiting.borrow_mut();
        if waiting.get(&self.number).is_some_and(|signal| signal.waiting() == 0) {
            waiting.remove(&self.number);
        }
    }
}

/// A receive. Its entry is on the card, or on its way to the card.
#[derive(Clone)]
pub(crate) struct Posted {
    appending: Appending,
    /// The number of the receive, which its event carries.
    user_ptr: u64,
    wanted: Wanted,
}

impl Posted {
    /// Returns whether this is the event of the receive's message.
    fn is_event(&self, event: &Event) -> bool {
        event.kind == EventKind::Put && event.user_ptr == self.user_ptr
    }
}

impl Messages {
    pub(crate) fn next_request(&self) -> u64 {
        let request = self.requests.get();
        self.requests.set(request + 1);
        request
    }

    /// Waits for an event of a request, until `over` returns true.
    async fn until(&self, user_ptr: u64, over: impl Fn() -> bool) {
        if over() {
            return;
        }
        let signal =
            self.waiting.borrow_mut().entry(user_ptr).or_insert_with(|| Signal::new(&self.sim)).clone();
        let _until_over = Wait { messages: self, number: user_ptr };
        signal.wait_until(&over).await;
    }

    /// Wakes the waits and calls of a request.
    pub(crate) fn wake(&self, user_ptr: u64) {
        if let Some(signal) = self.waiting.borrow().get(&user_ptr) {
            signal.notify_all();
        }
        let call = self.calls().and_then(|calls| calls.borrow_mut().remove(&user_ptr));
        if let Some(call) = call {
            call();
        }
    }

    /// Wakes the waits and calls of all requests, in the order of their numbers.
    pub(crate) fn wake_all(&self) {
        let mut numbers: Vec<u64> = self.waiting.borrow().keys().copied().collect();
        if let Some(calls) = self.calls() {
            numbers.extend(calls.borrow().keys());
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().for_each(|number| self.wake(number));
    }

    fn calls(&self) -> Option<Rc<Calls>> {
        self.calls.get()?.upgrade()
    }

    /// Returns the calls. At first use, starts the task that owns them.
    fn owned_calls(&self) -> Option<Rc<Calls>> {
        let own = || {
            let calls = Rc::new(Calls::default());
            let weak = Rc::downgrade(&calls);
            self.sim.spawn(async move {
                let _owned = calls;
                std::future::pending::<()>().await;
            });
            weak
        };
        self.calls.get_or_init(own).upgrade()
    }
}

/// Returns a use-once entry, without memory, for messages from a source with these tags.
fn entry(source: Option<u32>, tags: Tags) -> Me {
    Me {
        match_bits: tags.bits,
        ignore_bits: tags.ignore | LONG,
        source: source.map_or(Source::Any, |rank| Source::Rank(NodeId(rank))),
        options: MeOptions::OP_PUT
            | MeOptions::USE_ONCE
            | MeOptions::EVENT_LINK_DISABLE
            | MeOptions::EVENT_UNLINK_DISABLE,
        ..Me::default()
    }
}

impl Card {
    /// Allocates the event queue and the portal table entry for messages.
    pub(crate) fn set_up_messages(&self, cpus: Rc<Cpus>) -> Result<(), CallError> {
        let events = self.eq_alloc(self.spec().limits.event_queue_depth)?;
        self.pt_alloc(Some(MESSAGES), Some(events))?;
        let unexpected = Unexpected::new(&self.sim);
        let (sim, waiting) = (self.sim.clone(), RefCell::default());
        let (requests, long, calls) = (Cell::new(0), LongNumbers::default(), OnceCell::new());
        let (sends, receives) = (InOrder::new(&sim), InOrder::new(&sim));
        let messages =
            Messages { events, cpus, requests, sends, receives, long, unexpected, sim, waiting, calls };
        assert!(self.library.set(messages).is_ok(), "a card is set up once");
        Ok(())
    }

    /// Returns the first message of `send` without a receive, and the number of such messages.
    pub(crate) fn unreceived(&self) -> Option<(UnexpectedMessage, u32)> {
        self.library.get()?;
        self.interface.borrow().unexpected(MESSAGES)
    }

    pub(crate) fn messages(&self) -> &Messages {
        self.library.get().expect("the card of a node is set up with it")
    }

    /// Puts a message, and waits until the buffer may be reused. An eager message's buffer may be reused at its SEND
    /// event. A long message's buffer may be reused when the receiver's card has accepted the message or has got its
    /// bytes.
    pub(crate) async fn send_message(
        self: &Rc<Card>,
        caller: Caller<'_>,
        message: Outgoing,
    ) -> Result<(), CallError> {
        let Outgoing { to, tag, address, bytes } = message;
        let (messages, start) = (self.messages(), caller.sim.now());
        let posting = messages.sends.begin(to);
        let user_ptr = messages.next_request();
        let eager = self.spec.messages.eager;
        let eq = Some(messages.events);
        let md =
            self.md_bind(Md { start: address, length: bytes, options: MdOptions::default(), eq, ct: None })?;
        let long = if bytes > eager { Some(messages.long.take(user_ptr)) } else { None };
        let Ok(long) = long.map(|number| number.ok_or(())).transpose() else {
            self.md_release(md)?;
            return Err(CallError::LongMessages { eager });
        };
        let mut put = PutRequest { user_ptr, ..PutRequest::new(md, bytes, NodeId(to), MESSAGES, tag) };
        if let Some(number) = long {
            put.match_bits |= LONG;
            (put.hdr_data, put.ack) = (LongMessage { number, address }.header_data(), AckRequest::Full);
        }
        let put = Request::Put(put);
        let post = async |path: &mut _| self.post_behind(caller.cpus, path, &put, Some(&posting)).await;
        let posted = caller.timed(put.name(), post).await;
        if posted.is_err() {
            long.into_iter().for_each(|number| messages.long.free(number));
            self.md_release(md)?;
        }
        posted?;
        drop(posting);
        let own = |kind| move |event: &Event| event.kind == kind && event.user_ptr == user_ptr;
        let leave = || format!("its send to rank {to}, tag {tag}, to leave");
        let wait = "wait for an event";
        let sent = self.message_event(caller, user_ptr, wait, own(EventKind::Send), leave).await?;
        // A message that could not be delivered has no acknowledgement to wait for.
        if let Some(number) = long.filter(|_| sent.fail.is_ok()) {
            let reach = || format!("its send to rank {to}, tag {tag}, to be acknowledged");
            let mut ended = self.message_event(caller, user_ptr, wait, own(EventKind::Ack), reach).await?;
            if ended.fail.is_ok() && ended.list == List::Overflow {
                let taken = || {
                    format!(
                        "rank {to} to receive its message of tag {tag}: with {bytes} bytes, more than messages.eager \
                         ({eager}), it stays with its sender until then"
                    )
                };
                let got = |event: &Event| {
                    event.kind == EventKind::Get && event.initiator.0 == to && event.match_bits == number
                };
                ended = self.message_event(caller, user_ptr, "wait for the receiver", got, taken).await?;
            }
            messages.long.free(number);
            self.md_release(md)?;
            if !ended.fail.is_ok() {
                return Err(CallError::NotTaken { to, tag, bytes, fail: ended.fail });
            }
        } else {
            long.into_iter().for_each(|number| messages.long.free(number));
            self.md_release(md)?;
        }
        caller.called("send", start);
        Ok(())
    }

    async fn message_event(
        &self,
        caller: Caller<'_>,
        user_ptr: u64,
        call: &'static str,
        wanted: impl Fn(&Event) -> bool,
        what: impl Fn() -> String,
    ) -> Result<Event, CallError> {
        let wait = async |path: &mut _| self.request_event(caller.cpus, path, user_ptr, wanted, what).await;
        caller.timed(call, wait).await
    }

    /// Waits for an event of a request, and notices it.
    pub(crate) async fn request_event(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        user_ptr: u64,
        wanted: impl Fn(&Event) -> bool,
        what: impl Fn() -> String,
    ) -> Result<Event, CallError> {
        let messages = self.messages();
        let came = || self.view.has(messages.events, &wanted);
        describe(what, messages.until(user_ptr, came)).await;
        self.take(cpus, path, messages.events, wanted).await
    }

    /// Handles an event for the library's sends and receives that the host can now see.
    pub(crate) fn message_event_came(&self, event: Event, seen: ChangeOrigin) {
        let messages = self.messages();
        // A get carries the number of the message of a waiting send.
        let request = match event.kind {
            EventKind::Get => messages.long.request(event.match_bits),
            _ => Some(event.user_ptr),
        };
        self.view.push(messages.events, event, seen);
        if let Some(request) = request {
            messages.wake(request);
        }
    }

    /// Posts a use-once entry for the message of a receive.
    pub(crate) async fn post_receive(
        self: &Rc<Card>,
        caller: Caller<'_>,
        wanted: Wanted,
    ) -> Result<Posted, CallError> {
        let Wanted { source, tags, address, room } = wanted;
        let messages = self.messages();
        messages.unexpected.check()?;
        let posting = messages.receives.begin(0);
        let user_ptr = messages.next_request();
        let me = Me { start: address, length: room, user_ptr, ..entry(source, tags) };
        let post =
            async |path: &mut _| self.me_append_unanswered(caller.cpus, path, MESSAGES, me, &posting).await;
        let appending = caller.timed("append an entry", post).await?;
        drop(posting);
        // The card has not served the append yet. It may find the message waiting at that time.
        messages.unexpected.expect(user_ptr, wanted);
        Ok(Posted { appending, user_ptr, wanted })
    }

    /// Returns the first unexpected message that a receive from `source` with these tags would take. The card searches
    /// its unexpected headers.
    pub(crate) async fn probe_messages(
        self: &Rc<Card>,
        caller: Caller<'_>,
        source: Option<u32>,
        tags: Tags,
    ) -> Result<Option<Arrival>, CallError> {
        let Messages { events, unexpected, .. } = self.messages();
        unexpected.check()?;
        let user_ptr = self.messages().next_request();
        let me = Me { user_ptr, ..entry(source, tags) };
        let search = async |path: &mut Path| {
            let searching = self.me_search(caller.cpus, path, MESSAGES, me, SearchOp::Only).await;
            let found = |event: &Event| event.kind == EventKind::Search && event.user_ptr == user_ptr;
            let came = || self.view.has(*events, found);
            let over = || came() || searching.refused().is_some();
            let what = || "its card to search for a message".to_owned();
            describe(what, self.messages().until(user_ptr, over)).await;
            match searching.refused().filter(|_| !came()) {
                Some(error) => Err(error.into()),
                None => self.take(caller.cpus, path, *events, found).await,
            }
        };
        let event = caller.timed("search for a message", search).await?;
        unexpected.check()?;
        let (source, tag, bytes) = (event.initiator.0, tag_of(event.match_bits), event.rlength);
        Ok((event.fail != FailType::NoMatch).then_some(Arrival { source, tag, bytes, room: bytes }))
    }

    /// Unlinks the entry of a receive, if no message has matched it.
    pub(crate) async fn cancel_receive(
        self: &Rc<Card>,
        caller: Caller<'_>,
        posted: PostedReceive,
    ) -> Result<Option<PostedReceive>, CallError> {
        if self.has_come(posted.look()) {
            return Ok(Some(posted));
        }
        let user_ptr = posted.look::<Posted>().user_ptr;
        // The card serves commands in order, so it appends the entry before it serves this command.
        let unlink =
            move |interface: &mut Interface, _: &mut Effects| match interface.me_with(MESSAGES, user_ptr) {
                Some(entry) => interface.me_unlink(entry).map(|()| true),
                None => Ok(false),
            };
        let ask = async |path: &mut Path| {
            let unlinking = self.ask(caller.cpus, path, unlink).await;
            self.answered(caller.cpus, path, unlinking, "unlink an entry").await
        };
        if !caller.timed("unlink an entry", ask).await? {
            return Ok(Some(posted));
        }
        self.messages().unexpected.forget(user_ptr);
        Ok(None)
    }

    /// Returns whether a receive can end: it has its event, the library has delivered its message, or there is an
    /// error.
    fn has_come(&self, posted: &Posted) -> bool {
        let Messages { events, unexpected, .. } = self.messages();
        posted.appending.refused().is_some()
            || unexpected.is_over(posted.user_ptr)
            || self.view.has(*events, |event| posted.is_event(event))
            || unexpected.check().is_err()
    }

    /// Calls `then` with a receive when it can end.
    pub(crate) fn call_when_received(
        &self,
        posted: PostedReceive,
        then: Box<dyn FnOnce(PostedReceive)>,
    ) -> Result<(), PostedReceive> {
        let number = posted.look::<Posted>().user_ptr;
        match self.messages().owned_calls() {
            Some(calls) if !self.has_come(posted.look()) && !calls.borrow().contains_key(&number) => {
                calls.borrow_mut().insert(number, Box::new(move || then(posted)));
                Ok(())
            }
            _ => Err(posted),
        }
    }

    /// Waits for the PUT event of a receive, or until the library has delivered an unexpected message to the receive.
    pub(crate) async fn received_message(
        &self,
        caller: Caller<'_>,
        posted: Posted,
    ) -> Result<Arrival, CallError> {
        let user_ptr = posted.user_ptr;
        let Messages { events, unexpected, .. } = self.messages();
        let put = |event: &Event| posted.is_event(event);
        let wait = async |path: &mut _| {
            let came = || self.view.has(*events, put);
            let over = || self.has_come(&posted);
            describe(|| posted.wanted.what(), self.messages().until(user_ptr, over)).await;
            if let Some(finished) = unexpected.take(user_ptr) {
                return finished.seen_on(path);
            }
            unexpected.forget(user_ptr);
            if let Some(error) = posted.appending.refused() {
                return Err(error.into());
            }
            if !came() {
                unexpected.check()?;
            }
            // Many receives may wait for a long time. The box keeps the rest of the future out of their memory.
            let event = Box::pin(self.take(caller.cpus, path, *events, put)).await?;
            let (source, tag) = (event.initiator.0, tag_of(event.match_bits));
            Ok(Arrival { source, tag, bytes: event.rlength, room: event.mlength })
        };
        caller.timed("wait for an event", wait).await
    }
}
