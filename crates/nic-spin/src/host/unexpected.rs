//! Unexpected messages of `send`. They match entries of the overflow list. The library delivers them when their
//! receives are posted.
//!
//! The library delivers these messages in its own thread. So a posted receive makes progress while its program
//! computes. In particular, the delivery of a long message does not depend on the receiver's waits. The thread does one
//! task after another, and each task takes CPU time.
//!
//! The library's set-up includes entries of the overflow list, the entry from which other ranks get long messages, and
//! the memory of the buffers. They are created when the first message needs them, and take no simulated time.

use crate::host::long::LongMessage;
use crate::host::match_bits::{LONG, MESSAGES, tag_of};
use crate::host::view::ChangeOrigin;
use crate::resources;
use crate::{CallError, Card};
use nicety_host::Allocation;
use nicety_kernel::{Pool, Sim};
use nicety_nic_core::parts::Early;
use nicety_nic_core::{Arrival, FailureKind, Wanted};
use nicety_portals::{
    DropReason, Effects, EqHandle, Event, EventKind, GetRequest, Header, HeaderKind, Interface, List, Md,
    MdHandle, Me, MeOptions, OWN_PT, Request,
};
use nicety_types::{MessageId, NodeId, Path, Payload, Segment, Stage, Time};
use rustc_hash::FxHashMap;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Messages that matched on the overflow list, by sender and match bits, in the order of arrival. Each message has the
/// time of its match.
type Waiting = FxHashMap<(NodeId, u64), VecDeque<(MessageId, Time)>>;

/// The library's state for unexpected messages.
pub(crate) struct Unexpected {
    /// Makes the tasks of the library's thread run one after another.
    turn: Pool,
    /// Receives that wait for their messages, by the numbers in their events.
    expected: RefCell<FxHashMap<u64, Wanted>>,
    /// Receives of unexpected messages that have been delivered.
    finished: RefCell<FxHashMap<u64, Finished>>,
    waiting: RefCell<Waiting>,
    /// A descriptor of all of the host's memory, as the destination of gets.
    into: OnceCell<MdHandle>,
    /// The memory of the buffers, or the reason for which it could not be allocated.
    buffers: OnceCell<Result<Allocation, CallError>>,
    /// The phantom bytes in the buffers, as addresses and lengths.
    phantoms: RefCell<Vec<(u64, u64)>>,
    /// Whether the entry for headers of long messages is appended.
    headers: Cell<bool>,
    /// Whether other ranks may get messages from this host's memory.
    exposed: Cell<bool>,
    pub(crate) early: Early,
    /// The reason for which an unexpected message was lost.
    lost: RefCell<Option<CallError>>,
}

/// A receive of an unexpected message.
pub(crate) struct Finished {
    result: Result<Arrival, CallError>,
    path: Path,
}

impl Finished {
    /// Returns the result of the receive. Extends the program's path up to the receive's end.
    pub(crate) fn seen_on(self, path: &mut Path) -> Result<Arrival, CallError> {
        path.follow(&self.path);
        self.result
    }
}

impl Unexpected {
    pub(crate) fn new(sim: &Sim) -> Unexpected {
        Unexpected {
            turn: Pool::new(sim, 1),
            expected: RefCell::default(),
            finished: RefCell::default(),
            waiting: RefCell::default(),
            into: OnceCell::new(),
            buffers: OnceCell::new(),
            phantoms: RefCell::default(),
            headers: Cell::new(false),
            exposed: Cell::new(false),
            early: Early::new(sim),
            lost: RefCell::default(),
        }
    }

    /// Stores the buffer and the source of a receive.
    pub(crate) fn expect(&self, user_ptr: u64, wanted: Wanted) {
        self.expected.borrow_mut().insert(user_ptr, wanted);
    }

    /// Forgets a receive that is complete or has failed.
    pub(crate) fn forget(&self, user_ptr: u64) {
        self.expected.borrow_mut().remove(&user_ptr);
    }

    /// Returns whether the unexpected message of a receive has been delivered.
    pub(crate) fn is_over(&self, user_ptr: u64) -> bool {
        self.finished.borrow().contains_key(&user_ptr)
    }

    /// Removes and returns a receive with a delivered message.
    pub(crate) fn take(&self, user_ptr: u64) -> Option<Finished> {
        self.finished.borrow_mut().remove(&user_ptr)
    }

