//! Sending messages between ranks.

use super::{Buffer, Host};
use crate::Error;
use nicety_nic_core::{CardError, Outgoing, Tags, Wanted, check_tag};

impl Host {
    /// Sends a buffer to the `recv` of a rank (possibly this one) with the same tag, of up to [`TAG_BITS`](crate::TAG_BITS) bits.
    /// Returns when the buffer may be used again.
    ///
    /// - On a Portals card: a put, and the wait for its SEND event. A message longer than `messages.eager` also waits for the
    ///   receiver's acknowledgement. If its receive is not posted yet, it waits until the receiver has fetched it.
    /// - On a flow processor: a channel to the forwarding processes, where the message waits for its receive. To itself, the
    ///   library alone.
    /// - On a card with virtual network interfaces: a Send command, and the wait for its doorbell. A message without a receive
    ///   waits in the card's memory.
    /// - On a card with RDMA: a send into a streaming buffer of the receiver's library. A message longer than `messages.eager`
    ///   waits for its receive, and is put there.
    ///
    /// # Errors
    /// When the rank does not exist, or the tag is too large.
    pub async fn send(&self, buffer: &Buffer, to: u32, tag: u64) -> Result<(), Error> {
        let message = self.outgoing(buffer, to, tag)?;
        Ok(self.inner.card.clone().send(self.caller(), message).await?)
    }

    /// Returns the message in the card's terms.
    ///
    /// # Errors
    /// When the rank does not exist, or the tag is too large.
    pub(super) fn outgoing(&self, buffer: &Buffer, to: u32, tag: u64) -> Result<Outgoing, Error> {
        self.check_rank(to)?;
        check_tag(tag)?;
        Ok(Outgoing { to, tag, address: buffer.address(), bytes: buffer.len() })
    }

    /// Returns the receive in the card's terms.
    ///
    /// # Errors
    /// When the rank does not exist, or a tag is too large.
    pub(super) fn wanted(&self, buffer: &Buffer, source: Option<u32>, tags: Tags) -> Result<Wanted, Error> {
        source.map_or(Ok(()), |rank| self.check_rank(rank))?;
        check_tag(tags.bits)?;
        Ok(Wanted { source, tags, address: buffer.address(), room: buffer.len() })
    }

    /// Checks that a rank exists.
    pub(super) fn check_rank(&self, rank: u32) -> Result<(), Error> {
        let ranks = self.inner.ranks;
        if rank < ranks { Ok(()) } else { Err(CardError::no_rank(rank, ranks).into()) }
    }
}
