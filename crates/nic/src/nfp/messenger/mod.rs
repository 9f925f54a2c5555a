//! Messages between hosts over channels and the cards' ports: the host's side of `handlers/nfp/forward.c`.
//!
//! | file | what is in it |
//! |---|---|
//! | `envelope.rs` | the protocol unit: eager, RTS, CTS, credit |
//! | `receive.rs` | a receive, from its post to its bytes |
//! | `here.rs` | messages of a host to itself |
//! | `mail.rs` | matching of envelopes and receives; validation of envelopes |
//! | `network.rs` | the card's forwarding processes, and the channels to them |
//! | `lanes.rs`, `error.rs` | the channels for bulk data; errors of messages |
//!
//! The processes start with the first message: when the host sends or receives one, or one arrives. Until then the
//! microengines are free for other processes.
//!
//! Eager and rendezvous: a message of at most [`INLINE`] bytes is inside its envelope. A longer one sends an RTS;
//! once the receive is posted, the receiver replies with a CTS that names a lane, and the sender gives the bytes to
//! its card in chunks.
//!
//! A message to the host itself does not use the card (`here.rs`). So a host without others has a messenger too.
//!
//! # Bounds
//! A host has at most [`WINDOW`] envelopes to each other host that no receive has taken; past that `send` waits.
//! Bytes move only after a receive has been posted. So a host that does not receive stalls only its own senders, and
//! its card always has room.
//!
//! # Failures
//! A DMA transfer that fails too often ends its message, at both hosts, and nothing else. A send that is dropped
//! before it has a credit has no effect; later it runs to its end by itself. Guards free the resources it holds.

mod envelope;
mod error;
mod here;
mod lanes;
mod mail;
mod network;
mod receive;

pub use error::{Arrival, MessageError};
pub use receive::Posted;

use super::card::{Card, ChannelError, Device};
use crate::nfp::stages;
use envelope::{Envelope, Kind, NO_LANE};
use here::Here;
use mail::{Came, Mail};
use network::Network;
use nicety_channels::Failure;
use nicety_kernel::{Credits, Guard, Permit, Signal, Sim, describe};
use nicety_types::{MessageId, NodeId, Path, Stage, Starter};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// Most bytes of an eager message.
pub const INLINE: u64 = 32;
/// Envelopes to one host that no receive has taken: its credits.
pub const WINDOW: u64 = 16;

/// Lanes of a card in each direction, and bytes of a chunk; `forward.c` has the same numbers.
const LANES: usize = 8;
const CHUNK: u32 = 65_536;
/// Size of the message that ends one of which a part has failed.
const OVER: u32 = 4;

/// Invalid frames and envelopes of messages between hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MessengerCounters {
    /// Invalid frames of messages between hosts, which were dropped.
    #[serde(rename = "frames_refused")]
    pub frames: u64,
    /// Invalid envelopes of messages between hosts, which were dropped.
    #[serde(rename = "envelopes_refused")]
    pub envelopes: u64,
}

/// The progress of a send, for deadlock hints.
#[derive(Default)]
struct Sending {
    /// The RTS has been sent, and no CTS has come.
    asked: Cell<bool>,
    done: RefCell<Option<(Result<(), MessageError>, Path)>>,
}

/// A message in the transmit path.
struct Leaving {
    envelope: Envelope,
    address: u64,
    /// Its credit, and its turn at the card.
    window: Permit,
    turn: Guard,
}

/// The host's end of messages between hosts, and of those to itself.
pub struct Messenger {
    sim: Sim,
    /// The host's rank.
    own: u32,
    device: Device,
    /// The channels to other hosts; none if there are none.
    network: Option<Network>,
    windows: Vec<Credits>,
    mail: RefCell<Mail>,
    /// Unfinished messages of this host to itself, by number.
    here: RefCell<BTreeMap<u32, Here>>,
    changed: Signal,
    refused: Cell<u64>,
    /// The first failure of a task that no call waits for.
    failed: Cell<Option<ChannelError>>,
}

impl Messenger {
    /// A messenger among `ranks` hosts, without a network to the others.
    pub fn local(sim: &Sim, card: &Rc<Card>, ranks: u32) -> Rc<Messenger> {
        Rc::new(Messenger::new(sim, card, ranks, None))
    }

    fn new(sim: &Sim, card: &Rc<Card>, ranks: u32, network: Option<Network>) -> Messenger {
        let own = sim.node().0;
        Messenger {
            sim: sim.clone(),
            own,
            device: card.open().patient(),
            network,
            windows: (0..ranks).map(|_| Credits::new(sim, WINDOW)).collect(),
            mail: RefCell::new(Mail::new(own, ranks)),
            here: RefCell::default(),
            changed: Signal::new(sim),
            refused: Cell::new(0),
            failed: Cell::new(None),
        }
    }

