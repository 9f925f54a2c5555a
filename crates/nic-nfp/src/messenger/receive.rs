//! A receive, from its post to its bytes.

use crate::card::ChannelError;
use crate::messenger::Messenger;
use crate::messenger::envelope::{Envelope, Kind, NO_LANE};
use crate::messenger::error::{Arrival, MessageError};
use crate::messenger::lanes::{Lane, OVER, chunks};
use crate::messenger::progress::{Posted, Receive};
use crate::stages;
use nicety_channels::Failure;
use nicety_kernel::describe;
use nicety_nic_core::{Tags, Wanted};
use nicety_types::{Path, Stage};
use std::rc::Rc;

impl Messenger {
    /// Posts a receive without waiting. It takes the first message from `source` with one of these tags, waiting or
    /// arriving later, into the `room` bytes of host memory from `address` on. `path` accounts for the time of the
    /// poster.
    ///
    /// # Errors
    /// When there is no such rank, or the memory is not the host's.
    pub fn post(
        self: &Rc<Messenger>,
        path: &Path,
        source: Option<u32>,
        tags: Tags,
        address: u64,
        room: u64,
    ) -> Result<Posted, MessageError> {
        self.device.card().memory().check(address, room)?;
        self.check_source(source)?;
        let receive = Rc::new(Receive::new(Wanted { source, tags, address, room }));
        self.mail.borrow_mut().post(&receive);
        let (messenger, theirs, mut path) = (self.clone(), receive.clone(), path.clone());
        self.sim.spawn(async move {
            let Some((envelope, result)) = messenger.take(&theirs, &mut path).await else { return };
            theirs.done.replace(Some((envelope.message(), result, path.clone())));
            messenger.changed.notify_all();
            if envelope.kind == Kind::Eager {
                // After the program's sends at this instant.
                messenger.give_back(&envelope, &path);
            }
        });
        Ok(Posted(receive))
    }

