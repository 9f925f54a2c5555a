//! Parsing of packets on the card, from their bytes alone. Without reliable transport, a network that loses and damages
//! packets makes some packets unusable. Unusable packets are counted and dropped.

use crate::Card;
use crate::wire::Repr;
use nicety_fabric::PacketBox;
use nicety_nic_processors::ready::Arrived;
use nicety_portals::Header;
use nicety_types::MessageId;

/// Counters of unusable packets. A network without faults has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unusable {
    /// Number of packets with an invalid header. The header is malformed, names an impossible sender or receiver, or
    /// does not agree with the packet.
    pub headers: u64,
    /// Number of stray packets: packets before their message's first packet, duplicates, and excess packets.
    pub strays: u64,
}

impl Unusable {
    /// Returns the number of all unusable packets.
    pub const fn total(&self) -> u64 {
        self.headers + self.strays
    }
}

impl Card {
    /// Parses a packet: from the loopback path if `own` is true, otherwise from the link. Returns the packet and, if
    /// the packet is the first of its message, the message's header. Drops an unusable packet and returns `None`.
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

    /// Drops a packet of the control channel, which has no buffer slot. Cards of this design send no packets on that
    /// channel.
    pub(crate) fn drop_control(&self) {
        self.count_unusable(|unusable| unusable.headers += 1);
    }

    /// Drops a packet that belongs to no message in progress, or that repeats the first packet of a message.
    pub(crate) fn drop_stray(&self, message: MessageId) {
        self.count_unusable(|unusable| unusable.strays += 1);
        self.receive.port.free_slot(message.source);
    }

    /// Frees the slot of a packet on the loopback path or on the link. The packet's header does not matter.
    pub(crate) fn free_slot_of(&self, own: bool) {
        if own { self.receive.port.free_slot(self.node) } else { self.receive.port.free_link_slot() }
    }

    fn count_unusable(&self, count: impl FnOnce(&mut Unusable)) {
        let mut unusable = self.receive.unusable.get();
        count(&mut unusable);
        self.receive.unusable.set(unusable);
    }
}
