//! The sender's side of `send`: eager messages by copies, and longer messages by RTS, CTS and a put.

use crate::messages::leases::Lease;
use crate::messages::{BYTES, COPIES, EAGER, Messenger, RTS, data};
use crate::stages;
use nicety_nic_core::{CardError, Outgoing};
use nicety_types::Path;

impl Messenger {
    pub(super) async fn send_eager(&self, message: Outgoing, path: &mut Path) -> Result<(), CardError> {
        let Outgoing { to, tag, address, bytes } = message;
        let mut local = 0;
        if bytes > 0 {
            self.card.dma.memory().check(address, bytes)?;
            let free = self.free_copies.acquire(1).await;
            path.advance(stages::WINDOW_QUEUED, self.card.sim.now());
            local = self.take_copy()?;
            free.forget();
            self.copy(address, local, bytes, path).await?;
        }
        self.put(to, local, 0, bytes, EAGER | tag, path).await
    }

    /// Sends the RTS of a long message. Returns the number of the message, and the lease of its memory.
    pub(super) async fn announce(
        &self,
        message: &Outgoing,
        path: &mut Path,
    ) -> Result<(u32, Lease), CardError> {
        let &Outgoing { to, tag, address, bytes } = message;
        let lease = self.leases.lease(address, bytes, path).await?;
        let id = self.number();
        self.announced.announce(id.into(), to, bytes);
        // The size fits into 32 bits, because the card accepts no longer message.
        let told = tag >> 32 << 32 | bytes;
        self.put(to, 0, told, 0, data(RTS, id, tag as u32), path).await?;
        Ok((id, lease))
    }

    /// Sends the bytes of a long message after the CTS of its receiver has arrived. Returns when the card has read the
    /// bytes.
    pub(super) async fn send_long(
        &self,
        message: Outgoing,
        (id, lease): (u32, Lease),
        path: &mut Path,
    ) -> Result<(), CardError> {
        let Outgoing { to, address, .. } = message;
        let ((remote, length), its) = self.library.answered(&self.announced, id.into()).await?;
        path.follow(&its);
        if length > 0 {
            self.put(to, address, remote, length.into(), data(BYTES, id, 0), path).await?;
        } else {
            self.put(to, 0, 0, 0, data(BYTES, id, 0), path).await?;
        }
        self.library.until(|| self.sent.borrow().contains_key(&id)).await?;
        path.follow(&self.sent.borrow_mut().remove(&id).expect("just seen"));
        self.announced.end(id.into());
        drop(lease);
        Ok(())
    }

    /// Takes a free buffer for a copy. The caller has a credit for the buffer.
    fn take_copy(&self) -> Result<u64, CardError> {
        let mut copies = self.copies.borrow_mut();
        if copies.is_none() {
            let eager = self.card.spec.messages.eager;
            let memory = self.card.dma.memory().allocate(COPIES * eager)?;
            self.process.set_up(memory.address(), memory.len())?;
            *copies = Some((0..COPIES).rev().map(|number| memory.address() + number * eager).collect());
        }
        Ok(copies.as_mut().and_then(Vec::pop).expect("as many as credits"))
    }
}
