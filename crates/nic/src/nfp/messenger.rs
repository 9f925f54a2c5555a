//! Messages from host to host, by way of channels and the cards' ports: the host's side of `handlers/nfp/forward.c`.
//!
//! A message of at most [`INLINE`] bytes goes inside its envelope. For any other the envelope asks the receiving host,
//! which answers, once the receive is there, through which lane the bytes may come; then the sender gives them
//! to its card in chunks.
//!
//! # What is bounded
//! A host has at most [`WINDOW`] envelopes under way to each other one that no receive has taken; past that
//! `send` waits. Bytes go only where a receive has been posted. So a host that receives nothing holds nobody up but those who
//! send to it, and its card always has room for what may come.

use super::card::{Card, ChannelError, Device};
use super::{Program, ProgramError, map};
use nicety_channels::Channel;
use nicety_host::MemoryError;
use nicety_kernel::{Credits, Pool, Server, Signal, Sim, describe};
use nicety_types::{Path, Stage};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

/// Most bytes of a message that goes inside its envelope.
pub const INLINE: u64 = 32;
/// Envelopes to one host that no receive has taken.
pub const WINDOW: u64 = 16;

/// As in `forward.c`.
const LANES: usize = 8;
const SLOTS: u32 = 2;
const CHUNK: u32 = 65_536;
const TOLD: u32 = 16;
const ENTRY: u32 = 64;
/// Microengines that it runs on.
const MICROENGINES: usize = 4;
/// Its first target.
const TARGETS: u32 = 0xffff_0000;
/// Envelopes from one host that its card may hold: messages, answers to as many, and what gives windows back.
const ENTRIES: u32 = 4 * WINDOW as u32;

const PROGRAM: &[u8] = include_bytes!("forward.elf");