    /// Returns an error if a message was lost.
    pub(crate) fn check(&self) -> Result<(), CallError> {
        self.lost.borrow().clone().map_or(Ok(()), Err)
    }
}

impl Card {
    /// Creates the library's entries that a message may match, if they do not exist yet. Called just before the message
    /// is matched.
    pub(crate) fn prepare_for(&self, header: &Header) {
        let Some(messages) = self.library.get() else { return };
        let unexpected = &messages.unexpected;
        if header.pt == OWN_PT {
            if !unexpected.exposed.replace(true) {
                // Without the entry, the get matches nothing, and its receiver gets an error.
                let _ = self.expose(messages.events);
            }
        } else if header.pt == MESSAGES && header.kind == HeaderKind::Put {
            let missing = match header.match_bits & LONG {
                0 => unexpected.buffers.get().is_none(),
                _ => !unexpected.headers.get(),
            };
            if missing && self.interface.borrow().prospect(header).is_none() {
                self.place_entries(header.match_bits & LONG == 0);
            }
        }
    }

    /// Returns the notification of messages that match on the overflow list.
    pub(crate) fn early_messages(&self) -> Option<&Early> {
        self.library.get().map(|messages| &messages.unexpected.early)
    }

    fn expose(&self, events: EqHandle) -> Result<(), CallError> {
        let mut interface = self.interface.borrow_mut();
        interface.pt_alloc_own(Some(events))?;
        let me =
            Me { start: 0, length: u64::MAX, ignore_bits: !0, options: MeOptions::OP_GET, ..Me::default() };
        interface.me_append_own(OWN_PT, me, List::Priority)?;
        Ok(())
    }

    /// Appends the buffers for short messages, or the entry for the headers of long messages.
    fn place_entries(&self, short: bool) {
        let unexpected = &self.messages().unexpected;
        if short {
            unexpected.buffers.get_or_init(|| {
                let spec = self.spec.messages;
                let memory = self.dma.memory().allocate(u64::from(spec.buffers) * spec.buffer)?;
                for index in 0..spec.buffers {
                    self.append_own(self.buffer(&memory, index.into()))?;
                }
                Ok(memory)
            });
            return;
        }
        unexpected.headers.set(true);
        let options = MeOptions::EVENT_COMM_DISABLE | MeOptions::OP_PUT;
        let placed = self.append_own(Me { match_bits: LONG, ignore_bits: !LONG, options, ..Me::default() });
        if let Err(error) = placed {
            unexpected.lost.replace(Some(error));
        }
    }

    fn append_own(&self, me: Me) -> Result<(), CallError> {
        let mut interface = self.interface.borrow_mut();
        interface.me_append_own(MESSAGES, me, List::Overflow)?;
        Ok(())
    }

    /// Returns the entry of a buffer. The card unlinks the entry when the buffer may lack room for another eager
    /// message.
    fn buffer(&self, memory: &Allocation, index: u64) -> Me {
        let spec = self.spec.messages;
        Me {
            start: memory.address() + index * spec.buffer,
            length: spec.buffer,
            ignore_bits: !LONG,
            options: MeOptions::EVENT_COMM_DISABLE
                | MeOptions::OP_PUT
                | MeOptions::MANAGE_LOCAL
                | MeOptions::NO_TRUNCATE,
            min_free: spec.eager,
            user_ptr: index,
            ..Me::default()
        }
    }

    /// Records the phantom part of a payload that goes into a buffer. This part has no bytes to copy when the message
    /// is copied later.
    pub(crate) fn note_phantom(&self, address: u64, keep: u64, payload: &Payload) {
        let unexpected = self.library.get().map(|messages| &messages.unexpected);
        let Some((unexpected, Ok(memory))) = unexpected.and_then(|of| Some((of, of.buffers.get()?))) else {
            return;
        };
        if !(memory.address()..memory.address() + memory.len()).contains(&address) {
            return;
        }
        let mut begin = 0;
        for segment in payload.segments() {
            let end = (begin + segment.len()).min(keep);
            if let (Segment::Phantom(_), true) = (segment, begin < end) {
                unexpected.phantoms.borrow_mut().push((address + begin, end - begin));
            }
            begin = end;
        }
    }

    /// Records a message that has matched on the overflow list.
    pub(crate) fn came_unexpected(&self, header: &Header, message: MessageId) {
        if let (MESSAGES, HeaderKind::Put, Some(messages)) = (header.pt, header.kind, self.library.get()) {
            let mut waiting = messages.unexpected.waiting.borrow_mut();
            let key = (header.source, header.match_bits);
            waiting.entry(key).or_default().push_back((message, self.sim.now()));
            messages.unexpected.early.note();
        }
    }

