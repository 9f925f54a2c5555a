//! Receiving messages: `recv`, and its two halves, which allow a receive to be posted before its message comes.

use super::{Buffer, Host};
use crate::Error;
use nicety_nic::parts::Early;
use nicety_nic::{Arrival, Pairs, PostedReceive, Tags, check_tag};
use nicety_types::Time;

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The rank that sent it.
    pub source: u32,
    /// Its tag.
    pub tag: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// A posted receive, for [`Host::received`] of the same host. It stays posted until a message comes, even if no call
/// waits for it. A clone is the same receive, so that one task can give up what another waits for.
#[derive(Clone)]
#[must_use = "a message comes into its buffer; Host::received says when"]
pub struct PendingRecv(pub(super) PostedReceive);

/// The error of a message longer than its receive.
fn cut(bytes: u64, rank: u32, room: u64) -> Error {
    Error::Program(format!(
        "a message of {bytes} bytes from rank {rank} came into a recv of {room} bytes: {} bytes were cut; give recv a \
         buffer of {bytes} bytes",
        bytes - room
    ))
}

impl Host {
    /// Has the library match the messages of `send` and `recv` where the card does by itself, as one with virtual network interfaces, which then
    /// may have any number of receives, probe and cancel; nothing on other cards. A library with room for so many messages of a host that no
    /// receive has taken has as much for each pair of their processes. For all hosts with the same pairs, before the first message; it takes
    /// no virtual time.
    ///
    /// # Errors
    /// When a limit of the card is reached.
    pub fn match_in_library(&self, pairs: Pairs) -> Result<(), Error> {
        Ok(self.inner.card.match_in_library(pairs)?)
    }

    /// Receives one message into a buffer: from one rank or any, with one tag or any.
    ///
    /// A message that came before waits for it. This is [`Host::post_recv`] and [`Host::received`] in one.
    ///
    /// # Errors
    /// When there is no such rank, the tag is too large, the card has no more match entries, or the message is longer than the
    /// buffer.
    pub async fn recv(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tag: Option<u64>,
    ) -> Result<Received, Error> {
        self.recv_matching(buffer, source, Tags::exactly_or_any(tag)).await
    }

    /// As [`Host::recv`], with one of several tags.
    ///
    /// # Errors
    /// As [`Host::recv`].
    pub async fn recv_matching(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tags: Tags,
    ) -> Result<Received, Error> {
        let start = self.now();
        let pending = self.post_recv_matching(buffer, source, tags).await?;
        self.received_since(pending, start).await
    }

    /// Posts a receive without waiting for its message. The receive takes effect one crossing of the bus and the
    /// card's work on a command later, and matches messages from then on. Of several, the first that matches takes a
    /// message.
    ///
    /// A program that must be sure that its receive comes first posts it, and only then notifies its sender, by a
    /// [`Host::barrier`] or a message. On a Portals card it is a use-once match entry; on a flow processor a receive
    /// of the library, which takes no time to post.
    ///
    /// # Errors
    /// When there is no such rank, or the tag is too large. [`Host::received`] reports when the card has no free match entry.
    pub async fn post_recv(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tag: Option<u64>,
    ) -> Result<PendingRecv, Error> {
        self.post_recv_matching(buffer, source, Tags::exactly_or_any(tag)).await
    }

    /// As [`Host::post_recv`], with one of several tags: those that have the bits of one, but for bits that are ignored.
    ///
    /// # Errors
    /// As [`Host::post_recv`].
    pub async fn post_recv_matching(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tags: Tags,
    ) -> Result<PendingRecv, Error> {
        let wanted = self.wanted(buffer, source, tags)?;
        Ok(PendingRecv(self.inner.card.clone().post_receive(self.caller(), wanted).await?))
    }

    /// The oldest early message that a receive of this source and these tags would take, if there is one. It waits for its receive
    /// as before.
    ///
    /// Only messages that have come are seen: one that is on its way is not. On a Portals card it is a search of the unexpected
    /// headers (`PtlMESearch`), which the card answers; on other cards the library looks at its own list, for `library.call` on a
    /// flow processor, for the host's `notice` on a card with RDMA, and for `messages.match` on a card for frames, which reads its
    /// connections first.
    ///
    /// # Errors
    /// As [`Host::post_recv`]; on a card with virtual network interfaces, which keeps early messages to itself, unless
    /// [the library has them](Host::match_in_library).
    pub async fn probe(&self, source: Option<u32>, tags: Tags) -> Result<Option<Received>, Error> {
        source.map_or(Ok(()), |rank| self.check_rank(rank))?;
        check_tag(tags.bits)?;
        let found = self.inner.card.clone().probe(self.caller(), source, tags).await?;
        Ok(found.map(|Arrival { source, tag, bytes, .. }| Received { source, tag, length: bytes }))
    }

    /// How often something has come since the start that [`Host::probe`] may find, or that may have it fail.
    pub fn early_changes(&self) -> u64 {
        self.inner.card.early().map_or(0, Early::changes)
    }

    /// Waits until something has come that [`Host::probe`] may find, beyond what has been seen. On a card that does not tell, for ever.
    pub async fn early_beyond(&self, seen: u64) {
        match self.inner.card.early() {
            Some(early) => early.beyond(seen).await,
            None => std::future::pending().await,
        }
    }

    /// Gives up a posted receive, which then takes no message. Returns it if a message has come for it or is coming: then it is
    /// to be received. It costs the same as [`Host::probe`]; on a Portals card it unlinks the match entry (`PtlMEUnlink`).
    ///
    /// # Errors
    /// On a card with virtual network interfaces, which keeps the receives that it has, unless [the library
    /// has them](Host::match_in_library).
    pub async fn cancel(&self, pending: PendingRecv) -> Result<Option<PendingRecv>, Error> {
        Ok(self.inner.card.clone().cancel(self.caller(), pending.0).await?.map(PendingRecv))
    }

    /// Waits for the message of a posted receive; on a Portals card, for its PUT event.
    ///
    /// # Errors
    /// When the card had no free match entry, or the message is longer than the buffer.
    pub async fn received(&self, pending: PendingRecv) -> Result<Received, Error> {
        let start = self.now();
        self.received_since(pending, start).await
    }

    /// As [`Host::received`], but that a message that is longer than the buffer is cut and no error: its length is as sent.
    ///
    /// # Errors
    /// When the card had no free match entry.
    pub async fn arrived(&self, pending: PendingRecv) -> Result<Received, Error> {
        let start = self.now();
        let arrival = self.inner.card.clone().received(self.caller(), pending.0).await?;
        self.called("recv", start);
        let Arrival { source, tag, bytes, .. } = arrival;
        Ok(Received { source, tag, length: bytes })
    }

    /// As [`Host::received`], as part of a call that began at `start`.
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
