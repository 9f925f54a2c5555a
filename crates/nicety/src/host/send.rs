//! Sending messages from rank to rank, and what cards are told of them.

use super::{Buffer, Host};
use crate::Error;
use nicety_nic::{CardError, Outgoing, Wanted};

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
        let message = self.outgoing(buffer, to, tag)?;
        Ok(self.inner.card.clone().send(self.caller(), message).await?)
    }

    /// A message to be sent, as cards take it.
    ///
    /// # Errors
    /// When there is no such rank.
    pub(super) fn outgoing(&self, buffer: &Buffer, to: u32, tag: u32) -> Result<Outgoing, Error> {
        self.check_rank(to)?;
        Ok(Outgoing { to, tag, address: buffer.address(), bytes: buffer.len() })
    }

    /// A receive to be posted, as cards take it.
    ///
    /// # Errors
    /// When there is no such rank.
    pub(super) fn wanted(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tag: Option<u32>,
    ) -> Result<Wanted, Error> {
        source.map_or(Ok(()), |rank| self.check_rank(rank))?;
        Ok(Wanted { source, tag, address: buffer.address(), room: buffer.len() })
    }

    /// Refuses a rank that there is not.
    fn check_rank(&self, rank: u32) -> Result<(), Error> {
        let ranks = self.inner.ranks;
        if rank < ranks { Ok(()) } else { Err(CardError::no_rank(rank, ranks).into()) }
    }
}