    /// Handles a dropped message. A message of `send` without a receive must not be lost silently if it finds no room.
    /// So the portal table entry is disabled, and every receive of this host fails with the reason.
    pub(crate) fn message_dropped(&self, header: &Header, reason: DropReason) {
        let Some(messages) = self.library.get().filter(|_| header.pt == MESSAGES) else { return };
        let unexpected = &messages.unexpected;
        let spec = self.spec.messages;
        let why = match (reason, unexpected.buffers.get()) {
            (DropReason::NoUnexpectedHeader, _) => format!(
                "the card has no room for one more unexpected header; receive earlier, or raise \
                 limits.unexpected_headers ({})",
                self.spec.limits.unexpected_headers
            ),
            (DropReason::NoMatch, Some(Err(error))) => {
                format!(
                    "the {} buffers for such messages (messages.buffers) could not be made: {error}",
                    spec.buffers
                )
            }
            (DropReason::NoMatch, _) => format!(
                "the buffers for such messages were full; receive earlier, or raise messages.buffers ({}) or \
                 messages.buffer ({} bytes each), or lower messages.eager ({} bytes), above which messages wait at \
                 their senders",
                spec.buffers, spec.buffer, spec.eager
            ),
            _ => return,
        };
        let (from, tag, bytes, to) = (header.source.0, tag_of(header.match_bits), header.length, self.node.0);
        let text = format!(
            "a message of {bytes} bytes from rank {from}, tag {tag}, arrived at rank {to} before its receive \
             and is lost: {why}"
        );
        self.interface.borrow_mut().pt_disable(MESSAGES).expect("the entry is the library's");
        self.processors().report_failure(FailureKind::Refused, None, text.clone());
        unexpected.lost.borrow_mut().get_or_insert(CallError::MessageLost { text });
        messages.wake_all();
        unexpected.early.note();
    }

    /// Passes an event to the library if the event is for the library's thread, for a send or for a receive. Returns
    /// whether it was.
    pub(crate) fn is_for_library(self: &Rc<Card>, eq: EqHandle, event: &Event, seen: &ChangeOrigin) -> bool {
        let Some(messages) = self.library.get().filter(|messages| messages.events == eq) else {
            return false;
        };
        match event.kind {
            EventKind::PutOverflow => {
                let mut seen = seen.clone();
                let key = (event.initiator, event.match_bits);
                let mut waiting = messages.unexpected.waiting.borrow_mut();
                let queue = waiting.get_mut(&key);
                if let Some((message, since)) = queue.and_then(VecDeque::pop_front) {
                    seen.message = Some(message);
                    let (now, what) = (self.sim.now(), "wait for the receive");
                    self.recorder.slice(resources::UNEXPECTED, since, now, Some(message), what);
                }
                if waiting.get(&key).is_some_and(VecDeque::is_empty) {
                    waiting.remove(&key);
                }
                self.sim.spawn(self.clone().bring(*event, seen));
            }
            EventKind::AutoUnlink | EventKind::AutoFree => {
                self.sim.spawn(self.clone().buffer_used(*event, seen.clone()));
            }
            _ => self.message_event_came(*event, seen.clone()),
        }
        true
    }

    /// Takes the time in which the library's thread notices an event.
    async fn noticed_by_library(&self, path: &mut Path, message: Option<MessageId>) {
        let messages = self.messages();
        path.advance(Stage::CPU_QUEUED, self.sim.now());
        self.interface.borrow_mut().eq_consumed(messages.events, 1).expect("the queue is the library's");
        messages.cpus.notice(path, message).await;
        if let Some(message) = message {
            self.recorder.message_noticed(message, self.sim.now());
        }
    }

