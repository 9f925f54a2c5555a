//! The disposition of packets, and the start of handlers that are ready to run. Packets go to handlers or to host
//! memory, or are dropped.

use crate::Card;
use crate::incoming::{Disposition, LastPacket};
use nicety_nic_processors::programs::program::Kind;
use nicety_nic_processors::ready::{Arrived, Run, Slots};
use nicety_portals::HeaderKind;
use nicety_types::Path;
use std::rc::Rc;

impl Card {
    /// Runs the header handler of a message on its first packet.
    pub(crate) fn run_header(self: &Rc<Card>, place: usize, packet: Arrived) {
        let path = packet.path.clone();
        self.ready(Run::new(place, Kind::Header, Some(packet), path));
    }

    /// Runs the completion handler of a message. On PsPIN this handler runs on the last packet.
    pub(crate) fn run_completion(self: &Rc<Card>, place: usize, path: Path, last: Option<Box<LastPacket>>) {
        self.receive.contexts().completes();
        let (packet, slot) = last.map_or((None, None), |last| (Some(last.packet), last.slot));
        let run = Run::new(place, Kind::Completion, packet, path);
        self.ready(Run { slots: Slots { buffer: slot, cluster: None }, ..run });
    }

    /// Keeps a packet for the tail handler of its message. Does so only if the packet is the last one and there is a
    /// tail handler.
    pub(crate) fn keep_last(&self, place: usize, packet: Arrived, slot: Option<u32>) {
        let mut table = self.incoming.borrow_mut();
        let incoming = table.get(place);
        if incoming.keeps(packet.offset, packet.payload.len()) {
            incoming.last = Some(Box::new(LastPacket { packet, slot }));
        }
    }

    /// Applies the header handler's decision to the first packet, and to the packets that waited for the decision.
    pub(crate) fn decide(
        self: &Rc<Card>,
        place: usize,
        first: Arrived,
        disposition: Disposition,
        path: &Path,
    ) {
        let mut waiting = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            incoming.disposition = disposition;
            incoming.path.follow(path);
            incoming.waiting.push_front(first);
            std::mem::take(&mut incoming.waiting)
        };
        for mut packet in waiting.drain(..) {
            packet.path.follow(path);
            self.sim.spawn(self.clone().settle(place, packet, disposition));
        }
        self.incoming.borrow_mut().get(place).waiting = waiting;
    }

    /// Applies the disposition to a packet, and frees the packet's slot of the packet buffer.
    pub(crate) async fn settle(self: Rc<Card>, place: usize, packet: Arrived, disposition: Disposition) {
        match disposition {
            Disposition::Undecided => unreachable!("a packet is settled only once its disposition is known"),
            Disposition::Drop => {
                self.count_dropped(place, &packet);
                self.settled_unhandled(place, packet);
            }
            Disposition::Process | Disposition::Deposit if self.asks(place) => {
                // The future is boxed because it is rarer than a put, and would enlarge the task of every packet.
                Box::pin(self.serve(place, packet)).await;
            }
            Disposition::Process => {
                if self.kept(place, &packet) == 0 {
                    self.settled_unhandled(place, packet);
                } else {
                    let path = packet.path.clone();
                    self.ready(Run::new(place, Kind::Payload, Some(packet), path));
                }
            }
            Disposition::Deposit => self.deposit(place, packet).await,
        }
    }

    /// Settles a packet on which no packet handler runs.
    fn settled_unhandled(self: &Rc<Card>, place: usize, packet: Arrived) {
        let (offset, path) = (packet.offset, packet.path.clone());
        self.keep_last(place, packet, None);
        self.settled(place, offset, &path);
    }

    /// Returns whether a message needs more from the card than a write of the message's bytes.
    fn asks(&self, place: usize) -> bool {
        let kind = self.incoming.borrow_mut().get(place).header.kind;
        !matches!(kind, HeaderKind::Put | HeaderKind::Reply)
    }
}
