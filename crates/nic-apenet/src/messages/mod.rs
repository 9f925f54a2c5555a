//! `send` and `recv`: short messages through streaming buffers, and longer messages by a put into the receive's own
//! buffer.
//!
//! A message of at most `messages.eager` bytes is copied to a registered buffer of the library and sent into a
//! streaming buffer of the receiver. The receiver's library copies the message to the buffer of its receive. For a
//! longer message, the sender's library sends a request to send (RTS). When the receive is posted, the receiver's
//! library registers the receive's buffer and replies with a clear to send (CTS). The CTS names this buffer. The
//! sender's library then puts the bytes into the buffer. RTS, CTS and credits are empty puts: their address and data
//! are information for the remote library.
//!
//! # Bounds
//! For each destination host, a host has at most `messages.window` messages that no receive has taken. If several
//! processes share the library, the limit holds for each pair of processes. The limit is lower if the windows of all
//! hosts would be more than [`HELD`] messages. At the limit `send` waits, so neither streaming buffers nor entries for
//! events run out.
//!
//! | file | contents |
//! |---|---|
//! | `leases.rs` | the memory that `send` and `recv` register |
//! | `receive.rs`, `send.rs` | the two ends of a message |
//!
//! | bits of the data | field |
//! |---|---|
//! | 63 | 1 for an eager message |
//! | 0..63 | eager message: tag |
//! | 60..63 | other messages: kind, which is 2 for RTS, 3 for CTS, 4 for bytes, 5 for credit |
//! | 32..60 | RTS, CTS and bytes: number of the long message at its sender; credit: the pair |
//! | 0..32 | RTS: lower half of the tag; CTS: bytes to put; credit: number of credits |
//!
//! | bits of an RTS's address | field |
//! |---|---|
//! | 32..63 | upper half of the tag |
//! | 0..32 | bytes of the message |

mod leases;
mod receive;
mod send;

use crate::event::{Event, EventKind};
use crate::library::{Process, Transfer};
use crate::{ApenetError, Card, Endpoint, LIBRARY, stages};
use leases::{Lease, Leases};
use nicety_kernel::{Credits, Either, describe, race};
use nicety_nic_core::library::{self, Announcements, Library, Transport, Types, Windows, count, to_its_end};
use nicety_nic_core::{Arrival, CardError, LARGEST_TAG, Outgoing, Pairs, RefusedCommand, check_tag};
use nicety_types::{NodeId, Path, Stage};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Maximum number of messages to a host that no receive of the host has taken. With more pairs of processes, each pair
/// has one message. A message has at most four events: of the message or its RTS, of its CTS, its bytes and its credit.
const HELD: u64 = 2048;
/// Number of buffers for the library's copies of eager messages.
const COPIES: u64 = 64;
/// Number of streaming buffers that are allocated together, at the first use of any of them.
const CHUNK: u64 = 16;

/// The bit that marks an eager message. Other messages have their kind in the bits below.
const EAGER: u64 = 1 << 63;
const _: () = assert!(LARGEST_TAG & EAGER == 0, "the tag is beside it");
const RTS: u64 = 2;
const CTS: u64 = 3;
const BYTES: u64 = 4;
const CREDIT: u64 = 5;

const fn data(kind: u64, id: u32, low: u32) -> u64 {
    kind << 60 | (id as u64) << 32 | low as u64
}

type Receiving = library::Receiving<Messenger>;
type ArrivedMessage = library::ArrivedMessage<MessagePlace>;

/// The location of an arrived message.
#[derive(Clone, Copy)]
pub(crate) enum MessagePlace {
    /// In the streaming buffer at this address.
    Eager(u64),
    /// At the sender, where the message has this number.
    Long(u32),
}

/// A long message in transfer.
struct LongTransfer {
    receiving: Rc<Receiving>,
    arrival: Arrival,
    /// Number of bytes that the sender will put.
    length: u64,
    _lease: Option<Lease>,
}

impl LongTransfer {
    /// Whether this event reports the arrival of the message's bytes.
    fn is_whole(&self, event: &Event) -> bool {
        let there = self.length == 0 || event.address == self.receiving.wanted.address;
        there && event.bytes == self.length && !event.streaming
    }
}

/// The library of a host for `send` and `recv`.
pub(crate) struct Messenger {
    card: Rc<Card>,
    process: Process,
    pub(crate) leases: Leases,
    pub(crate) library: Library<Messenger>,
    pub(crate) windows: Windows,
    /// Addresses of free buffers for copies. `None` before the first use.
    copies: RefCell<Option<Vec<u64>>>,
    free_copies: Credits,
    /// Announced long messages. The CTS for a message has the address for the message's bytes, and the number of bytes.
    announced: Announcements<(u64, u32)>,
    /// Maps the number of a long message to the path until the card had read the message's bytes.
    sent: RefCell<BTreeMap<u32, Path>>,
    coming: RefCell<BTreeMap<(u32, u32), LongTransfer>>,
    /// Number of long messages so far.
    long: Cell<u32>,
}

