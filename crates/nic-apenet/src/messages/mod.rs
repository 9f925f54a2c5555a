//! `send` and `recv`: messages over streaming buffers, and longer ones by a put into the receive's own buffer.
//!
//! A message of at most `messages.eager` bytes is copied to a registered buffer of the library and sent into a
//! streaming buffer of the receiver. The receiver's library copies it to its receive. A longer one sends an RTS. Once
//! its receive is posted, the receiver's library registers that buffer and replies with a CTS that names it. The
//! sender's library then puts the bytes there. RTS, CTS and credits are empty puts: their address and data are for the
//! other library.
//!
//! # Bounds
//! A host has at most `messages.window` messages to each other host that no receive has taken. If processes share the
//! library, the limit holds for each pair of processes. It is lower where the total would be more than [`HELD`]. Past
//! the limit `send` waits, so neither streaming buffers nor events run out.
//!
//! | file | contents |
//! |---|---|
//! | `leases.rs` | the memory that they register |
//! | `receive.rs`, `send.rs` | the two ends of a message |
//!
//! | bits of the data | field |
//! |---|---|
//! | 63 | whether it is eager |
//! | 0..63 | of an eager message: tag |
//! | 60..63 | otherwise the kind: 2 RTS, 3 CTS, 4 bytes, 5 credit |
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
use crate::{ApenetError, Card, Endpoint, LIBRARY};
use leases::{Lease, Leases};
use nicety_kernel::{Credits, Pool, Signal};
use nicety_nic_core::parts::{Early, Matching};
use nicety_nic_core::{
    Arrival, BlockedSends, CardError, LARGEST_TAG, Pairs, RefusedCommand, Wanted, check_tag,
};
use nicety_types::{NodeId, Path, Stage};
use receive::finish;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Limit of messages from all hosts that no receive of a host has taken, unless there are more pairs of processes. Each
/// has at most four events: itself or its RTS, the CTS, its bytes, its credit.
const HELD: u64 = 2048;
/// Buffers for the library's copies of eager messages.
const COPIES: u64 = 64;
/// Streaming buffers allocated together, at the first use of one of them.
const CHUNK: u64 = 16;

/// The bit of an eager message. Other kinds are in the bits below.
const EAGER: u64 = 1 << 63;
const _: () = assert!(LARGEST_TAG & EAGER == 0, "the tag is beside it");
const RTS: u64 = 2;
const CTS: u64 = 3;
const BYTES: u64 = 4;
const CREDIT: u64 = 5;

const fn data(kind: u64, id: u32, low: u32) -> u64 {
    kind << 60 | (id as u64) << 32 | low as u64
}

/// A posted receive.
pub(crate) struct Receiving {
    wanted: Wanted,
    result: RefCell<Option<(Result<Arrival, CardError>, Path)>>,
    ended: Cell<bool>,
    done: Signal,
}

/// An arrived message, or its RTS.
struct Came {
    source: u32,
    tag: u64,
    bytes: u64,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    /// In a streaming buffer.
    Eager(u64),
    /// At its sender, with this number.
    Long(u32),
}

/// A long message in transfer.
struct Coming {
    receiving: Rc<Receiving>,
    arrival: Arrival,
    /// Bytes that its sender will put.
    length: u64,
    _lease: Option<Lease>,
}

/// A long message at its sender.
struct Announced {
    to: u32,
    bytes: u64,
    /// Destination and number of its bytes.
    cts: RefCell<Option<(u64, u32, Path)>>,
    sent: RefCell<Option<Path>>,
}

impl Coming {
    /// Whether this event is the arrival of its bytes.
    fn is_whole(&self, event: &Event) -> bool {
        let there = self.length == 0 || event.address == self.receiving.wanted.address;
        there && event.bytes == self.length && !event.streaming
    }
}

impl Announced {
    /// Whether it accepts a CTS of this rank, for this number of bytes at this address.
    fn allows(&self, source: u32, address: u64, bytes: u64) -> bool {
        source == self.to && bytes <= self.bytes && (bytes == 0 || address != 0)
    }
}

/// Another host, this one, or a pair of their processes.
struct Peer {
    /// Its host, and the pair.
    rank: u32,
    pair: u32,
    credits: Credits,
    /// Messages leave in the order of sending, whatever their preparation.
    turn: Pool,
    /// Messages to it without returned credits.
    out: Cell<u64>,
    /// Messages from it that no receive has taken.
    held: Cell<u64>,
    /// Messages from it that receives have taken since the last credits.
    owed: Cell<u64>,
    /// The path of its last credits.
    credited: RefCell<Option<Path>>,
}

