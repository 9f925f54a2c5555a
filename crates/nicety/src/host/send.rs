//! Sending messages from rank to rank.

use super::{Buffer, Host};
use crate::Error;
use nicety_nic::Outgoing;
use nicety_nic::spin::CallError;

impl Host {
    /// Sends a buffer to a rank's `recv` of the same tag, its own included. Returns when the buffer may be used again.
    ///
    /// On a Portals card: a put, and the wait for its SEND event; the receive has to be posted when the message comes:
    /// [`Host::post_recv`]. On a flow processor: a channel to the processes that forward messages, which have it wait until
    /// its receive is there, or to itself by the library alone. On a card with virtual network interfaces: a Send command, and the wait for its doorbell; a
    /// message without a receive waits in the card's memory.
    ///
    /// # Errors
    /// When there is no such rank.
    pub async fn send(&self, buffer: &Buffer, to: u32, tag: u32) -> Result<(), Error> {
        self.check_rank(to)?;
        let message = Outgoing { to, tag, address: buffer.address(), bytes: buffer.len() };
        Ok(self.inner.card.clone().send(self.caller(), message).await?)
    }

    /// Refuses a rank that there is not.
    pub(super) fn check_rank(&self, rank: u32) -> Result<(), Error> {
        let ranks = self.inner.ranks;
        if rank < ranks { Ok(()) } else { Err(CallError::Rank { rank, ranks }.into()) }
    }
}
