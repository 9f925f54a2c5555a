//! Messages of a host to itself: its library brings them from thread to thread, and the card has no part in them.
//!
//! Where a receive is there, the sender copies the message into its buffer. Where none is, a short message is copied into its
//! envelope, and out of it by whoever receives it; for a longer one the sender sleeps until its receiver has copied it. So no
//! memory is needed that has no bound, and a program that waits for itself is a deadlock, as with any other host.
//!
//! Each end's call of the library takes `library.call`, each copy what it takes a CPU of the host, and a thread that slept while
//! the other one copied is woken by the kernel.

use super::envelope::{Envelope, Kind};
use super::receive::Receive;
use super::{Arrival, MessageError, Messenger, Sending, message_of};
use nicety_kernel::{Permit, describe};
use nicety_types::{Buffer, Path, Payload, Stage};
use std::rc::Rc;

/// A message to this host itself.
pub(super) struct Here {
    /// Where its bytes are in host memory; none where they are inside its envelope.
    from: Option<u64>,
    /// Its receive was there before it: the sender copies.
    met: bool,
    sending: Rc<Sending>,
}

impl Messenger {
    /// Sends to this host itself, with a place in its own window.
    pub(super) async fn send_here(
        &self,
        path: &mut Path,
        mut envelope: Envelope,
        address: u64,
        window: Permit,
    ) -> Result<(), MessageError> {
        let card = self.device.card();
        let (memory, cpus) = (card.memory(), card.kernel().cpus());
        let (bytes, tag, rank) = (u64::from(envelope.bytes), envelope.tag, self.own);
        cpus.spend(card.spec().channels.library, Stage::Library, path).await;
        let mut from = Some(address);
        if envelope.kind == Kind::Whole && !self.mail.borrow().awaits(&envelope) {
            cpus.copy(memory, Some(address), None, bytes, Stage::Copy, path).await?;
            if let Ok(inside) = memory.peek(address, bytes)?.into_buffer() {
                envelope.inside[..inside.len()].copy_from_slice(&inside);
            }
            from = None;
        }
        // From here on the receiver gives it back.
        window.forget();
        let sending = Rc::new(Sending::default());
        let met = self.mail.borrow_mut().hand(envelope, *path);
        self.here.borrow_mut().insert(envelope.id, Here { from, met, sending: sending.clone() });
        card.recorder().message_matched(message_of(&envelope), self.sim.now(), "not received");
        self.changed.notify_all();
        if !met && envelope.kind == Kind::Whole {
            return Ok(());
        }
        let what = move || format!("rank {rank}, itself, to receive its message of {bytes} bytes, tag {tag}");
        describe(what, self.changed.wait_until(|| sending.done.borrow().is_some())).await;
        let (result, until) = sending.done.take().expect("just seen");
        path.follow(&until);
        if !met {
            card.kernel().wake(path).await;
        }
        result
    }

    /// A receive takes a message of this host itself.
    pub(super) async fn take_here(
        &self,
        receive: &Receive,
        envelope: &Envelope,
        path: &mut Path,
        (address, room): (u64, u64),
    ) -> Result<Arrival, MessageError> {
        let here = self.here.borrow_mut().remove(&envelope.id);
        let Here { from, met, sending } = here.expect("a message to this host is taken once");
        receive.filled_by_sender.set(met);
        if !met {
            let library = self.device.card().spec().channels.library;
            self.device.card().kernel().cpus().spend(library, Stage::Library, path).await;
        }
        let result = self.copy_here(envelope, from, path, (address, room)).await;
        let (rank, bytes) = (self.own, u64::from(envelope.bytes));
        let told = match (&result, envelope.kind) {
            (Err(_), Kind::Asking) => Err(MessageError::Refused { rank, bytes }),
            _ => Ok(()),
        };
        sending.done.replace(Some((told, *path)));
        self.changed.notify_all();
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
            return Err(MessageError::NoRoom { message: arrival, room });
        }
        let (memory, cpus) = (card.memory(), card.kernel().cpus());
        cpus.copy(memory, from, Some(address), arrival.bytes, Stage::Copy, path).await?;
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