/// The library of a host for `send` and `recv`.
pub(crate) struct Messenger {
    card: Rc<Card>,
    process: Process,
    pub(crate) leases: Leases,
    pairs: Cell<Pairs>,
    window: Cell<u64>,
    matching: RefCell<Matching<Rc<Receiving>, Came>>,
    pub(crate) early: Early,
    /// By rank and pair.
    peers: RefCell<BTreeMap<(u32, u32), Rc<Peer>>>,
    /// Free buffers for copies; none before the first use.
    copies: RefCell<Option<Vec<u64>>>,
    free_copies: Credits,
    announced: RefCell<BTreeMap<u32, Rc<Announced>>>,
    coming: RefCell<BTreeMap<(u32, u32), Coming>>,
    /// Number of long messages so far.
    long: Cell<u32>,
    changed: Signal,
    failed: RefCell<Option<ApenetError>>,
    /// Whether the failure was reported to a program.
    told: Cell<bool>,
}

impl Messenger {
    /// Makes the library of a card's host, and starts its thread.
    pub(crate) fn new(card: &Rc<Card>) -> Rc<Messenger> {
        let sim = &card.sim;
        let process = Process::new(card, LIBRARY);
        let messenger = Rc::new(Messenger {
            card: card.clone(),
            leases: Leases::new(sim, process.clone()),
            process,
            pairs: Cell::new(Pairs::ONE),
            window: Cell::new(0),
            matching: RefCell::default(),
            early: Early::new(sim),
            peers: RefCell::default(),
            copies: RefCell::default(),
            free_copies: Credits::new(sim, COPIES),
            announced: RefCell::default(),
            coming: RefCell::default(),
            long: Cell::new(0),
            changed: Signal::new(sim),
            failed: RefCell::default(),
            told: Cell::new(false),
        });
        messenger.have_room();
        sim.spawn(messenger.clone().run());
        messenger
    }

    /// Makes as much room for each pair of processes as for a host otherwise. Call it before the first message.
    pub(crate) fn have_pairs(&self, pairs: Pairs) {
        if self.pairs.replace(pairs) != pairs {
            self.have_room();
        }
    }

    fn have_room(&self) {
        let messages = &self.card.spec.messages;
        let peers = u64::from(self.card.nodes) * u64::from(self.pairs.get().count());
        let window = messages.window.min(HELD / peers).max(1);
        self.window.set(window);
        if messages.eager > 0 {
            self.card.reserve_streaming(LIBRARY, window * peers, CHUNK, messages.eager);
        }
    }

    /// Returns the other end of messages with this tag.
    fn peer_of(&self, rank: u32, tag: u64) -> Rc<Peer> {
        self.peer(rank, self.pairs.get().of(tag))
    }

    fn peer(&self, rank: u32, pair: u32) -> Rc<Peer> {
        let new = || {
            let (credits, zero) = (Credits::new(&self.card.sim, self.window.get()), || Cell::new(0));
            let (turn, credited) = (Pool::new(&self.card.sim, 1), RefCell::default());
            Rc::new(Peer { rank, pair, credits, turn, out: zero(), held: zero(), owed: zero(), credited })
        };
        self.peers.borrow_mut().entry((rank, pair)).or_insert_with(new).clone()
    }

    /// Returns the library's failure if no program has been told, as a call came too late or not at all.
    pub(crate) fn unnoticed(&self) -> Option<RefusedCommand> {
        let failed = self.failed.borrow();
        let (code, place) = match failed.as_ref().filter(|_| !self.told.get())? {
            ApenetError::Refused { why, node } => (why.name(), format!("by rank {node}")),
            ApenetError::Rejected { why, node } => (why.name(), format!("a message of rank {node}")),
            error => ("failed", error.to_string()),
        };
        Some(RefusedCommand {
            command: "send",
            code,
            place: format!("{place}; no program has heard of it"),
            times: 1,
        })
    }

    /// Messages of `send` that no receive has taken: rank, tag and bytes of the first, and their number.
    pub(crate) fn unreceived(&self) -> Option<(u32, u64, u64, u64)> {
        let matching = self.matching.borrow();
        let mut messages = matching.messages();
        let count = messages.len() as u64;
        messages.next().map(|first| (first.source, first.tag, first.bytes, count))
    }

