//! Sends messages between ranks.

use super::{Buffer, Host};
use crate::Error;
use nicety_nic_core::{CardError, Outgoing, Tags, Wanted, check_tag};

impl Host {
    /// Sends a buffer to a rank, which may be this rank. A `recv` with the same tag receives it. A tag has at most
    /// [`TAG_BITS`](crate::TAG_BITS) bits. The call returns when the buffer may be used again.
    ///
    /// - On a Portals card, the call is a put and a wait for its SEND event. For a message longer than `messages.eager`, it also
    ///   waits for the receiver's acknowledgement. If no receive is posted yet, it waits until the receiver has fetched the
    ///   message.
    /// - On a flow processor, the message goes over a channel to the forwarding processes, where it waits for its receive. A
    ///   message to the same host stays in the library.
    /// - On a card with virtual network interfaces, the call is a Send command and a wait for its doorbell. A message without a
    ///   posted receive waits in the memory of the receiving card.
    /// - On a card with RDMA, the call is a send into a streaming buffer of the receiver's library. A message longer than
    ///   `messages.eager` waits for its receive, and is then put into the receive's buffer.
    ///
    /// # Errors
    /// When the rank does not exist, or the tag is too large.
    pub async fn send(&self, buffer: &Buffer, to: u32, tag: u64) -> Result<(), Error> {
        let message = self.outgoing(buffer, to, tag)?;
        Ok(self.inner.card.clone().send(self.caller(), message).await?)
    }

    /// Returns the message in the form that the card's calls take.
    ///
    /// # Errors
    /// When the rank does not exist, or the tag is too large.
    pub(super) fn outgoing(&self, buffer: &Buffer, to: u32, tag: u64) -> Result<Outgoing, Error> {
        self.check_rank(to)?;
        check_tag(tag)?;
        Ok(Outgoing { to, tag, address: buffer.address(), bytes: buffer.len() })
    }

    /// Returns the receive in the form that the card's calls take.
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
