//! Messages from host to host, by way of channels and the cards' ports: the host's side of `handlers/nfp/forward.c`.
//!
//! | file | what is in it |
//! |---|---|
//! | `envelope.rs` | what goes from host to host about a message |
//! | `receive.rs` | a receive, from its post to its bytes |
//! | `mail.rs` | what has come, who waits for it, and what another host may say |
//! | `lanes.rs`, `error.rs` | the channels that bytes move through; why a message fails |
//!
//! The processes start with the first message: when the host sends or receives one, or one comes. Until then the microengines
//! are everybody's.
//!
//! A message of at most [`INLINE`] bytes goes inside its envelope. For any other the envelope asks the receiving host,
//! which answers, once the receive is there, through which lane the bytes may come; then the sender gives them
//! to its card in chunks.
//!
//! # What is bounded
//! A host has at most [`WINDOW`] envelopes under way to each other one that no receive has taken; past that
//! `send` waits. Bytes go only where a receive has been posted. So a host that receives nothing holds nobody up but those who
//! send to it, and its card always has room for what may come.
//!
//! # What fails
//! A DMA transfer that fails too often ends its message, at both hosts, and nothing else. A send that is dropped before there
//! was room for it is none; after that it goes on by itself. What is held meanwhile is held by values that give it back.

mod envelope;
mod error;
mod lanes;
mod mail;
mod receive;

pub use error::{Arrival, MessageError};
pub use receive::Posted;

use super::card::{Card, ChannelError, Device};
use super::{Memory, MemoryKind, Program, ProgramError, map};
use envelope::{Envelope, Kind, NO_LANE};
use lanes::Lanes;
use mail::{Came, Mail};
use nicety_channels::{Channel, Failure};
use nicety_kernel::{Credits, Guard, Permit, Server, Signal, Sim, describe};
use nicety_types::{MessageId, NodeId, Path, Stage, Starter};
use std::cell::{Cell, RefCell};
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
/// Bytes that its microengines share, the first word of which counts the frames that it refused.
const SHARED: u32 = 64;
/// Bytes of the message that ends one of which the host has given up a part.
const OVER: u32 = 4;

const PROGRAM: &[u8] = include_bytes!("../forward.elf");

/// What was not believed, of what came for messages between hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessengerCounters {
    /// Frames that the card's processes refused.
    pub frames: u64,
    /// Envelopes that the host refused.
    pub envelopes: u64,
}

/// A send, as far as whoever waits for it has to know.
#[derive(Default)]
struct Sending {
    /// The receiver has been asked, and has not answered.
    asked: Cell<bool>,
    done: RefCell<Option<(Result<(), MessageError>, Path)>>,
}

/// A message on its way out.
struct Leaving {
    envelope: Envelope,
    address: u64,
    /// Its place in the window of its receiver, and its turn at the card.
    window: Permit,
    turn: Guard,
}

/// What the card's processes are started with.
struct Plan {
    program: Rc<Program>,
    /// The first of their microengines.
    first: usize,
    /// Where their memory begins in EMEM, and what they share.
    memory: u32,
    shared: u64,
    entries: u32,
}

/// The host's end of messages from host to host.
pub struct Messenger {
    sim: Sim,
    device: Device,
    plan: Plan,
    started: Cell<bool>,
    out: Channel,
    come: Channel,
    /// One thread at a time hands an envelope to the card.
    turn: Server,
    sending: Rc<Lanes>,
    handing: Rc<Lanes>,
    windows: Vec<Credits>,
    mail: RefCell<Mail>,
    changed: Signal,
    refused: Cell<u64>,
    /// What went wrong where nobody waited for it.
    failed: Cell<Option<ChannelError>>,
}

impl Messenger {
    /// The microengines that it runs on: the last four.
    pub fn microengines(cores: usize) -> Range<usize> {
        cores.saturating_sub(MICROENGINES)..cores
    }