    /// Delivers an unexpected message to its receive.
    async fn bring(self: Rc<Card>, event: Event, seen: ChangeOrigin) {
        let ChangeOrigin { mut path, message } = seen;
        let unexpected = &self.messages().unexpected;
        let turn = unexpected.turn.acquire().await;
        self.noticed_by_library(&mut path, message).await;
        let wanted = unexpected.expected.borrow_mut().remove(&event.user_ptr);
        let Some(Wanted { address, room, .. }) = wanted else { return };
        let (source, tag, bytes) = (event.initiator.0, tag_of(event.match_bits), event.rlength);
        let room = bytes.min(room);
        let brought = if !event.fail.is_ok() {
            Err(CallError::NotGot { from: source, tag, bytes, fail: event.fail })
        } else if event.match_bits & LONG != 0 {
            let posted = self.post_get(&event, address, room, &mut path).await;
            drop(turn);
            match posted {
                Ok(user_ptr) => self.got(&event, user_ptr, &mut path).await,
                Err(error) => Err(error),
            }
        } else {
            self.copy_message(event.start, address, room, &mut path).await
        };
        let result = brought.map(|()| Arrival { source, tag, bytes, room });
        unexpected.finished.borrow_mut().insert(event.user_ptr, Finished { result, path });
        self.messages().wake(event.user_ptr);
    }

    async fn copy_message(&self, from: u64, to: u64, bytes: u64, path: &mut Path) -> Result<(), CallError> {
        let (memory, cpus) = (self.dma.memory(), &self.messages().cpus);
        cpus.copy(memory, Some(from), Some(to), bytes, Stage::COPY, path).await?;
        let end = from + bytes;
        let mut phantoms = self.messages().unexpected.phantoms.borrow().clone();
        phantoms.retain(|(address, _)| (from..end).contains(address));
        phantoms.sort_unstable();
        let mut at = from;
        for (phantom, len) in phantoms.into_iter().chain([(end, 0)]) {
            if at < phantom {
                memory.poke(to + (at - from), &memory.peek(at, phantom - at)?)?;
            }
            at = phantom + len;
        }
        Ok(())
    }

    /// Posts the get of a long message from its sender's memory. Returns the number in the get's REPLY event.
    async fn post_get(
        self: &Rc<Card>,
        event: &Event,
        address: u64,
        bytes: u64,
        path: &mut Path,
    ) -> Result<u64, CallError> {
        let messages = self.messages();
        let into = &messages.unexpected.into;
        let md = match into.get() {
            Some(md) => *md,
            None => {
                // The memory of the receive was checked when the receive was posted.
                let everything = Md { length: u64::MAX, eq: Some(messages.events), ..Md::default() };
                let md = self.interface.borrow_mut().md_bind(everything)?;
                *into.get_or_init(|| md)
            }
        };
        let user_ptr = messages.next_request();
        let there = LongMessage::told_by(event.hdr_data);
        let get = GetRequest {
            local_offset: address,
            remote_offset: there.address,
            user_ptr,
            ..GetRequest::new(md, bytes, event.initiator, OWN_PT, there.number)
        };
        self.post(&messages.cpus, path, &Request::Get(get)).await?;
        Ok(user_ptr)
    }

    /// Waits until a get has ended.
    async fn got(&self, event: &Event, user_ptr: u64, path: &mut Path) -> Result<(), CallError> {
        let messages = self.messages();
        let reply = |reply: &Event| reply.kind == EventKind::Reply && reply.user_ptr == user_ptr;
        let what = || "the rest of a message".to_owned();
        let reply = self.request_event(&messages.cpus, path, user_ptr, reply, what).await?;
        if reply.fail.is_ok() {
            return Ok(());
        }
        let (from, tag) = (event.initiator.0, tag_of(event.match_bits));
        Err(CallError::NotGot { from, tag, bytes: event.rlength, fail: reply.fail })
    }

    /// Handles the event of an unlinked buffer. Appends the buffer again as soon as it holds no messages.
    async fn buffer_used(self: Rc<Card>, event: Event, seen: ChangeOrigin) {
        let mut path = seen.path;
        let Unexpected { turn, buffers, phantoms, .. } = &self.messages().unexpected;
        // The messages of the buffer have been delivered, because their events came earlier.
        let _turn = turn.acquire().await;
        self.noticed_by_library(&mut path, None).await;
        let Some(Ok(memory)) = buffers.get() else { return };
        if event.kind == EventKind::AutoFree {
            let me = self.buffer(memory, event.user_ptr);
            phantoms.borrow_mut().retain(|(address, _)| !(me.start..me.start + me.length).contains(address));
            let append = move |interface: &mut Interface, _: &mut Effects| {
                interface.me_append_own(MESSAGES, me, List::Overflow)
            };
            // The result is not used, because a refusal has no consequence.
            drop(self.ask(&self.messages().cpus, &mut path, append).await);
        }
    }
}