impl Messenger {
    /// Returns the library of a card's host, and starts the library's thread.
    pub(crate) fn new(card: &Rc<Card>) -> Rc<Messenger> {
        let sim = &card.sim;
        let process = Process::new(card, LIBRARY);
        let messenger = Rc::new(Messenger {
            card: card.clone(),
            leases: Leases::new(sim, process.clone()),
            process,
            library: Library::new(sim),
            windows: Windows::new(sim, 0),
            copies: RefCell::default(),
            free_copies: Credits::new(sim, COPIES),
            announced: Announcements::default(),
            sent: RefCell::default(),
            coming: RefCell::default(),
            long: Cell::new(0),
        });
        messenger.have_room(Pairs::ONE);
        sim.spawn(messenger.clone().run());
        messenger
    }

    /// Gives each pair of processes the window that a host has by default. Call this method before the first message.
    pub(crate) fn have_pairs(&self, pairs: Pairs) {
        if self.windows.pairs() != pairs {
            self.have_room(pairs);
        }
    }

    fn have_room(&self, pairs: Pairs) {
        let messages = &self.card.spec.messages;
        let peers = u64::from(self.card.nodes) * u64::from(pairs.count());
        let window = messages.window.min(HELD / peers).max(1);
        self.windows.resize(pairs, window);
        if messages.eager > 0 {
            self.card.reserve_streaming(LIBRARY, window * peers, CHUNK, messages.eager);
        }
    }

    /// Returns the library's failure if no call has returned it to a program.
    pub(crate) fn unnoticed(&self) -> Option<RefusedCommand> {
        let (code, place) = match self.library.untold()? {
            ApenetError::Refused { why, node } => (why.name(), format!("by rank {node}")),
            ApenetError::Rejected { why, node } => (why.name(), format!("a message of rank {node}")),
            error => ("failed", error.to_string()),
        };
        Some(RefusedCommand {
            command: "send",
            code,
            place: format!("{place}; no call has reported it"),
            times: 1,
        })
    }

    /// Returns a number for a long message.
    fn number(&self) -> u32 {
        let id = self.long.get();
        self.long.set((id + 1) % (1 << 28));
        id
    }

    async fn put(
        &self,
        to: u32,
        local: u64,
        remote: u64,
        bytes: u64,
        data: u64,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let peer = Endpoint { node: NodeId(to), process: LIBRARY };
        self.process.put(Transfer { peer, local, remote, bytes, data }, path).await?;
        Ok(())
    }

    /// Copies bytes of host memory on a CPU.
    async fn copy(&self, from: u64, to: u64, bytes: u64, path: &mut Path) -> Result<(), CardError> {
        let memory = self.card.dma.memory();
        let cpus = self.card.kernel.cpus();
        cpus.copy(memory, Some(from), Some(to), bytes, Stage::COPY, path).await?;
        memory.poke(to, &memory.peek(from, bytes)?)?;
        Ok(())
    }

    /// Runs the library's thread.
    async fn run(self: Rc<Self>) {
        loop {
            match self.process.next().await {
                Ok((event, path)) => self.take(event, path),
                Err(error) => self.library.fail(error),
            }
        }
    }

    fn take(self: &Rc<Self>, event: Event, path: Path) {
        let eager = event.data & EAGER != 0;
        let (kind, id, low) = (event.data >> 60, (event.data >> 32) as u32 & 0xfff_ffff, event.data as u32);
        match event.kind {
            EventKind::Sent(_) if eager && event.bytes > 0 => {
                self.copies.borrow_mut().get_or_insert_default().push(event.address);
                self.free_copies.release(1);
            }
            EventKind::Sent(_) if kind == BYTES => {
                if self.announced.is_there(id.into()) {
                    self.sent.borrow_mut().insert(id, path);
                }
                self.library.changed.notify_all();
            }
            EventKind::Received => {
                let unusable = !self.take_message(event, (kind, id, low), path);
                self.card.count(|counted| counted.unusable += u64::from(unusable));
            }
            EventKind::Refused(_, why) => {
                self.library.fail(ApenetError::Refused { why, node: event.peer.node.0 })
            }
            EventKind::Rejected(why) if event.peer.process == LIBRARY => {
                self.library.fail(ApenetError::Rejected { why, node: event.peer.node.0 });
            }
            _ => {}
        }
    }