    /// Prepares a card for messages among `ranks` hosts, and opens the channels for them. It takes no time, and nothing runs
    /// before the first message.
    ///
    /// # Errors
    /// When the card has too little of something for them, such as microengines.
    ///
    /// # Panics
    /// When channels have been opened.
    pub fn install(sim: &Sim, card: &Rc<Card>, ranks: u32) -> Result<Rc<Messenger>, ProgramError> {
        let spec = card.spec();
        let program = Program::load(PROGRAM, spec)?;
        let cores = Messenger::microengines(spec.cores);
        let entries = (ENTRIES * ranks).next_power_of_two();
        let bytes = 2 * LANES as u32 * SLOTS * (CHUNK + TOLD) + entries * ENTRY + SHARED;
        let size = spec.memory(MemoryKind::Emem).size;
        let channels = 2 + 2 * LANES as u64;
        for (what, key, needed, there) in [
            ("microengines", "hpu.cores", MICROENGINES as u64, spec.cores as u64),
            ("contexts of a microengine", "hpu.contexts", LANES as u64, spec.contexts as u64),
            ("bytes of EMEM", "memory.emem.size", bytes.into(), size.into()),
            ("channels", "limits.channels", channels, spec.channels.channels.into()),
            ("targets", "limits.targets", channels, spec.channels.targets.into()),
            // One for each channel, so that none waits for a thread of another message.
            ("threads", "limits.threads", channels, spec.channels.threads.into()),
        ] {
            if needed > there {
                return Err(ProgramError::Room { what, key, needed, there });
            }
        }
        for (_, contexts) in Messenger::processes() {
            program.stack(contexts.len())?;
            for (name, _) in contexts {
                program.image().require(name).map_err(ProgramError::Image)?;
            }
        }
        let offset = (size - bytes) / 64 * 64;
        let plan = Plan {
            program,
            first: cores.start,
            memory: map::EMEM + offset,
            shared: u64::from(offset + bytes - SHARED),
            entries,
        };
        let connect = |offset: u32| {
            let channel = card.connect(TARGETS + offset);
            let channel = channel.unwrap_or_else(|error| panic!("before all other channels: {error}"));
            card.leave_unrecorded(channel);
            channel
        };
        let (out, come) = (connect(0), connect(1));
        let lanes = |first: u32| Lanes::new(sim, (first..first + LANES as u32).map(connect).collect());
        let messenger = Rc::new(Messenger {
            sim: sim.clone(),
            device: card.open().patient(),
            plan,
            started: Cell::new(false),
            out,
            come,
            turn: Server::new(sim),
            sending: lanes(2),
            handing: lanes(2 + LANES as u32),
            windows: (0..ranks).map(|_| Credits::new(sim, WINDOW)).collect(),
            mail: RefCell::new(Mail::new(sim.node().0, ranks)),
            changed: Signal::new(sim),
            refused: Cell::new(0),
            failed: Cell::new(None),
        });
        let weak = Rc::downgrade(&messenger);
        card.on_message(move || {
            // Where another process is in the way, the frame is nobody's.
            let _ = weak.upgrade().map(|messenger| messenger.start());
        });
        Ok(messenger)
    }

