//! Messages with a lost packet. The card gives up these messages, and reports them at both ends as refused.
//!
//! A card never resends. The receiver detects a loss at the next packet of the message. If packets of a node arrive in
//! the order of sending, the receiver detects the loss also at the beginning of the node's next message.

use crate::error::Refusal;
use crate::event::{Event, EventKind};
use crate::receive::incoming::{Getting, Incoming};
use crate::wire::{Kind, Repr};
use crate::{Card, Operation};
use nicety_types::{MessageId, Path};
use std::rc::Rc;

/// Maximum number of incomplete messages of a node, if messages can overtake each other.
const INCOMPLETE: usize = 64;

impl Card {
    /// Reports the loss of an earlier packet, if this packet shows the loss. `known` is the message, if its first
    /// packet has arrived. Returns whether a packet was lost.
    pub(crate) fn tell_lost(self: &Rc<Card>, known: Option<&Incoming>, header: &Repr, path: &Path) -> bool {
        match known {
            Some(incoming) => {
                let lost = incoming.skips_to(header);
                if lost {
                    self.abandon(incoming, path);
                }
                lost
            }
            None if header.kind == Kind::Put => {
                let lost = self.note(header);
                if lost {
                    self.count(|counted| counted.abandoned += 1);
                    let address = match header.address {
                        0 => 0,
                        address => address.wrapping_sub(header.offset.into()),
                    };
                    self.refuse(header, (address, false), Refusal::Lost, path);
                }
                lost
            }
            None => {
                let awaited =
                    self.receive.gets.borrow().get(&header.data).is_some_and(|get| get.awaits(header));
                if awaited {
                    self.count(|counted| counted.abandoned += 1);
                    self.lose_get(header.data, header.message(), Refusal::Lost, path);
                }
                awaited
            }
        }
    }

    /// Gives up incomplete messages of a node when a later message of the same kind begins. A node sends one put after
    /// another, and one reply after another, so the last packets of earlier messages are lost. If messages can overtake
    /// each other, the newest messages are kept.
    pub(crate) fn give_up(self: &Rc<Card>, begins: &Repr, path: &Path) {
        let from = begins.from.node;
        let of_node =
            MessageId { source: from, sequence: 0 }..=MessageId { source: from, sequence: u64::MAX };
        let open: Vec<Rc<Incoming>> = {
            let open = self.receive.open.borrow();
            let of_kind = open.range(of_node).filter(|(_, other)| other.header.kind == begins.kind);
            of_kind.map(|(_, incoming)| incoming.clone()).collect()
        };
        let kept = if self.ordered { 0 } else { INCOMPLETE - 1 };
        for incoming in &open[..open.len().saturating_sub(kept)] {
            self.abandon(incoming, path);
        }
    }

    /// Gives up a message.
    fn abandon(self: &Rc<Card>, incoming: &Incoming, path: &Path) {
        self.receive.open.borrow_mut().remove(&incoming.header.message());
        if incoming.refused.replace(true) {
            return;
        }
        self.count(|counted| counted.abandoned += 1);
        self.refuse_incoming(incoming, Refusal::Lost, path);
        if incoming.header.kind == Kind::Put {
            self.tell_in_order(incoming.header.from.node);
        }
    }

    /// Fails a get of this node, and reports the failure to the get's process. `reply` is the message with the get's
    /// bytes.
    pub(crate) fn lose_get(self: &Rc<Card>, number: u64, reply: MessageId, why: Refusal, path: &Path) {
        self.count(|counted| counted.refused += 1);
        self.recorder.message_failed(reply, why.name());
        let Some(get) = self.forget_get(number) else { return };
        let kind = EventKind::Refused(Operation(number), why);
        let Getting { peer, process, address, bytes, .. } = get;
        let refused_by = Some(self.node);
        let event = Event { kind, peer, address, bytes, data: 0, streaming: false, refused_by };
        self.complete_apart(process, event, reply, path.clone());
    }
}
