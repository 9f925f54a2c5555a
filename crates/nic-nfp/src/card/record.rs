//! Records the messages on channels: when they are posted, when they arrive, and the time of each stage.
//!
//! The record of a message to the card begins when the sending thread posts the first mailbox. It is complete when the
//! process that reads the message continues. The record of a message to the host begins when a manager collects the
//! message, but its time counts from the process's call. It is complete when the receiving thread returns from its
//! call. The acknowledgement to the sender is not part of a message's record.
//!
//! Messages between hosts are not recorded here, because the messenger already records them.

use crate::card::Card;
use crate::stages;
use nicety_channels::{
    Body, ContextId, Direction, Failure, Kind, MAILBOX_BYTES, Mailbox, Message, Reply, Status,
};
use nicety_types::{Level, MessageId, Path, Starter};

/// A message to the host that a manager collects.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    /// The context of the process that writes the message.
    pub(super) context: ContextId,
    /// The writer's path at the time of its call.
    pub(super) base: Path,
}

/// A message in a mailbox.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    message: MessageId,
    /// The message's path up to the arrival of its mailbox at the other end.
    come: Option<Path>,
}

impl Carried {
    pub(super) const fn new(message: MessageId) -> Carried {
        Carried { message, come: None }
    }
}

/// A message that a thread of the host receives.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    message: MessageId,
    /// If the message waited for the receiving thread: the paths of the message and of the thread, both up to the
    /// thread's call.
    waited: Option<(Path, Path)>,
}

impl Card {
    /// Marks a channel that carries messages between hosts.
    pub(crate) fn leave_unrecorded(&self, channel: nicety_channels::Channel) {
        for direction in [Direction::ToCard, Direction::ToHost] {
            self.lane(Mailbox { channel: channel.index(), direction }, |lane| lane.unrecorded = true);
        }
    }

    /// Assigns a number to a message. Returns `None` if the message is not recorded. The numbers do not depend on the
    /// options of recording.
    fn begin_message(
        &self,
        mailbox: Mailbox,
        (kind, bytes): (Kind, u64),
        by: Starter,
        base: &Path,
    ) -> Option<MessageId> {
        if self.lane(mailbox, |lane| lane.unrecorded) {
            return None;
        }
        let message = self.next_message();
        let kind = match kind {
            Kind::Direct => "direct",
            Kind::Indirect => "indirect",
        };
        self.recorder.sent(message, self.sim.node(), bytes, kind, by, base);
        self.recorder.keeps(Level::Messages).then_some(message)
    }

    /// Records that a thread posts the first mailbox of a message to the card.
    pub(super) fn posted(&self, mailbox: Mailbox, kind: Kind, bytes: u64, base: &Path) -> Option<MessageId> {
        let message = self.begin_message(mailbox, (kind, bytes), Starter::Host, base);
        self.lane(mailbox, |lane| lane.carried = message.map(Carried::new));
        message
    }

    /// Records that a mailbox is about to be written to the host. If a manager has just collected a message for the
    /// mailbox, returns this message.
    pub(super) fn leaves(&self, mailbox: Mailbox, bytes: &[u8; MAILBOX_BYTES]) -> Option<MessageId> {
        let Leaving { context, base } = self.lane(mailbox, |lane| lane.leaving.take())?;
        let what = match Message::decode(bytes).ok()?.body {
            Body::Direct(payload) => (Kind::Direct, payload.len() as u64),
            Body::Offer(bytes) => (Kind::Indirect, bytes.into()),
            _ => return None,
        };
        let message = self.begin_message(mailbox, what, Starter::Process, &base)?;
        self.context(context, |call| call.message = Some(message));
        Some(message)
    }

    /// Records that the mailbox of a message has arrived at the other end.
    pub(super) fn message_arrived(&self, mailbox: Mailbox, path: &Path) {
        self.lane(mailbox, |lane| {
            if let Some(carried) = lane.carried.as_mut().filter(|carried| carried.come.is_none()) {
                carried.come = Some(path.clone());
                self.recorder.message_matched(carried.message, self.sim.now(), "not received");
            }
        });
    }

    /// Records that the process that reads a message continues.
    pub(super) fn delivered(&self, mailbox: Mailbox, mut path: Path) {
        if mailbox.direction == Direction::ToCard
            && let Some(Carried { message, .. }) = self.lane(mailbox, |lane| lane.carried.take())
        {
            path.advance(stages::MANAGER, self.nfp.resumes_at());
            self.recorder.message_completed(message, &path, "received");
            self.recorder.message_noticed(message, path.at());
        }
    }

    /// Records that a receiving thread posts a mailbox. If the thread takes a message by this mailbox, returns the
    /// message. `released` is the path of the event that woke the thread. If the message woke the thread, `released` is
    /// the message's path.
    pub(super) fn taken(
        &self,
        mailbox: Mailbox,
        bytes: &[u8; MAILBOX_BYTES],
        path: &Path,
        released: Option<&Path>,
    ) -> Option<Taken> {
        let takes = self.lane(mailbox, |lane| lane.carried.is_some())
            && match Message::decode(bytes).ok()?.body {
                Body::Pages(_) => true,
                // The thread also replies to a withdrawal, but takes no message by it.
                Body::Reply(Reply { status, .. }) => status != Status::Cancelled,
                _ => false,
            };
        let Carried { message, come } = self.lane(mailbox, |lane| lane.carried.take_if(|_| takes))?;
        let waited = come.filter(|come| Some(come) != released).map(|mut own| {
            own.advance(stages::RECEIVER, path.at());
            (own, path.clone())
        });
        Some(Taken { message, waited })
    }

    /// Records that a thread returns with a message.
    pub(super) fn received(&self, taken: &Taken, path: &Path) -> MessageId {
        let own = taken.waited.as_ref().and_then(|(own, begun)| own.continued(begun, path));
        self.recorder.message_completed(taken.message, &own.unwrap_or(path.clone()), "received");
        taken.message
    }

    /// Records that a message has failed and that its sender was notified.
    pub(super) fn failed(&self, message: MessageId, failure: &Failure) {
        let outcome = match failure {
            Failure::SizeMismatch { .. } => "size mismatch",
            Failure::KindMismatch { .. } => "kind mismatch",
            Failure::Timeout => "timed out",
            Failure::Dma { .. } => "DMA failed",
            Failure::Pin => "not pinned",
            Failure::Closed => "closed",
            Failure::UnknownTarget(_) | Failure::TargetTaken(_) => "no channel",
        };
        self.recorder.message_failed(message, outcome);
    }
}
