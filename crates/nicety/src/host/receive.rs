//! Receives of messages: `recv`, and its two parts. The first part posts a receive before the message arrives, and the
//! second part waits for the message.

use super::{Buffer, Host};
use crate::Error;
use nicety_nic_core::parts::Early;
use nicety_nic_core::{Arrival, Pairs, PostedReceive, Tags, check_tag};
use nicety_types::Time;

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The sending rank.
    pub source: u32,
    /// The message's tag.
    pub tag: u64,
    /// The message's length in bytes.
    pub length: u64,
}

/// A posted receive, for [`Host::received`] of the same host. It stays posted until a message arrives, even if no call waits for
/// it. A clone is the same receive, so one task can cancel the receive while another waits for it.
#[derive(Clone)]
#[must_use = "a message comes into its buffer; Host::received says when"]
pub struct PendingRecv(pub(super) PostedReceive);

/// Returns the error for a message that is longer than the buffer of its receive.
fn cut(bytes: u64, rank: u32, room: u64) -> Error {
    Error::Program(format!(
        "a message of {bytes} bytes from rank {rank} arrived at a recv of {room} bytes: {} bytes were \
         truncated; give recv a buffer of {bytes} bytes",
        bytes - room
    ))
}

impl Host {
    /// Makes the library instead of the card match the messages of `send` and `recv`. This has an effect only on cards
    /// that match messages themselves, such as those with virtual network interfaces. The host can then post any number
    /// of receives, probe and cancel.
    ///
    /// If the library's room for unexpected messages of another host is limited, each pair of processes in `pairs` has
    /// this room. Call this function on all hosts with the same pairs, before the first message. It takes no virtual
    /// time.
    ///
    /// # Errors
    /// When the card reaches a limit.
    pub fn match_in_library(&self, pairs: Pairs) -> Result<(), Error> {
        Ok(self.inner.card.match_in_library(pairs)?)
    }

    /// Receives one message into a buffer. `source` and `tag` select the message; `None` accepts any. The message may have
    /// arrived before the call. The call combines [`Host::post_recv`] and [`Host::received`].
    ///
    /// # Errors
    /// When the rank does not exist, the tag is too large, or the card has no free match entry. Also when the message
    /// is longer than the buffer.
    pub async fn recv(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tag: Option<u64>,
    ) -> Result<Received, Error> {
        self.recv_matching(buffer, source, Tags::exactly_or_any(tag)).await
    }

    /// Does the same as [`Host::recv`], but accepts several tags.
    ///
    /// # Errors
    /// Those of [`Host::recv`].
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

    /// Posts a receive, and does not wait for its message. The receive takes effect when the command has crossed the
    /// bus and the card has executed it. From then on it matches messages. If several receives match a message, the
    /// first posted receive gets it.
    ///
    /// If the receive must be posted before the message arrives, post it first, and then notify the sender by a [`Host::barrier`]
    /// or a message. On a Portals card a receive is a use-once match entry. On a flow processor it is a receive of the library,
    /// which takes no time to post.
    ///
    /// # Errors
    /// When the rank does not exist, or the tag is too large. [`Host::received`] reports a card without a free match entry.
    pub async fn post_recv(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tag: Option<u64>,
    ) -> Result<PendingRecv, Error> {
        self.post_recv_matching(buffer, source, Tags::exactly_or_any(tag)).await
    }

    /// Does the same as [`Host::post_recv`], but accepts several tags. A tag is accepted if it equals that of `tags` in
    /// all bits that are not ignored.
    ///
    /// # Errors
    /// Those of [`Host::post_recv`].
    pub async fn post_recv_matching(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tags: Tags,
    ) -> Result<PendingRecv, Error> {
        let wanted = self.wanted(buffer, source, tags)?;
        Ok(PendingRecv(self.inner.card.clone().post_receive(self.caller(), wanted).await?))
    }

    /// Returns the oldest unexpected message that a receive of this source and these tags would take, if any. The message stays
    /// and waits for its receive.
    ///
    /// The probe sees only messages that have arrived, and no messages in flight. On a Portals card it is a search of the
    /// unexpected headers (`PtlMESearch`), which the card answers. On other cards the library searches its own list. This costs
    /// `library.call` on a flow processor, and the host's `notice` on a card with RDMA. On an Ethernet card, the library first
    /// reads its TCP connections, and then spends `messages.match`.
    ///
    /// # Errors
    /// Those of [`Host::post_recv`]. Also on a card with virtual network interfaces, because the card does not expose
    /// its unexpected messages. On such a card, the library must [match messages](Host::match_in_library).
    pub async fn probe(&self, source: Option<u32>, tags: Tags) -> Result<Option<Received>, Error> {
        source.map_or(Ok(()), |rank| self.check_rank(rank))?;
        check_tag(tags.bits)?;
        let found = self.inner.card.clone().probe(self.caller(), source, tags).await?;
        Ok(found.map(|Arrival { source, tag, bytes, .. }| Received { source, tag, length: bytes }))
    }

    /// Returns the number of new messages and errors so far that may change the result of [`Host::probe`].
    pub fn early_changes(&self) -> u64 {
        self.inner.card.early().map_or(0, Early::changes)
    }

    /// Waits until [`Host::early_changes`] is above `seen`. If the card does not report such changes, waits for ever.
    pub async fn early_beyond(&self, seen: u64) {
        match self.inner.card.early() {
            Some(early) => early.beyond(seen).await,
            None => std::future::pending().await,
        }
    }

    /// Cancels a posted receive, which then takes no message. If its message has already arrived or is arriving, returns the
    /// receive, and the program must wait for it. The call costs the same as [`Host::probe`]. On a Portals card it unlinks the
    /// match entry (`PtlMEUnlink`).
    ///
    /// # Errors
    /// On a card with virtual network interfaces, because the card does not return posted receives. On such a card, the
    /// library must [match messages](Host::match_in_library).
    pub async fn cancel(&self, pending: PendingRecv) -> Result<Option<PendingRecv>, Error> {
        Ok(self.inner.card.clone().cancel(self.caller(), pending.0).await?.map(PendingRecv))
    }

    /// Waits for the message of a posted receive. On a Portals card this is a wait for the receive's PUT event.
    ///
    /// # Errors
    /// When the card had no free match entry, or the message is longer than the buffer.
    pub async fn received(&self, pending: PendingRecv) -> Result<Received, Error> {
        let start = self.now();
        self.received_since(pending, start).await
    }

    /// Does the same as [`Host::received`], but truncates a message that is longer than the buffer, without an error.
    /// The returned length is that of the whole message.
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

    /// Does the same as [`Host::received`], for a call that began at `start` with the post of the receive.
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
