//! A receive, from its post to its bytes.

use super::super::card::ChannelError;
use super::envelope::{Envelope, Kind, NO_LANE};
use super::lanes::Lane;
use super::{Arrival, MessageError, Messenger, OVER, chunks, message_of};
use nicety_channels::Failure;
use nicety_kernel::describe;
use nicety_types::{MessageId, Path, Stage};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A receive that has been posted. Its message comes into its buffer also where nobody asks for it.
#[must_use = "a message comes into its buffer; Messenger::received says when"]
pub struct Posted(Rc<Receive>);

pub(super) struct Receive {
    pub(super) source: Option<u32>,
    pub(super) tag: Option<u32>,
    /// The envelope it has taken, and its path until it came.
    pub(super) taken: Cell<Option<(Envelope, Path)>>,
    pub(super) done: RefCell<Option<Done>>,
    /// Its message was one of this host to itself, whose sender has copied it.
    pub(super) filled_by_sender: Cell<bool>,
}

/// How a receive ended: its message, what came of it, and its path.
pub(super) type Done = (MessageId, Result<Arrival, MessageError>, Path);

impl Envelope {
    pub(super) const fn arrival(&self) -> Arrival {
        Arrival { source: self.rank, tag: self.tag, bytes: self.bytes as u64 }
    }
}

impl Receive {
    pub(super) const fn new(source: Option<u32>, tag: Option<u32>) -> Receive {
        let (taken, done) = (Cell::new(None), RefCell::new(None));
        Receive { source, tag, taken, done, filled_by_sender: Cell::new(false) }
    }

    pub(super) fn takes(&self, envelope: &Envelope) -> bool {
        self.source.is_none_or(|source| source == envelope.rank)
            && self.tag.is_none_or(|tag| tag == envelope.tag)
    }
}

impl Messenger {
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
        if source != Some(self.own) {
            self.start()?;
        }
        let receive = Rc::new(Receive::new(source, tag));
        self.mail.borrow_mut().post(&receive);
        let (messenger, theirs, mut path) = (self.clone(), receive.clone(), *path);
        self.sim.spawn(async move {
            let (envelope, result) = messenger.take(&theirs, &mut path, address, room).await;
            theirs.done.replace(Some((message_of(&envelope), result, path)));
            messenger.changed.notify_all();
            if envelope.kind == Kind::Whole {
                // Behind what the program sends at this instant.
                messenger.give_back(envelope.rank, &path);
            }
        });
        Ok(Posted(receive))
    }

    /// Waits until a posted receive has its message.
    ///
    /// # Errors
    /// When the message is longer than the buffer, its sender has given it up, or a channel failed.
    pub async fn received(&self, path: &mut Path, posted: Posted) -> Result<Arrival, MessageError> {
        let receive = &posted.0;
        let what = move || {
            let from = receive.source.map_or("any rank".to_owned(), |rank| format!("rank {rank}"));
            let tagged = receive.tag.map_or("any tag".to_owned(), |tag| format!("tag {tag}"));
            format!("a message from {from}, {tagged}")
        };
        let slept = receive.done.borrow().is_none();
        let done = self.changed.wait_until(|| receive.done.borrow().is_some() || self.failed.get().is_some());
        describe(what, done).await;
        if let Some((message, result, until)) = receive.done.take() {
            path.follow(&until);
            if slept && receive.filled_by_sender.get() {
                self.device.card().kernel().wake(path).await;
            }
            self.device.card().recorder().message_noticed(message, self.sim.now());
            return result;
        }
        Err(self.failed.get().expect("just seen").into())
    }

    /// Sees a receive through: its envelope, then its bytes. Says what it took.
    async fn take(
        self: &Rc<Messenger>,
        receive: &Receive,
        path: &mut Path,
        address: u64,
        room: u64,
    ) -> (Envelope, Result<Arrival, MessageError>) {
        self.changed.wait_until(|| receive.taken.get().is_some()).await;
        let (envelope, since) = receive.taken.take().expect("just seen");
        path.follow(&since);
        // The message's own path, where that of the receive is another.
        let (begun, mut own) = (*path, since);
        own.advance(Stage::Receiver, begun.at());
        if envelope.kind == Kind::Asking {
            self.give_back(envelope.rank, path);
        }
        let result = match envelope.rank == self.own {
            true => self.take_here(receive, &envelope, path, (address, room)).await,
            false => self.take_bytes(&envelope, path, address, room).await,
        };
        let message = message_of(&envelope);
        let outcome = match &result {
            Ok(_) => "received",
            Err(MessageError::NoRoom { .. }) => "no room",
            Err(_) => "failed",
        };
        let whole = own.continued(&begun, path).unwrap_or(*path);
        self.device.card().recorder().message_completed(message, &whole, outcome);
        (envelope, result)
    }

    async fn take_bytes(
        self: &Rc<Messenger>,
        envelope: &Envelope,
        path: &mut Path,
        address: u64,
        room: u64,
    ) -> Result<Arrival, MessageError> {
        let (arrival, source, id) = (envelope.arrival(), envelope.rank, envelope.id);
        let ready = |bytes, lane| Envelope { id, bytes, lane, ..Envelope::new(source, Kind::Ready) };
        if arrival.bytes > room {
            if envelope.kind == Kind::Asking {
                self.hand_out(path, &ready(0, NO_LANE)).await?;
            }
            return Err(MessageError::NoRoom { message: arrival, room });
        }
        if envelope.kind == Kind::Whole {
            let inside = &envelope.inside[..arrival.bytes as usize];
            self.device.card().memory().write(address, inside)?;
            return Ok(arrival);
        }
        let lane = self.network().handing.take().await;
        path.advance(Stage::Receiver, self.sim.now());
        self.hand_out(path, &ready(envelope.bytes, lane.number())).await?;
        for (at, piece) in chunks(envelope.bytes) {
            let channel = lane.channel();
            let received = self.device.receive_indirect(path, channel, address + at, piece, None).await;
            match received {
                Ok(()) => {}
                Err(ChannelError::Failed(Failure::KindMismatch { .. })) => {
                    return Err(MessageError::Abandoned { message: arrival });
                }
                Err(error) => {
                    self.sim.spawn(self.clone().drain(lane, *path));
                    return Err(error.into());
                }
            }
        }
        Ok(arrival)
    }

    /// Keeps a lane until the card has thrown away what is left of its message.
    async fn drain(self: Rc<Messenger>, lane: Lane, mut path: Path) {
        loop {
            match self.device.receive(&mut path, lane.channel(), OVER, None).await {
                // The process was still about to hand over a chunk.
                Err(ChannelError::Failed(Failure::KindMismatch { .. })) => {}
                _ => return,
            }
        }
    }

    /// A receive has taken an envelope: its sender may send another, and is told when half of the window has been taken.
    fn give_back(self: &Rc<Messenger>, rank: u32, path: &Path) {
        if rank == self.own {
            return self.windows[rank as usize].release(1);
        }
        let Some(id) = self.mail.borrow_mut().took(rank) else { return };
        let envelope = Envelope { id, ..Envelope::new(rank, Kind::Taken) };
        let (messenger, mut path) = (self.clone(), *path);
        self.sim.spawn(async move {
            if let Err(MessageError::Channel(error)) = messenger.hand_out(&mut path, &envelope).await {
                messenger.fail(error);
            }
        });
    }
}
