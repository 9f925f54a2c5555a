//! Parsing of packets on the card, from their bytes alone. Without reliable transport, packets from a network that
//! loses and damages them may be unusable. They are counted and dropped.

use crate::Card;
use crate::wire::Repr;
use nicety_fabric::PacketBox;
use nicety_nic_processors::ready::Arrived;
use nicety_portals::Header;
use nicety_types::MessageId;

/// Counters of unusable packets. A network without faults has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unusable {
    /// Packets with an invalid header: malformed, with an impossible sender or receiver, or inconsistent with the
    /// packet.
    pub headers: u64,
    /// Packets of messages without an arrived header packet, duplicates, and excess packets.
    pub strays: u64,
}

impl Unusable {
    /// Returns the number of all unusable packets.
    pub const fn total(&self) -> u64 {
        self.headers + self.strays
    }
}

impl Card {
    /// Reads a packet from the loopback path if `own` is set, and from the link otherwise. Returns it with the
    /// message's header if it is the first packet. Returns none for an unusable packet, which is dropped.
    pub(crate) fn read(&self, packet_box: PacketBox, own: bool) -> Option<(Arrived, Option<Header>)> {
        let usable = |repr: &Repr| {
            let source = repr.message().source;
            let fits = match repr {
                Repr::First { header, .. } => packet_box.payload.len() <= header.payload_bytes(),
                Repr::Further { .. } => true,
            };
            fits && repr.target() == self.node && source.0 < self.nodes && (source == self.node) == own
        };
        let Some(repr) = Repr::parse(packet_box.header.as_slice()).filter(usable) else {
            self.count_unusable(|unusable| unusable.headers += 1);
            self.free_slot_of(own);
            return None;
        };
        let header = match repr {
            Repr::First { header, .. } => Some(header),
            Repr::Further { .. } => None,
        };
        Some((
            Arrived {
                message: repr.message(),
                offset: repr.offset(),
                written: self.handlers.written(&packet_box),
                packet_box,
            },
            header,
        ))
    }

    /// Drops a packet of the control channel. It has no buffer slot. Cards send no packets on that channel.
    pub(crate) fn drop_control(&self) {
        self.count_unusable(|unusable| unusable.headers += 1);
    }

    /// Drops a packet that belongs to no message in progress, or that is a second first packet of one.
    pub(crate) fn drop_stray(&self, message: MessageId) {
        self.count_unusable(|unusable| unusable.strays += 1);
        self.receive.port.free_slot(message.source);
    }

    /// Frees the slot of a packet, whatever its header says: on the loopback path, or on the link.
    pub(crate) fn free_slot_of(&self, own: bool) {
        if own { self.receive.port.free_slot(self.node) } else { self.receive.port.free_link_slot() }
    }

    fn count_unusable(&self, count: impl FnOnce(&mut Unusable)) {
        let mut unusable = self.receive.unusable.get();
        count(&mut unusable);
        self.receive.unusable.set(unusable);
    }
}
