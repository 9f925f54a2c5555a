//! Packets as the card reads them, from their bytes alone. Those of a network that loses and damages packets, when there
//! is no reliable transport, may be unusable: they are counted and dropped.

use crate::spin::Card;
use crate::spin::incoming::Arrived;
use crate::spin::wire::Repr;
use nicety_fabric::Parcel;
use nicety_portals::Header;
use nicety_types::MessageId;

/// Unusable packets received. A network without faults has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unusable {
    /// Packets whose header is invalid, of or for other nodes than can be, or inconsistent with the packet.
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
    /// Reads a packet that came by the loopback path, if it is of this card to itself, or by the link; with the
    /// message's header if it is the first. None if it is unusable and dropped.
    pub(in crate::spin) fn read(&self, parcel: Parcel, own: bool) -> Option<(Arrived, Option<Header>)> {
        let usable = |repr: &Repr| {
            let source = repr.message().source;
            let fits = match repr {
                Repr::First { header, .. } => parcel.payload.len() <= header.payload_bytes(),
                Repr::Further { .. } => true,
            };
            fits && repr.target() == self.node && source.0 < self.nodes && (source == self.node) == own
        };
        let Some(repr) = Repr::parse(parcel.header.as_slice()).filter(usable) else {
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
                written: self.scheduler.written(&parcel),
                parcel,
            },
            header,
        ))
    }

    /// Drops a packet of the control channel, which has no buffer slot: no card sends one there.
    pub(in crate::spin) fn drop_control(&self) {
        self.count_unusable(|unusable| unusable.headers += 1);
    }

    /// Drops a packet that belongs to no message in progress, or begins one that is in progress.
    pub(in crate::spin) fn drop_stray(&self, message: MessageId) {
        self.count_unusable(|unusable| unusable.strays += 1);
        self.port.free_slot(message.source);
    }

    /// Frees the slot of a packet whatever it says: on the loopback path, or on the link.
    pub(in crate::spin) fn free_slot_of(&self, own: bool) {
        if own { self.port.free_slot(self.node) } else { self.port.free_link_slot() }
    }

    fn count_unusable(&self, count: impl FnOnce(&mut Unusable)) {
        let mut unusable = self.unusable.get();
        count(&mut unusable);
        self.unusable.set(unusable);
    }
}