    /// Sends that wait until their receivers take others.
    pub(crate) fn held_up(&self) -> Vec<BlockedSends> {
        let (pairs, window) = (self.pairs.get(), self.window.get());
        let waiting = |peer: &Rc<Peer>| {
            let pair = (pairs.bits > 0).then_some(peer.pair);
            BlockedSends { to: peer.rank, pair, sends: peer.credits.waiting() as u64, window }
        };
        self.peers.borrow().values().map(waiting).filter(|held_up| held_up.sends > 0).collect()
    }

    fn failure(&self) -> Option<CardError> {
        self.told.set(true);
        self.failed
            .borrow()
            .as_ref()
            .map(|error| CardError::Failed(format!("messages of send and recv: {error}")))
    }

    /// Waits until `there` holds or the library has failed.
    async fn until(&self, there: impl Fn() -> bool) -> Result<(), CardError> {
        self.changed.wait_until(|| there() || self.failed.borrow().is_some()).await;
        if there() { Ok(()) } else { Err(self.failure().expect("one of the two")) }
    }

    /// Returns a number for a message to put.
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

    /// The library's thread.
    async fn run(self: Rc<Self>) {
        loop {
            match self.process.next().await {
                Ok((event, path)) => self.take(event, path),
                Err(error) => self.fail(error),
            }
        }
    }

    fn fail(&self, error: ApenetError) {
        self.failed.borrow_mut().get_or_insert(error);
        self.changed.notify_all();
        self.early.note();
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
                if let Some(announced) = self.announced.borrow().get(&id) {
                    announced.sent.replace(Some(path));
                }
                self.changed.notify_all();
            }
            EventKind::Received => {
                let unusable = !self.take_message(event, (kind, id, low), path);
                self.card.count(|counted| counted.unusable += u64::from(unusable));
            }
            EventKind::Refused(_, why) => self.fail(ApenetError::Refused { why, node: event.peer.node.0 }),
            EventKind::Rejected(why) if event.peer.process == LIBRARY => {
                self.fail(ApenetError::Rejected { why, node: event.peer.node.0 });
            }
            _ => {}
        }
    }

    /// Handles a message from another library. Returns whether it can be one.
    fn take_message(self: &Rc<Self>, event: Event, (kind, id, low): (u64, u32, u32), path: Path) -> bool {
        let source = event.peer.node.0;
        if event.peer.process != LIBRARY {
            return false;
        }
        if event.data & EAGER != 0 {
            let (tag, how) = (event.data & LARGEST_TAG, How::Eager(event.address));
            let whole = event.streaming || event.bytes == 0;
            return whole && self.came(Came { source, tag, bytes: event.bytes, how }, path);
        }
        match kind {
            RTS if event.bytes == 0 => {
                let (high, bytes) = (event.address >> 32, event.address & u64::from(u32::MAX));
                let tag = high << 32 | u64::from(low);
                let good = check_tag(tag).is_ok() && (1..=self.card.spec.limits.message).contains(&bytes);
                good && self.came(Came { source, tag, bytes, how: How::Long(id) }, path)
            }
            CTS if event.bytes == 0 => match self.announced.borrow().get(&id) {
                Some(announced) if announced.allows(source, event.address, low.into()) => {
                    announced.cts.replace(Some((event.address, low, path)));
                    self.changed.notify_all();
                    true
                }
                _ => false,
            },
            BYTES => {
                let mut coming = self.coming.borrow_mut();
                let whole = coming.get(&(source, id)).is_some_and(|coming| coming.is_whole(&event));
                let ended = if whole { coming.remove(&(source, id)) } else { None };
                if let Some(Coming { receiving, arrival, .. }) = ended {
                    finish(&receiving, Ok(arrival), path);
                }
                whole
            }
            CREDIT if event.bytes == 0 && id < self.pairs.get().count() => {
                let peer = self.peer(source, id);
                let credits = u64::from(low).min(peer.out.get());
                peer.out.set(peer.out.get() - credits);
                peer.credited.replace(Some(path));
                peer.credits.release(credits);
                true
            }
            _ => false,
        }
    }

    /// Handles an arrived message or RTS.
    fn came(self: &Rc<Self>, came: Came, path: Path) -> bool {
        let peer = self.peer_of(came.source, came.tag);
        if peer.held.get() >= self.window.get() {
            return false;
        }
        peer.held.set(peer.held.get() + 1);
        let takes = |receiving: &Rc<Receiving>| receiving.wanted.takes(came.source, came.tag);
        let receive = self.matching.borrow_mut().take_receive(takes).0;
        match receive {
            Some(receiving) => self.begin(receiving, came, path),
            None => {
                self.matching.borrow_mut().keep(came);
                self.early.note();
            }
        }
        true
    }
}
