//! Receiving messages: `recv`, and in two halves, so that a receive can be there before its message comes.

use super::{Buffer, Host};
use crate::Error;
use nicety_nic::{Arrival, PostedReceive};
use nicety_types::Time;

/// What a receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The rank that sent it.
    pub source: u32,
    /// Its tag.
    pub tag: u32,
    /// Its length in bytes.
    pub length: u64,
}

/// A receive that has been posted, for [`Host::received`] of the same host. It stays there until a message comes, also where
/// nobody asks for it.
#[must_use = "a message comes into its buffer; Host::received says when"]
pub struct PendingRecv(pub(super) PostedReceive);

/// A message was longer than its receive.
fn cut(bytes: u64, rank: u32, room: u64) -> Error {
    Error::Program(format!(
        "a message of {bytes} bytes from rank {rank} came into a recv of {room} bytes: {} bytes were cut; give recv a \
         buffer of {bytes} bytes",
        bytes - room
    ))
}

impl Host {
    /// Receives one message into a buffer: from one rank or any, with one tag or any.
    ///
    /// On a Portals card, a message that comes before its receive is on the card is dropped and counted. Where that can
    /// happen, [`Host::post_recv`] goes first; this is that and [`Host::received`] in one. Elsewhere it waits.
    ///
    /// # Errors
    /// When there is no such rank, the card has no more match entries, or the message is longer than the buffer.
    pub async fn recv(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tag: Option<u32>,
    ) -> Result<Received, Error> {
        let start = self.now();
        let pending = self.post_recv(buffer, source, tag).await?;
        self.received_since(pending, start).await
    }

    /// Posts a receive, and does not wait for its message: what comes from then on, one crossing of the bus and the
    /// card's work on a command later, finds it. Of several, the first that fits takes a message.
    ///
    /// A program that has to be sure that a receive is there first posts it, and only then lets its sender know, by a
    /// [`Host::barrier`] or a message. On a Portals card: a use-once match entry. On a flow processor: a receive of the
    /// library's, which takes no time to post.
    ///
    /// # Errors
    /// When there is no such rank. That the card has no more match entries, [`Host::received`] tells.
    pub async fn post_recv(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tag: Option<u32>,
    ) -> Result<PendingRecv, Error> {
        let wanted = self.wanted(buffer, source, tag)?;
        Ok(PendingRecv(self.inner.card.clone().post_receive(self.caller(), wanted).await?))
    }

    /// Waits for the message of a receive that this host has posted: on a Portals card, for its PUT event.
    ///
    /// # Errors
    /// When the card had no more match entries, or the message is longer than the buffer.
    pub async fn received(&self, pending: PendingRecv) -> Result<Received, Error> {
        let start = self.now();
        self.received_since(pending, start).await
    }

    /// As [`Host::received`], by a call of the program's that began at `start`.
    async fn received_since(&self, pending: PendingRecv, start: Time) -> Result<Received, Error> {
        let arrival = self.inner.card.clone().received(self.caller(), pending.0).await?;
        self.called("recv", start);
        let Arrival { source, tag, bytes, room } = arrival;
        if bytes > room {
            return Err(cut(bytes, source, room));
        }
        Ok(Received { source, tag, length: bytes })
    }
}
