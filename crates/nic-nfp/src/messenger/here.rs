//! Messages of a host to itself. The host's library copies them from thread to thread, without the card.
//!
//! If the receive is posted, the sender copies the message into the receive's buffer. If not, the sender copies a short
//! message into its envelope, and the receiver copies it out of the envelope. The sender of a longer message sleeps
//! until the receiver has copied the message. So the memory for waiting messages is limited. A program that sends such
//! a message before it posts the receive deadlocks, as with any other host.
//!
//! The library call of each end takes the spec's `library.call`, and each copy takes the time of a copy by a CPU. If a
//! thread slept during the copy, the kernel wakes it.

use crate::messenger::Messenger;
use crate::messenger::envelope::{Envelope, Kind};
use crate::messenger::error::{Arrival, MessageError};
use crate::messenger::progress::{Receiving, Sent};
use nicety_kernel::{Permit, describe};
use nicety_nic_core::library::Transport;
use nicety_types::{Buffer, Path, Payload, Stage};
use std::rc::Rc;

/// A message to this host.
pub(super) struct OwnMessage {
    /// Address of the message's bytes in host memory. `None` if they are in the envelope.
    from: Option<u64>,
    /// Whether the receive was posted before the send. If so, the sender copies the message.
    met: bool,
    sent: Rc<Sent>,
}

impl Messenger {
    /// Sends a message to this host. `window` is the message's credit of the host's window to itself.
    pub(super) async fn send_here(
        self: &Rc<Self>,
        path: &mut Path,
        mut envelope: Envelope,
        address: u64,
        window: Permit,
    ) -> Result<(), MessageError> {
        let card = self.device.card();
        let (memory, cpus) = (card.memory(), card.kernel().cpus());
        let (bytes, tag, rank) = (u64::from(envelope.bytes), envelope.tag, self.own);
        let turn = self.turn_here.acquire().await;
        path.advance(Stage::SEND_QUEUED, self.sim.now());
        cpus.spend(card.spec().channels.library, Stage::LIBRARY, path).await;
        let mut from = Some(address);
        if envelope.kind == Kind::Eager && !self.library.awaits(rank, tag) {
            cpus.copy(memory, Some(address), None, bytes, Stage::COPY, path).await?;
            if let Ok(inside) = memory.peek(address, bytes)?.into_buffer() {
                envelope.inside[..inside.len()].copy_from_slice(&inside);
            }
            from = None;
        }
        // From here on, the receiver returns the credit.
        window.forget();
        let sent = Rc::new(Sent::default());
        let met = self.arrive(envelope.into_message(path.clone()), path.clone());
        drop(turn);
        self.here.borrow_mut().insert(envelope.id, OwnMessage { from, met, sent: sent.clone() });
        card.recorder().message_matched(envelope.message(), self.sim.now(), "not received");
        self.library.changed.notify_all();
        if met {
            self.library.early().note();
        }
        if !met && envelope.kind == Kind::Eager {
            return Ok(());
        }
        let what = move || format!("rank {rank}, itself, to receive its message of {bytes} bytes, tag {tag}");
        describe(what, self.library.changed.wait_until(|| sent.borrow().is_some())).await;
        let (result, until) = sent.take().expect("just seen");
        path.follow(&until);
        if !met {
            card.kernel().wake(path).await;
        }
        result
    }

    /// Receives a message of this host to itself.
    pub(super) async fn take_here(
        &self,
        receive: &Receiving,
        envelope: &Envelope,
        path: &mut Path,
        (address, room): (u64, u64),
    ) -> Result<Arrival, MessageError> {
        let here = self.here.borrow_mut().remove(&envelope.id);
        let OwnMessage { from, met, sent } = here.expect("a message to this host is taken once");
        receive.progress.filled_by_sender.set(met);
        if !met {
            let library = self.device.card().spec().channels.library;
            self.device.card().kernel().cpus().spend(library, Stage::LIBRARY, path).await;
        }
        let result = self.copy_here(envelope, from, path, (address, room)).await;
        let (rank, bytes) = (self.own, u64::from(envelope.bytes));
        let told = match (&result, envelope.kind) {
            (Err(_), Kind::Rts) => Err(MessageError::Refused { rank, bytes }),
            _ => Ok(()),
        };
        sent.replace(Some((told, path.clone())));
        self.library.changed.notify_all();
        result
    }

    async fn copy_here(
        &self,
        envelope: &Envelope,
        from: Option<u64>,
        path: &mut Path,
        (address, room): (u64, u64),
    ) -> Result<Arrival, MessageError> {
        let (arrival, card) = (envelope.arrival(), self.device.card());
        if arrival.bytes > room {
            if from.is_none() {
                card.memory().write(address, &envelope.inside[..room as usize])?;
            }
            return Err(MessageError::NoRoom { message: arrival, room });
        }
        let (memory, cpus) = (card.memory(), card.kernel().cpus());
        cpus.copy(memory, from, Some(address), arrival.bytes, Stage::COPY, path).await?;
        match from {
            Some(from) => memory.poke(address, &memory.peek(from, arrival.bytes)?)?,
            None => {
                let inside = &envelope.inside[..arrival.bytes as usize];
                let bytes = Buffer::filled_by(inside.len(), |into| into.copy_from_slice(inside));
                memory.poke(address, &Payload::real(bytes))?;
            }
        }
        Ok(arrival)
    }
}
