//! A send: it sends the envelope, and then the bytes.

use crate::card::ChannelError;
use crate::messenger::Messenger;
use crate::messenger::envelope::{Envelope, INLINE, Kind, NO_LANE};
use crate::messenger::error::MessageError;
use crate::messenger::lanes::{OVER, chunks};
use crate::messenger::mail::WINDOW;
use crate::stages;
use nicety_channels::Failure;
use nicety_kernel::{Guard, Permit, describe};
use nicety_nic_core::library::{Peer, count, to_its_end};
use nicety_types::{NodeId, Path, Stage, Starter};
use std::cell::Cell;
use std::rc::Rc;

/// A message that is being sent.
struct Leaving {
    envelope: Envelope,
    address: u64,
    /// The receiver, the message's credit of the receiver's window, and the message's turn to pass an envelope to the
    /// card.
    peer: Rc<Peer>,
    window: Permit,
    turn: Guard,
}

impl Messenger {
    /// Sends `bytes` bytes of host memory from `address` on to a rank. Returns when the bytes may be reused. An eager
    /// send returns when the card has the envelope. The send of a longer message returns when the card, or this host's
    /// own receive, has the bytes.
    ///
    /// # Errors
    /// When the rank does not exist, the bytes are not in host memory, or a channel failed. Also when the receiver's
    /// buffer is too small for a message that is not eager.
    pub async fn send(
        self: &Rc<Messenger>,
        path: &mut Path,
        to: u32,
        tag: u64,
        address: u64,
        bytes: u64,
    ) -> Result<(), MessageError> {
        let card = self.device.card();
        let (ranks, limit) = (self.ranks, card.spec().channels.message);
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
        let peer = self.mail.windows.of_tag(to, tag);
        let what =
            move || format!("rank {to} to receive one of the {WINDOW} messages that wait for it there");
        let window = describe(what, peer.credits.acquire(1)).await;
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
        // Whether the RTS has been sent and no CTS has arrived.
        let asked = Rc::new(Cell::new(false));
        let (messenger, theirs, mut its) = (self.clone(), asked.clone(), path.clone());
        let work = async move {
            let leaving = Leaving { envelope, address, peer, window, turn };
            let result = messenger.see_off(&theirs, leaving, &mut its).await;
            ((result, its), ())
        };
        let what = || match asked.get() {
            true => format!("rank {to} to receive its message of {bytes} bytes, tag {tag}"),
            false => format!("the card to send its message of {bytes} bytes to rank {to}, tag {tag}"),
        };
        let (result, until) = describe(what, to_its_end(&self.sim, work)).await;
        *path = until;
        result
    }

    /// Sends the envelope of a message, and then its bytes.
    async fn see_off(
        &self,
        asked: &Cell<bool>,
        leaving: Leaving,
        path: &mut Path,
    ) -> Result<(), MessageError> {
        let Leaving { envelope, address, peer, window, turn } = leaving;
        let Envelope { rank, id, bytes, kind, .. } = envelope;
        let announced = &self.mail.announced;
        count(&peer.sent);
        if kind == Kind::Rts {
            announced.announce(id.into(), rank, bytes.into());
        }
        if let Err(error) = self.hand_out_in(turn, path, &envelope).await {
            // The envelope was not sent. Dropping the permit returns the credit.
            peer.sent.update(|sent| sent - 1);
            announced.end(id.into());
            return Err(error);
        }
        // From here on, the receiver returns the credit.
        window.forget();
        if kind == Kind::Eager {
            return Ok(());
        }
        asked.set(true);
        self.library.changed.wait_until(|| announced.is_answered(id.into())).await;
        asked.set(false);
        let (lane, since) = announced.take(id.into()).expect("just seen");
        announced.end(id.into());
        path.follow(&since);
        match lane {
            NO_LANE => Err(MessageError::Refused { rank, bytes: bytes.into() }),
            lane => self.send_bytes(path, rank, lane, address, bytes).await,
        }
    }

    /// Passes a message's bytes to the card. The card sends them to the lane `their_lane` of the receiving card.
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
                    // The process still waits for the chunk. A message of another kind ends this wait.
                    let _ = self.device.send(path, channel, &[0; OVER as usize], None).await;
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Passes an envelope to the card. Only tasks that run to completion may call this method, because a dropped call
    /// still occupies its channel.
    pub(super) async fn hand_out(&self, path: &mut Path, envelope: &Envelope) -> Result<(), MessageError> {
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
}

/// Whether the process at the other end of the channel also gets this failure, and continues.
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
