//! Packets with bytes to write to host memory.

pub(super) mod reply;

use crate::Card;
use nicety_nic_processors::ready::Arrived;
use nicety_types::Resource;
use std::rc::Rc;

impl Card {
    /// Hands a packet's bytes to the bus, and settles the packet.
    pub(crate) async fn deposit(self: Rc<Card>, place: usize, mut packet: Arrived) {
        let keep = self.kept(place, &packet);
        let (message, address) = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            let (start, _) = incoming.memory().expect("only bytes with a destination are deposited");
            // Bytes beyond the end of the memory are not written.
            (incoming.message, start.saturating_add(packet.offset))
        };
        if keep == 0 {
            return self.settle_behind(place, &packet).await;
        }
        let payload = std::mem::take(&mut packet.payload);
        if !payload.is_real() {
            self.note_phantom(address, keep, &payload);
        }
        let handover = self.dma.write(message, address, keep, payload, packet.path.clone());
        self.recorder.slice(Resource::DMA, packet.path.at(), handover.landed, Some(message), "deposit");
        let offset = packet.offset;
        drop(packet);
        if self.settled_at(place, offset, &handover.path) {
            return;
        }
        self.sim.until(handover.path.at()).await;
        self.settled(place, offset, &handover.path);
    }
}
