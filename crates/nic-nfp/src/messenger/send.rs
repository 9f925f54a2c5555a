//! A send: its envelope, then its bytes.

use crate::card::ChannelError;
use crate::messenger::Messenger;
use crate::messenger::envelope::{Envelope, INLINE, Kind, NO_LANE};
use crate::messenger::error::MessageError;
use crate::messenger::lanes::{OVER, chunks};
use crate::messenger::mail::WINDOW;
use crate::messenger::progress::Sending;
use crate::stages;
use nicety_channels::Failure;
use nicety_kernel::{Guard, Permit, describe};
use nicety_types::{NodeId, Path, Stage, Starter};
use std::rc::Rc;

/// A message in the transmit path.
struct Leaving {
    envelope: Envelope,
    address: u64,
    /// Its credit, and its turn at the card.
    window: Permit,
    turn: Guard,
}

impl Messenger {
    /// Sends `bytes` bytes of host memory from `address` on to a rank. Returns when they may be reused: at once for an
    /// eager message, otherwise when the receiving card or this host's own receive has them.
    ///
    /// # Errors
    /// When there is no such rank, the memory is not the host's, or a channel failed. Also when the receiver's buffer
    /// is too small for a message that is not eager.
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
        let room = self.window(to, self.pairs.get().of(tag));
        let what =
            move || format!("rank {to} to receive one of the {WINDOW} messages that wait for it there");
        let window = describe(what, room.acquire(1)).await;
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

    /// Completes a send: its envelope, then its bytes.
    async fn see_off(
        &self,
        sending: &Sending,
        leaving: Leaving,
        path: &mut Path,
    ) -> Result<(), MessageError> {
        let Leaving { envelope, address, window, turn } = leaving;
        let Envelope { rank, id, bytes, kind, tag, .. } = envelope;
        let pair = self.pairs.get().of(tag);
        self.mail.borrow_mut().sends(rank, pair);
        if kind == Kind::Rts {
            self.mail.borrow_mut().await_answer(id, rank);
        }
        if let Err(error) = self.hand_out_in(turn, path, &envelope).await {
            // It has not left. Dropping its permit returns the credit.
            let mut mail = self.mail.borrow_mut();
            mail.unsends(rank, pair);
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

    /// Hands an envelope to the card. Only for tasks that complete: a dropped call keeps its channel.
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

/// Whether the process at the other end of a channel knows of a call's failure, and has continued.
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