    /// Sends `bytes` bytes of host memory from `address` on to a rank. Returns when they may be used again: at once
    /// for an eager message, otherwise when the receiving card has them, or this host's own receive.
    ///
    /// # Errors
    /// When there is no such rank, the memory is not the host's, a channel failed, or the receiver's buffer is too
    /// small for a message that is not eager.
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
        if bytes > u64::from(limit) {
            return Err(MessageError::TooLong { bytes, limit });
        }
        card.memory().check(address, bytes)?;
        if to != self.own {
            self.start()?;
        }
        let message = card.next_message();
        card.recorder().sent(message, NodeId(to), bytes, "send", Starter::Host, path);
        let window = describe(
            move || format!("rank {to} to receive one of the {WINDOW} messages that wait for it there"),
            self.windows[to as usize].acquire(1),
        );
        let window = window.await;
        path.advance(stages::RECEIVER, self.sim.now());
        let kind = if bytes <= INLINE { Kind::Eager } else { Kind::Rts };
        let id = message.sequence as u32;
        let mut envelope = Envelope { tag, bytes: bytes as u32, id, ..Envelope::new(to, kind) };
        if to == self.own {
            return self.send_here(path, envelope, address, window).await;
        }
        if kind == Kind::Eager
            && let Ok(inside) = card.memory().read(address, bytes)?.into_buffer()
        {
            envelope.inside[..bytes as usize].copy_from_slice(&inside);
        }
        let turn = self.network().turn.acquire().await;
        path.advance(Stage::SEND_QUEUED, self.sim.now());
        let sending = Rc::new(Sending::default());
        let (messenger, theirs, mut its) = (self.clone(), sending.clone(), path.clone());
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

    /// Runs a send to its end: its envelope, then its bytes.
    async fn see_off(
        &self,
        sending: &Sending,
        leaving: Leaving,
        path: &mut Path,
    ) -> Result<(), MessageError> {
        let Leaving { envelope, address, window, turn } = leaving;
        let Envelope { rank, id, bytes, kind, .. } = envelope;
        self.mail.borrow_mut().sends(rank);
        if kind == Kind::Rts {
            self.mail.borrow_mut().await_answer(id, rank);
        }
        if let Err(error) = self.hand_out_in(turn, path, &envelope).await {
            // It has not left; dropping its permit returns the credit.
            let mut mail = self.mail.borrow_mut();
            mail.unsends(rank);
            mail.answer(id);
            return Err(error);
        }
        // From here on the receiver returns the credit.
        window.forget();
        if kind == Kind::Eager {
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

    /// Gives a message's bytes to the card, which sends them through a lane of the receiving card.
    async fn send_bytes(
        &self,
        path: &mut Path,
        to: u32,
        their_lane: u32,
        address: u64,
        bytes: u32,
    ) -> Result<(), MessageError> {
        let lane = self.network().sending.take().await;
        path.advance(Stage::SEND_QUEUED, self.sim.now());
        let channel = lane.channel();
        let order = [to, their_lane, bytes, 0].map(u32::to_le_bytes).concat();
        self.device.send(path, channel, &order, None).await?;
        for (at, piece) in chunks(bytes) {
            if let Err(error) = self.device.send_indirect(path, channel, address + at, piece, None).await {
                if !seen_by_both(&error) {
                    // The process still waits for the chunk: a message of another kind ends its wait.
                    let _ = self.device.send(path, channel, &[0; OVER as usize], None).await;
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Hands an envelope to the card. Only for tasks that run to their end: a call that is dropped keeps its channel.
    async fn hand_out(&self, path: &mut Path, envelope: &Envelope) -> Result<(), MessageError> {
        let turn = self.network().turn.acquire().await;
        path.advance(Stage::SEND_QUEUED, self.sim.now());
        self.hand_out_in(turn, path, envelope).await
    }

    async fn hand_out_in(
        &self,
        turn: Guard,
        path: &mut Path,
        envelope: &Envelope,
    ) -> Result<(), MessageError> {
        self.device.send(path, self.network().out, &envelope.encode(), None).await?;
        drop(turn);
        Ok(())
    }

    /// The thread that receives envelopes; it never ends.
    async fn serve(self: Rc<Messenger>) {
        let mut path = Path::from(self.sim.now());
        loop {
            let payload = match self.device.receive(&mut path, self.network().come, 56, None).await {
                Ok(payload) => payload,
                Err(error) => return self.fail(error),
            };
            // An envelope that came while a process or the thread was busy has waited.
            let mut its = path.clone();
            if let Some(came) = self.device.card().envelope_path(&payload)
                && came.at() <= path.at()
                && came.continued(&came, &path).is_none()
            {
                its = came;
                its.advance(stages::RECEIVER, path.at());
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

/// The message of an envelope.
const fn message_of(envelope: &Envelope) -> MessageId {
    MessageId { source: NodeId(envelope.rank), sequence: envelope.id as u64 }
}

/// Whether the process at the other end of a channel knows that a call failed, and has continued.
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

/// Offset and size of each chunk of a message.
fn chunks(bytes: u32) -> impl Iterator<Item = (u64, u32)> {
    (0..bytes).step_by(CHUNK as usize).map(move |at| (u64::from(at), CHUNK.min(bytes - at)))
}