/// What a message came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The rank that sent it.
    pub source: u32,
    /// Its tag.
    pub tag: u32,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Why a message could not be sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// There is no such rank.
    Rank {
        /// The rank asked for.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
    /// A rank that is the sender's own.
    ToItself {
        /// The rank.
        rank: u32,
    },
    /// More bytes than the spec's `limits.message`.
    TooLong {
        /// How many.
        bytes: u64,
        /// The limit.
        limit: u32,
    },
    /// A message that is longer than the buffer of its receive.
    NoRoom {
        /// The message.
        message: Arrival,
        /// Bytes of the buffer.
        room: u64,
    },
    /// Memory that is not the host's.
    Memory(MemoryError),
    /// A channel to the card failed.
    Channel(ChannelError),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::Rank { rank, ranks } => {
                write!(f, "there is no rank {rank}; the cluster has ranks 0 to {}", ranks - 1)
            }
            MessageError::ToItself { rank } => {
                write!(f, "rank {rank} cannot send to itself: no link leads from a card back to it")
            }
            MessageError::TooLong { bytes, limit } => {
                write!(f, "a message of {bytes} bytes; the card takes at most {limit} (limits.message)")
            }
            MessageError::NoRoom { message: Arrival { source, tag, bytes }, room } => write!(
                f,
                "a message of {bytes} bytes from rank {source}, tag {tag}, does not fit a buffer of {room} bytes"
            ),
            MessageError::Memory(error) => error.fmt(f),
            MessageError::Channel(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MessageError {}

impl From<ChannelError> for MessageError {
    fn from(error: ChannelError) -> MessageError {
        MessageError::Channel(error)
    }
}

impl From<MemoryError> for MessageError {
    fn from(error: MemoryError) -> MessageError {
        MessageError::Memory(error)
    }
}

/// What an envelope is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    /// A message, and its bytes.
    Whole = 1,
    /// A message whose bytes wait at its sender.
    Asking = 2,
    /// The answer to that: through which lane they may come.
    Ready = 3,
    /// Receives have taken so many envelopes.
    Taken = 4,
}

/// The 56 bytes that are a channel's message: seven words, of which one is not used, then the bytes inside.
#[derive(Clone, Copy, Debug)]
struct Envelope {
    /// To whom, and from whom once it has come.
    rank: u32,
    kind: Kind,
    tag: u32,
    bytes: u32,
    /// The sender's number of the message.
    id: u32,
    /// A lane, or a number of envelopes.
    count: u32,
    inside: [u8; INLINE as usize],
}

impl Envelope {
    fn new(rank: u32, kind: Kind) -> Envelope {
        Envelope { rank, kind, tag: 0, bytes: 0, id: 0, count: 0, inside: [0; INLINE as usize] }
    }

    fn encode(&self) -> [u8; 56] {
        let mut to = [0; 56];
        let words = [self.rank, self.kind as u32, self.tag, self.bytes, self.id, self.count];
        for (place, word) in to.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        to[24..].copy_from_slice(&self.inside);
        to
    }

    fn decode(from: &[u8]) -> Option<Envelope> {
        let word =
            |index: usize| Some(u32::from_le_bytes(from.get(4 * index..4 * index + 4)?.try_into().ok()?));
        let kind = match word(1)? {
            1 => Kind::Whole,
            2 => Kind::Asking,
            3 => Kind::Ready,
            4 => Kind::Taken,
            _ => return None,
        };
        let inside = from.get(24..56)?.try_into().ok()?;
        Some(Envelope {
            rank: word(0)?,
            kind,
            tag: word(2)?,
            bytes: word(3)?,
            id: word(4)?,
            count: word(5)?,
            inside,
        })
    }

    const fn arrival(&self) -> Arrival {
        Arrival { source: self.rank, tag: self.tag, bytes: self.bytes as u64 }
    }
}

/// A receive that has been posted. Its message comes into its buffer also where nobody asks for it.
#[must_use = "a message comes into its buffer; Messenger::received says when"]
pub struct Posted(Rc<Receive>);

struct Receive {
    source: Option<u32>,
    tag: Option<u32>,
    /// The envelope it has taken, and its path until it came.
    taken: Cell<Option<(Envelope, Path)>>,
    done: RefCell<Option<(Result<Arrival, MessageError>, Path)>>,
}

impl Receive {
    fn takes(&self, envelope: &Envelope) -> bool {
        self.source.is_none_or(|source| source == envelope.rank)
            && self.tag.is_none_or(|tag| tag == envelope.tag)
    }
}

/// Some lanes, of which each message has one.
struct Lanes {
    channels: Vec<Channel>,
    free: RefCell<Vec<usize>>,
    pool: Pool,
}

impl Lanes {
    fn new(sim: &Sim, channels: Vec<Channel>) -> Lanes {
        let free = RefCell::new((0..channels.len()).rev().collect());
        Lanes { pool: Pool::new(sim, channels.len()), channels, free }
    }

    fn take(&self) -> usize {
        self.free.borrow_mut().pop().expect("the pool has as many permits as there are lanes")
    }

    fn give(&self, lane: usize) {
        self.free.borrow_mut().push(lane);
    }
}

/// What has come, and who waits.
#[derive(Default)]
struct Mail {
    /// Envelopes of messages that no receive has taken, in the order in which they came.
    unexpected: VecDeque<(Envelope, Path)>,
    /// Receives that wait for theirs, in the order in which they were posted.
    posted: VecDeque<Rc<Receive>>,
    /// Answers to this host's messages, by number.
    ready: BTreeMap<u32, (u32, Path)>,
    /// Envelopes of each rank that were taken, and of which it does not know.
    taken: Vec<u64>,
}

/// The host's end of messages from host to host.
pub struct Messenger {
    sim: Sim,
    device: Device,
    out: Channel,
    /// One thread at a time hands an envelope to the card.
    turn: Server,
    sending: Lanes,
    handing: Lanes,
    windows: Vec<Credits>,
    mail: RefCell<Mail>,
    changed: Signal,
    next: Cell<u32>,
    /// What went wrong where nobody waited for it.
    failed: Cell<Option<ChannelError>>,
}

impl Messenger {
    /// The microengines that it runs on: the last four.
    pub fn microengines(cores: usize) -> Range<usize> {
        cores.saturating_sub(MICROENGINES)..cores
    }

    /// Starts the processes that forward messages on a card, among `ranks` hosts, and opens their channels. It takes no
    /// time.
    ///
    /// # Errors
    /// When the card has too little of something for them, such as microengines.
    ///
    /// # Panics
    /// When other processes run on the last four microengines, or channels have been opened.
    pub fn install(sim: &Sim, card: &Rc<Card>, ranks: u32) -> Result<Rc<Messenger>, ProgramError> {
        let (nfp, spec) = (card.processor(), card.spec());
        let program = Program::load(PROGRAM, spec)?;
        let cores = Messenger::microengines(spec.cores);
        let entries = (ENTRIES * ranks).next_power_of_two();
        let bytes = 2 * LANES as u32 * SLOTS * (CHUNK + TOLD) + entries * ENTRY;
        let size = spec.memory(super::MemoryKind::Emem).size;
        let channels = 2 + 2 * LANES as u64;
        for (what, key, needed, there) in [
            ("microengines", "hpu.cores", MICROENGINES as u64, spec.cores as u64),
            ("contexts of a microengine", "hpu.contexts", LANES as u64, spec.contexts as u64),
            ("bytes of EMEM", "memory.emem.size", bytes.into(), size.into()),
            ("channels", "limits.channels", channels, spec.channels.channels.into()),
            ("targets", "limits.targets", channels, spec.channels.targets.into()),
        ] {
            if needed > there {
                return Err(ProgramError::Room { what, key, needed, there });
            }
        }
        let memory = map::EMEM + (size - bytes) / 64 * 64;
        let connect = |offset: u32| {
            card.connect(TARGETS + offset)
                .unwrap_or_else(|error| panic!("before all other channels: {error}"))
        };
        let (out, come) = (connect(0), connect(1));
        let lanes = |first: u32| (first..first + LANES as u32).map(connect).collect();
        let (sending, handing) = (lanes(2), lanes(2 + LANES as u32));
        let arguments = [TARGETS, memory, entries, cores.start as u32];
        let start = |core: usize, contexts: &[(&str, u32)]| -> Result<(), ProgramError> {
            nfp.load(core, &program, contexts.len())?;
            for (context, (name, lane)) in contexts.iter().enumerate() {
                let entry = program.image().require(name).map_err(ProgramError::Image)?;
                nfp.start(core, context, entry, &[&arguments[..], &[*lane]].concat());
            }
            Ok(())
        };
        let each = |name| (0..LANES as u32).map(|lane| (name, lane)).collect::<Vec<_>>();
        start(cores.start, &[("forward_port", 0), ("forward_out", 0), ("forward_in", 0)])?;
        start(cores.start + 1, &each("forward_load"))?;
        start(cores.start + 2, &each("forward_send"))?;
        start(cores.start + 3, &each("forward_hand"))?;
        let messenger = Rc::new(Messenger {
            sim: sim.clone(),
            device: card.open(),
            out,
            turn: Server::new(sim),
            sending: Lanes::new(sim, sending),
            handing: Lanes::new(sim, handing),
            windows: (0..ranks).map(|_| Credits::new(sim, WINDOW)).collect(),
            mail: RefCell::new(Mail { taken: vec![0; ranks as usize], ..Mail::default() }),
            changed: Signal::new(sim),
            next: Cell::new(0),
            failed: Cell::new(None),
        });
        sim.spawn(messenger.clone().serve(come));
        Ok(messenger)
    }

    /// Sends the `bytes` bytes of host memory from `address` on to a rank. Returns when they may be used again: those
    /// that are not inside the envelope when the receiving card has them.
    ///
    /// # Errors
    /// When there is no such rank, the memory is not the host's, or a channel failed.
    pub async fn send(
        &self,
        path: &mut Path,
        to: u32,
        tag: u32,
        address: u64,
        bytes: u64,
    ) -> Result<(), MessageError> {
        let (ranks, limit) = (self.windows.len() as u32, self.device.card().spec().channels.message);
        if to >= ranks {
            return Err(MessageError::Rank { rank: to, ranks });
        }
        if to == self.sim.node().0 {
            return Err(MessageError::ToItself { rank: to });
        }
        if bytes > u64::from(limit) {
            return Err(MessageError::TooLong { bytes, limit });
        }
        let memory = self.device.card().memory();
        memory.check(address, bytes)?;
        let window = describe(
            move || format!("rank {to} to receive one of the {WINDOW} messages that wait for it there"),
            self.windows[to as usize].acquire(1),
        );
        window.await.forget();
        path.advance(Stage::Receiver, self.sim.now());
        let id = self.next.replace(self.next.get().wrapping_add(1));
        let kind = if bytes <= INLINE { Kind::Whole } else { Kind::Asking };
        let mut envelope = Envelope { tag, bytes: bytes as u32, id, ..Envelope::new(to, kind) };
        if kind == Kind::Whole {
            if let Ok(inside) = memory.read(address, bytes)?.into_buffer() {
                envelope.inside[..bytes as usize].copy_from_slice(&inside);
            }
            return self.hand_out(path, &envelope).await;
        }
        self.hand_out(path, &envelope).await?;
        let ready = self.changed.wait_until(|| self.mail.borrow().ready.contains_key(&id));
        describe(move || format!("rank {to} to receive its message of {bytes} bytes, tag {tag}"), ready)
            .await;
        let (lane, since) = self.mail.borrow_mut().ready.remove(&id).expect("just seen");
        path.follow(&since);
        self.send_bytes(path, to, lane, address, bytes as u32).await
    }

    /// Gives a message's bytes to the card, which sends them into a lane of the other one.
    async fn send_bytes(
        &self,
        path: &mut Path,
        to: u32,
        their_lane: u32,
        address: u64,
        bytes: u32,
    ) -> Result<(), MessageError> {
        let permit = self.sending.pool.acquire().await;
        path.advance(Stage::SendQueued, self.sim.now());
        let lane = self.sending.take();
        let channel = self.sending.channels[lane];
        let order = [to, their_lane, bytes, 0].map(u32::to_le_bytes).concat();
        self.device.send(path, channel, &order, None).await?;
        for (at, piece) in chunks(bytes) {
            self.device.send_indirect(path, channel, address + at, piece, None).await?;
        }
        self.sending.give(lane);
        drop(permit);
        Ok(())
    }

    /// Posts a receive, and does not wait for its message: the first that comes from then on, or has come and was not taken,
    /// from `source` with this tag (or any), into the `room` bytes of host memory from `address` on. `path` accounts
    /// for the time of whoever posts it.
    ///
    /// # Errors
    /// When there is no such rank, or the memory is not the host's.
    pub fn post(
        self: &Rc<Messenger>,
        path: &Path,
        source: Option<u32>,
        tag: Option<u32>,
        address: u64,
        room: u64,
    ) -> Result<Posted, MessageError> {
        let ranks = self.windows.len() as u32;
        if let Some(rank) = source.filter(|&rank| rank >= ranks) {
            return Err(MessageError::Rank { rank, ranks });
        }
        self.device.card().memory().check(address, room)?;
        let receive = Rc::new(Receive { source, tag, taken: Cell::new(None), done: RefCell::new(None) });
        let mut mail = self.mail.borrow_mut();
        let here = mail.unexpected.iter().position(|(envelope, _)| receive.takes(envelope));
        match here.and_then(|index| mail.unexpected.remove(index)) {
            Some(envelope) => receive.taken.set(Some(envelope)),
            None => mail.posted.push_back(receive.clone()),
        }
        drop(mail);
        let (messenger, theirs, mut path) = (self.clone(), receive.clone(), *path);
        self.sim.spawn(async move {
            let result = messenger.take(&theirs, &mut path, address, room).await;
            theirs.done.replace(Some((result, path)));
            messenger.changed.notify_all();
        });
        Ok(Posted(receive))
    }

    /// Waits until a posted receive has its message.
    ///
    /// # Errors
    /// When the message is longer than the buffer, or a channel failed.
    pub async fn received(&self, path: &mut Path, posted: Posted) -> Result<Arrival, MessageError> {
        let receive = &posted.0;
        let what = move || {
            let from = receive.source.map_or("any rank".to_owned(), |rank| format!("rank {rank}"));
            let tagged = receive.tag.map_or("any tag".to_owned(), |tag| format!("tag {tag}"));
            format!("a message from {from}, {tagged}")
        };
        let done = self.changed.wait_until(|| receive.done.borrow().is_some() || self.failed.get().is_some());
        describe(what, done).await;
        if let Some((result, until)) = receive.done.take() {
            path.follow(&until);
            return result;
        }
        Err(self.failed.get().expect("just seen").into())
    }

    /// Sees a receive through: its envelope, then its bytes.
    async fn take(
        self: &Rc<Messenger>,
        receive: &Receive,
        path: &mut Path,
        address: u64,
        room: u64,
    ) -> Result<Arrival, MessageError> {
        self.changed.wait_until(|| receive.taken.get().is_some()).await;
        let (envelope, since) = receive.taken.take().expect("just seen");
        path.follow(&since);
        let (arrival, source) = (envelope.arrival(), envelope.rank);
        self.give_back(source, path);
        if arrival.bytes > room {
            return Err(MessageError::NoRoom { message: arrival, room });
        }
        if envelope.kind == Kind::Whole {
            let inside = &envelope.inside[..arrival.bytes as usize];
            self.device.card().memory().write(address, inside)?;
            return Ok(arrival);
        }
        let permit = self.handing.pool.acquire().await;
        path.advance(Stage::Receiver, self.sim.now());
        let lane = self.handing.take();
        let ready = Envelope { id: envelope.id, count: lane as u32, ..Envelope::new(source, Kind::Ready) };
        self.hand_out(path, &ready).await?;
        for (at, piece) in chunks(envelope.bytes) {
            let channel = self.handing.channels[lane];
            self.device.receive_indirect(path, channel, address + at, piece, None).await?;
        }
        self.handing.give(lane);
        drop(permit);
        Ok(arrival)
    }

    /// A receive has taken an envelope: its sender may send another, and is told when half of the window has been taken.
    fn give_back(self: &Rc<Messenger>, rank: u32, path: &Path) {
        let mut mail = self.mail.borrow_mut();
        let taken = &mut mail.taken[rank as usize];
        *taken += 1;
        if *taken < WINDOW / 2 {
            return;
        }
        let envelope = Envelope { count: std::mem::take(taken) as u32, ..Envelope::new(rank, Kind::Taken) };
        let (messenger, mut path) = (self.clone(), *path);
        self.sim.spawn(async move {
            if let Err(MessageError::Channel(error)) = messenger.hand_out(&mut path, &envelope).await {
                messenger.fail(error);
            }
        });
    }

    /// Hands an envelope to the card.
    async fn hand_out(&self, path: &mut Path, envelope: &Envelope) -> Result<(), MessageError> {
        let turn = self.turn.acquire().await;
        path.advance(Stage::SendQueued, self.sim.now());
        self.device.send(path, self.out, &envelope.encode(), None).await?;
        drop(turn);
        Ok(())
    }

    /// The thread that takes what comes, for ever.
    async fn serve(self: Rc<Messenger>, come: Channel) {
        let mut path = Path::from(self.sim.now());
        loop {
            let payload = match self.device.receive(&mut path, come, 56, None).await {
                Ok(payload) => payload,
                Err(error) => return self.fail(error),
            };
            let envelope = Envelope::decode(&payload).expect("another host's messenger has written it");
            let mut mail = self.mail.borrow_mut();
            match envelope.kind {
                Kind::Whole | Kind::Asking => {
                    let waiting = mail.posted.iter().position(|receive| receive.takes(&envelope));
                    match waiting.and_then(|index| mail.posted.remove(index)) {
                        Some(receive) => receive.taken.set(Some((envelope, path))),
                        None => mail.unexpected.push_back((envelope, path)),
                    }
                }
                Kind::Ready => _ = mail.ready.insert(envelope.id, (envelope.count, path)),
                Kind::Taken => self.windows[envelope.rank as usize].release(envelope.count.into()),
            }
            drop(mail);
            self.changed.notify_all();
        }
    }

    fn fail(&self, error: ChannelError) {
        self.failed.set(Some(error));
        self.changed.notify_all();
    }
}

impl fmt::Debug for Messenger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messenger({} ranks)", self.windows.len())
    }
}

/// Where each chunk of a message begins, and its bytes.
fn chunks(bytes: u32) -> impl Iterator<Item = (u64, u32)> {
    (0..bytes).step_by(CHUNK as usize).map(move |at| (u64::from(at), CHUNK.min(bytes - at)))
}
