//! Packets that no handler takes: deposited in host memory, dropped or served.

use super::Card;
use super::attachments::Attachment;
use super::hpus::{Kind, Run};
use super::incoming::Fate;
use super::intake::Arrived;
use nicety_portals::HeaderKind;
use nicety_types::Resource;
use std::rc::Rc;

impl Card {
    /// Applies the fate to a packet, and frees its slot of the packet buffer.
    pub(super) async fn settle(self: Rc<Card>, place: usize, packet: Arrived, fate: Fate) {
        match fate {
            Fate::Undecided => unreachable!("a packet is settled only once its fate is known"),
            Fate::Drop => {
                self.count_dropped(place, &packet);
                self.settled(place, packet.offset, &packet.path);
            }
            Fate::Process | Fate::Deposit if self.asks(place) => {
                // Boxed: it is rarer than puts, and the task of every packet would be larger for it.
                Box::pin(self.serve(place, packet)).await;
            }
            Fate::Process => {
                if self.kept(place, &packet) == 0 {
                    self.settled(place, packet.offset, &packet.path);
                } else {
                    let path = packet.path.clone();
                    self.ready(Run { place, kind: Kind::Payload, packet: Some(packet), path });
                }
            }
            Fate::Deposit => self.deposit(place, packet).await,
        }
    }

    /// Whether a message asks the card for more than a write of its bytes.
    fn asks(&self, place: usize) -> bool {
        let kind = self.incoming.borrow_mut().get(place).header.kind;
        !matches!(kind, HeaderKind::Put | HeaderKind::Reply)
    }

    /// The number of a packet's bytes left after truncation.
    pub(super) fn kept(&self, place: usize, packet: &Arrived) -> u64 {
        self.incoming.borrow_mut().get(place).kept(packet.offset, packet.payload.len())
    }

    /// Counts a packet's bytes as dropped.
    pub(super) fn count_dropped(&self, place: usize, packet: &Arrived) {
        let dropped = self.kept(place, packet);
        self.incoming.borrow_mut().get(place).dropped_bytes += dropped;
    }

    pub(super) fn attachment_of(&self, place: usize) -> Option<Rc<Attachment>> {
        self.incoming.borrow_mut().get(place).attachment.clone()
    }

    async fn deposit(self: Rc<Card>, place: usize, mut packet: Arrived) {
        let keep = self.kept(place, &packet);
        let (message, address) = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            let (start, _) = incoming.memory().expect("only bytes with a destination are deposited");
            // Bytes beyond the end are cut.
            (incoming.message, start.saturating_add(packet.offset))
        };
        if keep == 0 {
            self.settled(place, packet.offset, &packet.path);
            return;
        }
        let payload = std::mem::take(&mut packet.payload);
        let handover = self.dma.write(message, address, keep, payload, packet.path.clone());
        self.recorder.slice(Resource::DMA, packet.path.at(), handover.landed, Some(message), "deposit");
        let offset = packet.offset;
        drop(packet);
        self.sim.until(handover.path.at()).await;
        self.settled(place, offset, &handover.path);
    }
}
