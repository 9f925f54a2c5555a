//! The fate of packets: to handlers, to host memory or dropped; and the handlers that are ready to run.

use crate::spin::Card;
use crate::spin::incoming::{Arrived, Fate};
use crate::spin::programs::program::Kind;
use nicety_portals::HeaderKind;
use nicety_types::Path;
use std::rc::Rc;

/// A handler ready to run.
pub(in crate::spin) struct Run {
    /// Its message's index among the arriving messages.
    pub(in crate::spin) place: usize,
    pub(in crate::spin) kind: Kind,
    /// The packet, for header and payload handlers.
    pub(in crate::spin) packet: Option<Arrived>,
    /// The path up to when it became ready.
    pub(in crate::spin) path: Path,
}

impl Card {
    /// Has the header handler of a message run, on its first packet.
    pub(in crate::spin) fn run_header(self: &Rc<Card>, place: usize, packet: Arrived) {
        let path = packet.path.clone();
        self.ready(Run { place, kind: Kind::Header, packet: Some(packet), path });
    }

    /// Has the completion handler of a message run.
    pub(in crate::spin) fn run_completion(self: &Rc<Card>, place: usize, path: Path) {
        self.contexts.completes();
        self.ready(Run { place, kind: Kind::Completion, packet: None, path });
    }

    /// The header handler, which ran on the first packet, has decided the packets' fate.
    pub(in crate::spin) fn decide(self: &Rc<Card>, place: usize, first: Arrived, fate: Fate, path: &Path) {
        let mut waiting = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            incoming.fate = fate;
            incoming.path.follow(path);
            incoming.waiting.push_front(first);
            std::mem::take(&mut incoming.waiting)
        };
        for mut packet in waiting.drain(..) {
            packet.path.follow(path);
            self.sim.spawn(self.clone().settle(place, packet, fate));
        }
        self.incoming.borrow_mut().get(place).waiting = waiting;
    }

    /// Applies the fate to a packet, and frees its slot of the packet buffer.
    pub(in crate::spin) async fn settle(self: Rc<Card>, place: usize, packet: Arrived, fate: Fate) {
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
}
