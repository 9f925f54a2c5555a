//! A receive, from its post to the arrival of its bytes.

use crate::card::ChannelError;
use crate::messenger::Messenger;
use crate::messenger::envelope::{Envelope, Kind, NO_LANE};
use crate::messenger::error::{Arrival, MessageError};
use crate::messenger::lanes::{Lane, OVER, chunks};
use crate::messenger::progress::{Posted, Receiving};
use crate::stages;
use nicety_channels::Failure;
use nicety_nic_core::library::Transport;
use nicety_nic_core::{Tags, Wanted};
use nicety_types::Path;
use std::rc::Rc;

impl Messenger {
    /// Posts a receive without waiting for its message. The receive takes the first message from `source` with one of
    /// these tags, whether this message already waits or arrives later. The receive's buffer is `room` bytes of host
    /// memory from `address` on. `path` is the path of the program that posts the receive.
    ///
    /// # Errors
    /// When the rank does not exist, or the buffer is not in host memory.
    pub fn post(
        self: &Rc<Messenger>,
        path: &Path,
        source: Option<u32>,
        tags: Tags,
        address: u64,
        room: u64,
    ) -> Result<Posted, MessageError> {
        let wanted = Wanted { source, tags, address, room };
        self.check_wanted(&wanted)?;
        Ok(Posted(Transport::post(self, wanted, path)))
    }

    pub(super) fn check_wanted(self: &Rc<Messenger>, wanted: &Wanted) -> Result<(), MessageError> {
        self.device.card().memory().check(wanted.address, wanted.room)?;
        self.expect_from(wanted.source)
    }

    /// Starts the task that completes a receive.
    pub(super) fn complete(self: &Rc<Messenger>, receive: &Rc<Receiving>, path: &Path) {
        let (messenger, theirs, mut path) = (self.clone(), receive.clone(), path.clone());
        self.sim.spawn(async move {
            let Some((envelope, result)) = messenger.take(&theirs, &mut path).await else { return };
            theirs.progress.message.set(Some(envelope.message()));
            theirs.finish(result.map(|arrival| arrival.in_room(arrival.bytes)), path.clone());
            if envelope.kind == Kind::Eager {
                // The credit is returned after the sends of the program at this instant.
                messenger.give_back(&envelope, &path);
            }
        });
    }

    /// Waits until a posted receive is complete.
    ///
    /// # Errors
    /// When the message is longer than the buffer, the message's sender has failed, or a channel failed.
    pub async fn received(&self, path: &mut Path, posted: Posted) -> Result<Arrival, MessageError> {
        let receive = &posted.0;
        let slept = !receive.has_result();
        let result = self.ended(receive, path).await;
        if let Some(message) = receive.progress.message.take() {
            if slept && receive.progress.filled_by_sender.get() {
                self.device.card().kernel().wake(path).await;
            }
            self.device.card().recorder().message_noticed(message, self.sim.now());
        }
        result.map(|whole| Arrival { source: whole.source, tag: whole.tag, bytes: whole.bytes })
    }

    /// Checks the rank. Starts the forwarding processes if the receive accepts messages of other hosts.
    pub(super) fn expect_from(self: &Rc<Messenger>, source: Option<u32>) -> Result<(), MessageError> {
        let ranks = self.ranks;
        if let Some(rank) = source.filter(|&rank| rank >= ranks) {
            return Err(MessageError::Rank { rank, ranks });
        }
        if source != Some(self.own) {
            self.start()?;
        }
        Ok(())
    }

    /// Waits for the receive's envelope, and then receives the bytes. Returns the outcome, or `None` if the receive was
    /// withdrawn.
    async fn take(
        self: &Rc<Messenger>,
        receive: &Receiving,
        path: &mut Path,
    ) -> Option<(Envelope, Result<Arrival, MessageError>)> {
        let Wanted { address, room, .. } = receive.wanted;
        let progress = &receive.progress;
        let over = || progress.taken.borrow().is_some() || progress.withdrawn.get();
        self.library.changed.wait_until(over).await;
        let (envelope, since) = progress.taken.take()?;
        path.follow(&since);
        // The path of the message itself, which may differ from that of the receive.
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

    /// Keeps a lane occupied until the card has discarded the rest of the lane's message.
    async fn drain(self: Rc<Messenger>, lane: Lane, mut path: Path) {
        loop {
            match self.device.receive(&mut path, lane.channel(), OVER, None).await {
                // The process offered another chunk, which is discarded.
                Err(ChannelError::Failed(Failure::KindMismatch { .. })) => {}
                _ => return,
            }
        }
    }

    /// Returns the credit of an envelope to its sender. Credits are sent together when they are half of a window.
    fn give_back(self: &Rc<Messenger>, envelope: &Envelope, path: &Path) {
        let (rank, pair) = (envelope.rank, self.mail.windows.pairs().of(envelope.tag));
        if rank == self.own {
            return self.mail.windows.peer(rank, pair).credits.release(1);
        }
        let Some(id) = self.mail.took(rank, pair) else { return };
        let envelope = Envelope { id, lane: pair, ..Envelope::new(rank, Kind::Credit) };
        let (messenger, mut path) = (self.clone(), path.clone());
        self.sim.spawn(async move {
            if let Err(MessageError::Channel(error)) = messenger.hand_out(&mut path, &envelope).await {
                messenger.library.fail(error);
            }
        });
    }
}
