//! The receiver's side of `recv`: delivery of messages to receives, and return of credits.

use crate::messages::{BYTES, CREDIT, CTS, LongTransfer, Messenger, Receiving, data};
use nicety_nic_core::{Arrival, CardError};
use nicety_types::{Path, Stage};
use std::rc::Rc;

impl Messenger {
    /// Delivers an eager message to its receive. Even if the copy fails, the receive has taken the message.
    pub(super) async fn bring_eager(
        self: &Rc<Self>,
        receiving: &Rc<Receiving>,
        arrival: Arrival,
        buffer: u64,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let brought = self.copy_out(receiving, arrival, buffer, path).await;
        receiving.finish(brought.map(|()| arrival), path.clone());
        if arrival.bytes > 0 {
            self.process.post_streaming(buffer, self.card.spec.messages.eager, path).await?;
        }
        self.taken(arrival, path).await
    }

    /// Copies a message out of its streaming buffer.
    async fn copy_out(
        &self,
        receiving: &Rc<Receiving>,
        arrival: Arrival,
        buffer: u64,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let (address, length) = (receiving.wanted.address, arrival.bytes.min(arrival.room));
        if length > 0 && self.card.is_gpu(address) {
            // No CPU writes to the graphics processor's memory. The card copies from one memory of the host to the
            // other.
            let (own, id, lease) =
                (self.card.node.0, self.number(), self.leases.lease(address, length, path).await?);
            let coming = LongTransfer { receiving: receiving.clone(), arrival, length, _lease: Some(lease) };
            self.coming.borrow_mut().insert((own, id), coming);
            self.put(own, buffer, address, length, data(BYTES, id, 0), path).await?;
            receiving.done.wait_until(|| receiving.has_ended()).await;
            path.advance(Stage::COPY, self.card.sim.now());
        } else if length > 0 {
            self.copy(buffer, address, length, path).await?;
        }
        Ok(())
    }

    /// Registers the buffer of a receive, and requests the message's bytes by a CTS. If the registration fails,
    /// requests 0 bytes, so that the sender continues.
    pub(super) async fn bring_long(
        &self,
        receiving: &Rc<Receiving>,
        arrival: Arrival,
        id: u32,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let address = receiving.wanted.address;
        let (mut length, mut lease) = (arrival.bytes.min(arrival.room), None);
        if length > 0 {
            match self.leases.lease(address, length, path).await {
                Ok(registered) => lease = Some(registered),
                Err(error) => {
                    receiving.finish(Err(error.into()), path.clone());
                    length = 0;
                }
            }
        }
        let coming = LongTransfer { receiving: receiving.clone(), arrival, length, _lease: lease };
        self.coming.borrow_mut().insert((arrival.source, id), coming);
        self.put(arrival.source, 0, address, 0, data(CTS, id, length as u32), path).await?;
        self.taken(arrival, path).await
    }

    /// Records that a receive has taken a message. Returns credits to the sender if enough credits have gathered.
    async fn taken(&self, arrival: Arrival, path: &mut Path) -> Result<(), CardError> {
        let peer = self.windows.of_tag(arrival.source, arrival.tag);
        if let Some(credits) = peer.take(self.windows.size()) {
            self.put(peer.rank, 0, 0, 0, data(CREDIT, peer.pair, credits as u32), path).await?;
        }
        Ok(())
    }
}
