//! Validation of packets from a network that loses and damages packets, when there is no reliable transport: unusable
//! packets are counted and dropped.

use super::Card;
use nicety_fabric::Packet;
use nicety_portals::Header;
use nicety_types::MessageId;

/// Unusable packets received. A network without faults has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unusable {
    /// Header packets whose header is invalid, for other nodes, or inconsistent with the packet.
    pub headers: u64,
    /// Packets of messages whose header packet has not come, duplicates, and excess packets.
    pub strays: u64,
}

impl Unusable {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.headers + self.strays
    }
}

impl Card {
    /// The header of a header packet; none if it is unusable and dropped.
    pub(super) fn header_of(&self, packet: &Packet) -> Option<Header> {
        let header = Header::decode(packet.header.as_slice()).ok();
        let header = header.filter(|header| {
            let ours = header.target == self.node && header.source.0 < self.nodes;
            ours && packet.payload.len() <= header.payload_bytes()
        });
        if header.is_none() {
            self.drop_unusable(packet.message, |unusable| unusable.headers += 1);
        }
        header
    }

    /// Drops a packet from the link that no card sends there: one of the control channel, which has no buffer slot,
    /// or one of this card's own messages.
    pub(super) fn drop_foreign(&self, packet: &Packet) {
        let mut unusable = self.unusable.get();
        unusable.headers += 1;
        self.unusable.set(unusable);
        if !packet.is_control() {
            self.port.free_link_slot();
        }
    }

    /// Drops a packet that belongs to no message in progress, or begins one that is in progress.
    pub(super) fn drop_stray(&self, message: MessageId) {
        self.drop_unusable(message, |unusable| unusable.strays += 1);
    }

    fn drop_unusable(&self, message: MessageId, count: impl FnOnce(&mut Unusable)) {
        let mut unusable = self.unusable.get();
        count(&mut unusable);
        self.unusable.set(unusable);
        self.port.free_slot(message);
    }
}
