//! Receiving messages: `recv`, and in two halves, so that a receive can be there before its message comes.

use super::{Buffer, Host, MESSAGES};
use crate::Error;
use crate::node::NodeCard;
use nicety_kernel::describe;
use nicety_nic::nfp::Posted;
use nicety_nic::qnix::{How, Operation};
use nicety_nic::spin::Appending;
use nicety_portals::{Event, EventKind, List, Me, MeOptions, Source};
use nicety_types::{NodeId, Time};

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
pub struct PendingRecv(Pending);

enum Pending {
    /// An entry on a Portals card.
    Entry(PendingEntry),
    /// A receive of the library's.
    Posted(Posted),
    /// A Receive command in an interface, and the bytes that there is room for.
    Command { operation: Operation, room: u64, source: Option<u32>, tag: Option<u32> },
}

/// What a receive waits for.
fn what(source: Option<u32>, tag: Option<u32>) -> String {
    let from = source.map_or("any rank".to_string(), |rank| format!("rank {rank}"));
    let tagged = tag.map_or("any tag".to_string(), |tag| format!("tag {tag}"));
    format!("a message from {from}, {tagged}")
}

struct PendingEntry {
    appending: Appending,
    /// The name of the receive, in its event.
    user_ptr: u64,
    source: Option<u32>,
    tag: Option<u32>,
}

impl PendingRecv {
    pub(super) fn command(
        operation: Operation,
        room: u64,
        source: Option<u32>,
        tag: Option<u32>,
    ) -> PendingRecv {
        PendingRecv(Pending::Command { operation, room, source, tag })
    }
}

impl PendingEntry {
    fn what(&self) -> String {
        what(self.source, self.tag)
    }
}

/// A message was longer than its receive.
pub(super) fn cut(bytes: u64, rank: u32, room: u64) -> Error {
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
        if self.qnix().is_ok() {
            return self.post_recv_by(buffer, source, tag, How::Auto).await;
        }
        source.map_or(Ok(()), |rank| self.check_rank(rank))?;
        if let NodeCard::Nfp(card) = &self.inner.card {
            let (address, room) = (buffer.address(), buffer.len());
            let posted = card.messenger(source)?.post(&self.path(), source, tag, address, room)?;
            return Ok(PendingRecv(Pending::Posted(posted)));
        }
        let user_ptr = self.messages()?.1.next_request();
        let me = Me {
            start: buffer.address(),
            length: buffer.len(),
            match_bits: tag.unwrap_or(0).into(),
            ignore_bits: if tag.is_some() { 0 } else { !0 },
            source: source.map_or(Source::Any, |rank| Source::Rank(NodeId(rank))),
            options: MeOptions::OP_PUT
                | MeOptions::USE_ONCE
                | MeOptions::EVENT_LINK_DISABLE
                | MeOptions::EVENT_UNLINK_DISABLE,
            user_ptr,
            ..Me::default()
        };
        let appending = self.me_append(MESSAGES, me, List::Priority).await?;
        Ok(PendingRecv(Pending::Entry(PendingEntry { appending, user_ptr, source, tag })))
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
        match pending.0 {
            Pending::Entry(entry) => self.received_at(entry, start).await,
            Pending::Posted(posted) => {
                let messenger = self.nfp()?.messenger(Some(self.rank()))?;
                let arrival = self.on_path(async |path| messenger.received(path, posted).await).await?;
                self.called("recv", start);
                Ok(Received { source: arrival.source, tag: arrival.tag, length: arrival.bytes })
            }
            Pending::Command { operation, room, source, tag } => {
                let received = self.received_by_interface(operation, room, start);
                describe(move || what(source, tag), received).await
            }
        }
    }

    async fn received_at(&self, pending: PendingEntry, start: Time) -> Result<Received, Error> {
        let wanted = |event: &Event| event.kind == EventKind::Put && event.user_ptr == pending.user_ptr;
        let (card, messages) = self.messages()?;
        let event = self
            .timed("wait for an event", async |path| {
                card.eq_wait_of(&self.inner.cpus, path, messages.events, &pending.appending, wanted, || {
                    pending.what()
                })
                .await
            })
            .await?;
        self.called("recv", start);
        if event.rlength > event.mlength {
            return Err(cut(event.rlength, event.initiator.0, event.mlength));
        }
        Ok(Received { source: event.initiator.0, tag: event.match_bits as u32, length: event.mlength })
    }
}