    /// Handles a message from another library. Returns false if the message cannot be from a library.
    fn take_message(self: &Rc<Self>, event: Event, (kind, id, low): (u64, u32, u32), path: Path) -> bool {
        let source = event.peer.node.0;
        if event.peer.process != LIBRARY {
            return false;
        }
        if event.data & EAGER != 0 {
            let (tag, how) = (event.data & LARGEST_TAG, MessagePlace::Eager(event.address));
            let whole = event.streaming || event.bytes == 0;
            return whole
                && self.arrived(ArrivedMessage { source, tag, bytes: event.bytes, body: how }, path);
        }
        match kind {
            RTS if event.bytes == 0 => {
                let (high, bytes) = (event.address >> 32, event.address & u64::from(u32::MAX));
                let tag = high << 32 | u64::from(low);
                let good = check_tag(tag).is_ok() && (1..=self.card.spec.limits.message).contains(&bytes);
                good && self
                    .arrived(ArrivedMessage { source, tag, bytes, body: MessagePlace::Long(id) }, path)
            }
            CTS if event.bytes == 0 => {
                let answer = ((event.address, low), path);
                let allowed =
                    self.announced.answer(id.into(), source, answer, |announced, &(address, bytes)| {
                        u64::from(bytes) <= announced.bytes && (bytes == 0 || address != 0)
                    });
                if allowed {
                    self.library.changed.notify_all();
                }
                allowed
            }
            BYTES => {
                let mut coming = self.coming.borrow_mut();
                let whole = coming.get(&(source, id)).is_some_and(|coming| coming.is_whole(&event));
                let ended = if whole { coming.remove(&(source, id)) } else { None };
                if let Some(LongTransfer { receiving, arrival, .. }) = ended {
                    receiving.finish(Ok(arrival), path);
                }
                whole
            }
            CREDIT if event.bytes == 0 && id < self.windows.pairs().count() => {
                let peer = self.windows.peer(source, id);
                peer.credited.replace(Some(path));
                peer.give(low.into());
                true
            }
            _ => false,
        }
    }

    /// Handles an arrived message or RTS. Returns false if the sender had no credit for it.
    fn arrived(self: &Rc<Self>, came: ArrivedMessage, path: Path) -> bool {
        let peer = self.windows.of_tag(came.source, came.tag);
        let has_room = peer.held() < self.windows.size();
        if has_room {
            count(&peer.come);
            self.arrive(came, path);
        }
        has_room
    }
}

impl Types for Messenger {
    type Body = MessagePlace;
    type Progress = ();
    type Failure = ApenetError;
    type Error = CardError;

    fn failed(failure: &ApenetError) -> CardError {
        CardError::Failed(format!("messages of send and recv: {failure}"))
    }
}

impl Transport for Messenger {
    fn library(&self) -> &Library<Messenger> {
        &self.library
    }

    /// Sends a message. A send with a credit completes even if the program stops waiting for the send.
    async fn send(
        self: &Rc<Self>,
        _thread: u32,
        message: Outgoing,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let limit = self.card.spec.limits.message;
        if message.bytes > limit {
            return Err(ApenetError::Message { bytes: message.bytes, limit }.into());
        }
        self.card.dma.check(message.address, message.bytes)?;
        let peer = self.windows.of_tag(message.to, message.tag);
        let text = move || format!("rank {} to receive one of its messages", message.to);
        let failed = self.library.changed.wait_until(|| self.library.has_failed());
        match describe(text, race(peer.credits.acquire(1), failed)).await {
            Either::Left(credit) => credit.forget(),
            Either::Right(()) => return Err(self.library.failure().expect("just seen")),
        }
        if let Some(credited) = &*peer.credited.borrow() {
            path.follow(credited);
        }
        path.advance(stages::WINDOW_QUEUED, self.card.sim.now());
        count(&peer.sent);
        let (own, mut its) = (self.clone(), path.clone());
        let work = async move {
            let long = message.bytes > own.card.spec.messages.eager || own.card.is_gpu(message.address);
            let turn = peer.turn.acquire().await;
            its.advance(stages::WINDOW_QUEUED, own.card.sim.now());
            // A message that fails before it has left gives its credit back. A message that fails later does not.
            let keep = |error| {
                peer.give(1);
                Err(error)
            };
            let (sent, turn) = if long && message.bytes > 0 {
                match own.announce(&message, &mut its).await {
                    Ok(announced) => {
                        drop(turn);
                        (own.send_long(message, announced, &mut its).await, None)
                    }
                    Err(error) => (keep(error), None),
                }
            } else {
                (own.send_eager(message, &mut its).await.or_else(keep), Some(turn))
            };
            ((sent, its), turn)
        };
        let text = move || format!("its message to rank {} to be taken", message.to);
        let (sent, its) = describe(text, to_its_end(&self.card.sim, work)).await;
        *path = its;
        sent
    }

    async fn call(&self, _thread: u32, path: &mut Path) {
        self.card.kernel.cpus().notice(path, None).await;
    }

    fn deliver(self: &Rc<Self>, receiving: Rc<Receiving>, came: ArrivedMessage, mut path: Path) {
        let own = self.clone();
        self.card.sim.spawn(async move {
            let arrival = came.arrival(receiving.wanted.room);
            let taken = match came.body {
                MessagePlace::Eager(buffer) => own.bring_eager(&receiving, arrival, buffer, &mut path).await,
                MessagePlace::Long(id) => own.bring_long(&receiving, arrival, id, &mut path).await,
            };
            if let Err(error) = taken {
                receiving.finish(Err(error), path);
            }
        });
    }
}