    /// The processes of each microengine: their functions, and the lane of each.
    fn processes() -> [(usize, Vec<(&'static str, u32)>); MICROENGINES] {
        let each = |name| (0..LANES as u32).map(|lane| (name, lane)).collect::<Vec<_>>();
        let port = vec![("forward_port", 0), ("forward_out", 0), ("forward_in", 0)];
        [(0, port), (1, each("forward_load")), (2, each("forward_send")), (3, each("forward_hand"))]
    }

    /// Whether its processes run.
    pub fn is_started(&self) -> bool {
        self.started.get()
    }

    /// Starts its processes, unless they run. It takes no time.
    ///
    /// # Errors
    /// When something else runs on their microengines.
    pub fn start(self: &Rc<Messenger>) -> Result<(), MessageError> {
        if self.started.get() {
            return Ok(());
        }
        let (card, plan) = (self.device.card(), &self.plan);
        let nfp = card.processor();
        let (first, last) = (plan.first, plan.first + MICROENGINES - 1);
        if let Some(number) = (first..=last).find(|&core| nfp.is_live(core)) {
            return Err(MessageError::Microengine { number, first, last });
        }
        self.started.set(true);
        let arguments = [TARGETS, plan.memory, plan.entries, first as u32];
        self.emem().poke(plan.shared, &[0; SHARED as usize]).expect("its memory is in EMEM");
        for (core, contexts) in Messenger::processes() {
            nfp.load(first + core, &plan.program, contexts.len()).expect("looked at when it was prepared");
            for (context, (name, lane)) in contexts.into_iter().enumerate() {
                let entry = plan.program.image().require(name).expect("looked at when it was prepared");
                nfp.start(first + core, context, entry, &[&arguments[..], &[lane]].concat());
            }
        }
        card.forward_to(first);
        self.sim.spawn(self.clone().serve());
        Ok(())
    }

    fn emem(&self) -> &Memory {
        self.device.card().processor().memory(MemoryKind::Emem, 0)
    }

    /// What was not believed.
    pub fn counters(&self) -> MessengerCounters {
        let frames = match self.started.get() {
            true => self.emem().peek_u32(self.plan.shared).expect("its memory is in EMEM").into(),
            false => 0,
        };
        MessengerCounters { frames, envelopes: self.refused.get() }
    }

    /// Sends the `bytes` bytes of host memory from `address` on to a rank. Returns when they may be used again: those
    /// that are not inside the envelope when the receiving card has them.
    ///
    /// # Errors
    /// When there is no such rank, the memory is not the host's, a channel failed, or the receiver has too little room for a
    /// message that does not fit its envelope.
    pub async fn send(
        self: &Rc<Messenger>,
        path: &mut Path,
        to: u32,
        tag: u32,
        address: u64,
        bytes: u64,
    ) -> Result<(), MessageError> {
        let card = self.device.card();
        let (ranks, limit) = (self.windows.len() as u32, card.spec().channels.message);
        if to >= ranks {
            return Err(MessageError::Rank { rank: to, ranks });
        }
        if to == self.sim.node().0 {
            return Err(MessageError::ToItself { rank: to });
        }
        if bytes > u64::from(limit) {
            return Err(MessageError::TooLong { bytes, limit });
        }
        card.memory().check(address, bytes)?;
        self.start()?;
        let message = card.next_message();
        card.recorder().sent(message, NodeId(to), bytes, "send", Starter::Host, path);
        let window = describe(
            move || format!("rank {to} to receive one of the {WINDOW} messages that wait for it there"),
            self.windows[to as usize].acquire(1),
        );
        let window = window.await;
        path.advance(Stage::Receiver, self.sim.now());
        let kind = if bytes <= INLINE { Kind::Whole } else { Kind::Asking };
        let id = message.sequence as u32;
        let mut envelope = Envelope { tag, bytes: bytes as u32, id, ..Envelope::new(to, kind) };
        if kind == Kind::Whole
            && let Ok(inside) = card.memory().read(address, bytes)?.into_buffer()
        {
            envelope.inside[..bytes as usize].copy_from_slice(&inside);
        }
        let turn = self.turn.acquire().await;
        path.advance(Stage::SendQueued, self.sim.now());
        let sending = Rc::new(Sending::default());
        let (messenger, theirs, mut its) = (self.clone(), sending.clone(), *path);
        self.sim.spawn(async move {
            let leaving = Leaving { envelope, address, window, turn };
            let result = messenger.see_off(&theirs, leaving, &mut its).await;
            theirs.done.replace(Some((result, its)));
            messenger.changed.notify_all();
        });
        let what = || match sending.asked.get() {
            true => format!("rank {to} to receive its message of {bytes} bytes, tag {tag}"),
            false => format!("the card to send its message of {bytes} bytes to rank {to}, tag {tag}"),
        };
        describe(what, self.changed.wait_until(|| sending.done.borrow().is_some())).await;
        let (result, until) = sending.done.take().expect("just seen");
        *path = until;
        result
    }

    /// Sees a send through: its envelope, then its bytes.
    async fn see_off(
        &self,
        sending: &Sending,
        leaving: Leaving,
        path: &mut Path,
    ) -> Result<(), MessageError> {
        let Leaving { envelope, address, window, turn } = leaving;
        let Envelope { rank, id, bytes, kind, .. } = envelope;
        self.mail.borrow_mut().sends(rank);
        if kind == Kind::Asking {
            self.mail.borrow_mut().await_answer(id, rank);
        }
        if let Err(error) = self.hand_out_in(turn, path, &envelope).await {
            // It has not left, and the window is given back with its permit.
            let mut mail = self.mail.borrow_mut();
            mail.unsends(rank);
            mail.answer(id);
            return Err(error);
        }
        // From here on the receiver gives it back.
        window.forget();
        if kind == Kind::Whole {
            return Ok(());
        }
        sending.asked.set(true);
        self.changed.wait_until(|| self.mail.borrow().is_answered(id)).await;
        sending.asked.set(false);
        let (lane, since) = self.mail.borrow_mut().answer(id).expect("just seen");
        path.follow(&since);
        match lane {
            NO_LANE => Err(MessageError::Refused { rank, bytes: bytes.into() }),
            lane => self.send_bytes(path, rank, lane, address, bytes).await,
        }
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
        let lane = self.sending.take().await;
        path.advance(Stage::SendQueued, self.sim.now());
        let channel = lane.channel();
        let order = [to, their_lane, bytes, 0].map(u32::to_le_bytes).concat();
        self.device.send(path, channel, &order, None).await?;
        for (at, piece) in chunks(bytes) {
            if let Err(error) = self.device.send_indirect(path, channel, address + at, piece, None).await {
                if !seen_by_both(&error) {
                    // The process still waits for the chunk: a message of another kind tells it.
                    let _ = self.device.send(path, channel, &[0; OVER as usize], None).await;
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Hands an envelope to the card. Only for tasks that go on to their end: a call that is dropped keeps its channel.
    async fn hand_out(&self, path: &mut Path, envelope: &Envelope) -> Result<(), MessageError> {
        let turn = self.turn.acquire().await;
        path.advance(Stage::SendQueued, self.sim.now());
        self.hand_out_in(turn, path, envelope).await
    }

    async fn hand_out_in(
        &self,
        turn: Guard,
        path: &mut Path,
        envelope: &Envelope,
    ) -> Result<(), MessageError> {
        self.device.send(path, self.out, &envelope.encode(), None).await?;
        drop(turn);
        Ok(())
    }

    /// The thread that takes what comes, for ever.
    async fn serve(self: Rc<Messenger>) {
        let mut path = Path::from(self.sim.now());
        loop {
            let payload = match self.device.receive(&mut path, self.come, 56, None).await {
                Ok(payload) => payload,
                Err(error) => return self.fail(error),
            };
            // One that came while a process or the thread was busy with another has waited for it.
            let mut its = path;
            if let Some(came) = self.device.card().envelope_path(&payload)
                && came.at() <= path.at()
                && came.continued(&came, &path).is_none()
            {
                its = came;
                its.advance(Stage::Receiver, path.at());
            }
            let envelope = Envelope::decode(&payload);
            let came = envelope.map(|envelope| self.mail.borrow_mut().arrived(envelope, its));
            match (envelope, came) {
                (Some(envelope), Some(Came::Message)) => {
                    let recorder = self.device.card().recorder();
                    recorder.message_matched(message_of(&envelope), self.sim.now(), "not received");
                }
                (_, Some(Came::Answer)) => {}
                (Some(envelope), Some(Came::Room(more))) => {
                    self.windows[envelope.rank as usize].release(more);
                }
                _ => self.refused.set(self.refused.get() + 1),
            }
            self.changed.notify_all();
        }
    }

    fn fail(&self, error: ChannelError) {
        self.failed.set(Some(error));
        self.changed.notify_all();
    }
}

/// The message that an envelope is of.
const fn message_of(envelope: &Envelope) -> MessageId {
    MessageId { source: NodeId(envelope.rank), sequence: envelope.id as u64 }
}

/// Whether the process at the other end of a channel knows that a call failed, and has gone on.
const fn seen_by_both(error: &ChannelError) -> bool {
    matches!(
        error,
        ChannelError::Failed(
            Failure::Dma { .. }
                | Failure::SizeMismatch { .. }
                | Failure::KindMismatch { .. }
                | Failure::Closed
        )
    )
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
