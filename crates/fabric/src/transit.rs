//! Packets in flight through switches. A packet consists of a few words that every switch reads, and a box with the
//! rest. Switches do not open the box, so a packet needs little memory traffic in a switch.

use crate::{Channel, Packet, PacketBox};
use nicety_types::{Account, Duration, Flight, MessageId, NodeId, Path, Stage, Time};
use serde::{Deserialize, Serialize};

/// The times of a packet's first and last byte at one point of its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) head: Time,
    pub(crate) tail: Time,
    /// The stage to which the time from `head` to `tail` is accounted.
    pub(crate) slowest: Stage,
}

impl Span {
    pub(crate) fn of(&Flight { head, tail, slowest, .. }: &Flight) -> Span {
        Span { head, tail, slowest }
    }
}

/// A packet in flight through switches.
#[derive(Debug, Serialize, Deserialize)]
pub struct Transit {
    /// The destination.
    pub destination: NodeId,
    /// The packet's message, which includes the source node.
    pub message: MessageId,
    /// The packet's flow control.
    pub channel: Channel,
    /// The mark that the previous switch's routing set; zero at the first switch.
    pub mark: u8,
    /// Length of the payload in bytes.
    pub bytes: u64,
    pub(crate) trace: Trace,
    packet: PacketBox,
}

impl Transit {
    /// Puts a packet in flight. `path` accounts for the time until its first byte leaves its first link.
    pub(crate) fn begin(packet: PacketBox, path: Path) -> Transit {
        Transit {
            destination: packet.label.destination,
            message: packet.label.message,
            channel: packet.channel,
            mark: 0,
            bytes: packet.payload.len(),
            trace: Trace::begin(path),
            packet,
        }
    }

    /// Returns the same packet. `path` accounts for its time so far.
    pub(crate) fn retraced(self, path: Path) -> Transit {
        Transit { trace: Trace::begin(path), ..self }
    }

    /// Returns a copy that shares the payload's memory.
    pub(crate) fn share(&self) -> Transit {
        Transit { packet: PacketBox::new(self.packet.share()), trace: self.trace.clone(), ..*self }
    }

    /// The packet. Its path still ends at the sender.
    pub(crate) fn inside(&mut self) -> &mut Packet {
        &mut self.packet
    }

    /// The packet, read-only. Its path still ends at the sender.
    pub(crate) fn packet(&self) -> &Packet {
        &self.packet
    }

    /// Returns the packet, with its time accounted for up to its last byte.
    pub(crate) fn end(self, slowest: Stage, tail: Time) -> PacketBox {
        let Transit { mut packet, trace, .. } = self;
        packet.path = trace.end();
        packet.path.advance(slowest, tail);
        packet
    }
}

/// The stages of a packet's time in the network: a path up to its first link, and the times after it. Packets that
/// follow each other share the path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Trace {
    before: Path,
    at: Time,
    link: Duration,
    switch: Duration,
    switch_queued: Duration,
}

impl Trace {
    fn begin(path: Path) -> Trace {
        let (link, switch, switch_queued) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        Trace { at: path.at(), before: path, link, switch, switch_queued }
    }

    fn end(self) -> Path {
        let mut path = self.before;
        for (stage, took) in [
            (Stage::LINK, self.link),
            (Stage::SWITCH, self.switch),
            (Stage::SWITCH_QUEUED, self.switch_queued),
        ] {
            path.advance(stage, path.at() + took);
        }
        debug_assert_eq!(path.at(), self.at);
        path
    }
}

impl Account for Trace {
    fn advance(&mut self, stage: Stage, until: Time) {
        if until <= self.at {
            return;
        }
        if stage == Stage::LINK_RESENT {
            // Resends are rare, so their time goes into the path instead of an own total.
            self.before.advance(stage, self.before.at() + until.since(self.at));
            self.at = until;
            return;
        }
        let totals = [
            (Stage::LINK, &mut self.link),
            (Stage::SWITCH, &mut self.switch),
            (Stage::SWITCH_QUEUED, &mut self.switch_queued),
        ];
        let own = totals.into_iter().find(|(own, _)| *own == stage);
        let (_, total) = own.expect("no other stage is between two switches");
        *total += until.since(self.at);
        self.at = until;
    }
}