    /// Waits until a posted receive is complete.
    ///
    /// # Errors
    /// When the message is longer than the buffer, its sender has failed, or a channel failed.
    pub async fn received(&self, path: &mut Path, posted: Posted) -> Result<Arrival, MessageError> {
        let receive = &posted.0;
        let slept = receive.done.borrow().is_none();
        let done = self.changed.wait_until(|| receive.done.borrow().is_some() || self.failed.get().is_some());
        describe(move || receive.wanted.what(), done).await;
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

    /// Returns the oldest message that a receive would take, from those that no receive has taken.
    ///
    /// # Errors
    /// As [`Messenger::post`], and when a channel failed.
    pub async fn probe(
        self: &Rc<Messenger>,
        path: &mut Path,
        source: Option<u32>,
        tags: Tags,
    ) -> Result<Option<Arrival>, MessageError> {
        self.check_source(source)?;
        self.library_call(path).await;
        if let Some(error) = self.failed.get() {
            return Err(error.into());
        }
        let wanted = Wanted { source, tags, address: 0, room: 0 };
        let mail = self.mail.borrow();
        Ok(mail.first(|envelope| wanted.takes(envelope.rank, envelope.tag)).map(Envelope::arrival))
    }

    /// Cancels a posted receive. Returns it if a message has taken it.
    pub async fn cancel(&self, path: &mut Path, posted: Posted) -> Option<Posted> {
        self.library_call(path).await;
        if !self.mail.borrow_mut().withdraw(&posted.0) {
            return Some(posted);
        }
        posted.0.withdrawn.set(true);
        self.changed.notify_all();
        None
    }

    async fn library_call(&self, path: &mut Path) {
        let card = self.device.card();
        card.kernel().cpus().spend(card.spec().channels.library, Stage::LIBRARY, path).await;
    }

    /// Checks the rank, and starts the processes if messages of other hosts are awaited.
    fn check_source(self: &Rc<Messenger>, source: Option<u32>) -> Result<(), MessageError> {
        let ranks = self.ranks;
        if let Some(rank) = source.filter(|&rank| rank >= ranks) {
            return Err(MessageError::Rank { rank, ranks });
        }
        if source != Some(self.own) {
            self.start()?;
        }
        Ok(())
    }

    /// Completes a receive: its envelope, then its bytes. Returns the outcome; none if it was withdrawn.
    async fn take(
        self: &Rc<Messenger>,
        receive: &Receive,
        path: &mut Path,
    ) -> Option<(Envelope, Result<Arrival, MessageError>)> {
        let Wanted { address, room, .. } = receive.wanted;
        let over = || receive.taken.borrow().is_some() || receive.withdrawn.get();
        self.changed.wait_until(over).await;
        let (envelope, since) = receive.taken.take()?;
        path.follow(&since);
        // The message's own path, if it differs from the receive's.
        let (begun, mut own) = (path.clone(), since);
        own.advance(stages::RECEIVER, begun.at());
        if envelope.kind == Kind::Rts {
            self.give_back(&envelope, path);
        }
        let result = match envelope.rank == self.own {
            true => self.take_here(receive, &envelope, path, (address, room)).await,
            false => self.take_bytes(&envelope, path, address, room).await,
        };
        let message = envelope.message();
        let outcome = match &result {
            Ok(_) => "received",
            Err(MessageError::NoRoom { .. }) => "no room",
            Err(_) => "failed",
        };
        let whole = own.continued(&begun, path).unwrap_or(path.clone());
        self.device.card().recorder().message_completed(message, &whole, outcome);
        Some((envelope, result))
    }

    async fn take_bytes(
        self: &Rc<Messenger>,
        envelope: &Envelope,
        path: &mut Path,
        address: u64,
        room: u64,
    ) -> Result<Arrival, MessageError> {
        let (arrival, source, id) = (envelope.arrival(), envelope.rank, envelope.id);
        let cts = |bytes, lane| Envelope { id, bytes, lane, ..Envelope::new(source, Kind::Cts) };
        if arrival.bytes > room {
            match envelope.kind {
                Kind::Rts => self.hand_out(path, &cts(0, NO_LANE)).await?,
                _ => self.device.card().memory().write(address, &envelope.inside[..room as usize])?,
            }
            return Err(MessageError::NoRoom { message: arrival, room });
        }
        if envelope.kind == Kind::Eager {
            let inside = &envelope.inside[..arrival.bytes as usize];
            self.device.card().memory().write(address, inside)?;
            return Ok(arrival);
        }
        let lane = self.network().handing.take().await;
        path.advance(stages::RECEIVER, self.sim.now());
        self.hand_out(path, &cts(envelope.bytes, lane.number())).await?;
        for (at, piece) in chunks(envelope.bytes) {
            let channel = lane.channel();
            let received = self.device.receive_indirect(path, channel, address + at, piece, None).await;
            match received {
                Ok(()) => {}
                Err(ChannelError::Failed(Failure::KindMismatch { .. })) => {
                    return Err(MessageError::Abandoned { message: arrival });
                }
                Err(error) => {
                    self.sim.spawn(self.clone().drain(lane, path.clone()));
                    return Err(error.into());
                }
            }
        }
        Ok(arrival)
    }

    /// Holds a lane until the card has discarded the rest of its message.
    async fn drain(self: Rc<Messenger>, lane: Lane, mut path: Path) {
        loop {
            match self.device.receive(&mut path, lane.channel(), OVER, None).await {
                // The process was about to hand over another chunk.
                Err(ChannelError::Failed(Failure::KindMismatch { .. })) => {}
                _ => return,
            }
        }
    }

    /// Frees the credit of an envelope's sender. Credits are reported when half of the window is free.
    fn give_back(self: &Rc<Messenger>, envelope: &Envelope, path: &Path) {
        let (rank, pair) = (envelope.rank, self.pairs.get().of(envelope.tag));
        if rank == self.own {
            return self.window(rank, pair).release(1);
        }
        let Some(id) = self.mail.borrow_mut().took(rank, pair) else { return };
        let envelope = Envelope { id, lane: pair, ..Envelope::new(rank, Kind::Credit) };
        let (messenger, mut path) = (self.clone(), path.clone());
        self.sim.spawn(async move {
            if let Err(MessageError::Channel(error)) = messenger.hand_out(&mut path, &envelope).await {
                messenger.fail(error);
            }
        });
    }
}
