//! The messages in progress at the receiver, and the state of each.

use super::Card;
use nicety_kernel::Needed;
use nicety_nic_core::parts::transport;
use nicety_nic_processors::Attachment;
use nicety_nic_processors::ready::Arrived;
use nicety_portals::{Delivery, FailType, Header, OperationHandle, Reply};
use nicety_types::{MessageId, NodeId, Path, Payload, Time};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::rc::Rc;

/// The name of the outcome of a message in progress, in tables.
pub(super) const IN_FLIGHT: &str = "in flight";

/// Returns the outcome of a message for tables.
pub(super) fn outcome(fail: FailType) -> &'static str {
    match fail {
        FailType::Ok => "ok",
        FailType::HandlerError => "handler error",
        FailType::HandlerBudget => "handler budget",
        other => other.name(),
    }
}

/// The disposition of a message's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    /// Not decided until the header handler has ended. Packets wait until then.
    Undecided,
    /// Written to host memory. For a get or an atomic operation, the card executes the operation.
    Deposit,
    /// Handed to the payload handler.
    Process,
    /// Dropped.
    Drop,
}

impl Disposition {
    /// Returns the disposition of a message's data if no header handler decides otherwise. The data goes to the payload
    /// handler, or to host memory if the program has no payload handler.
    pub(super) fn by_default(attachment: &Attachment) -> Disposition {
        match (attachment.program.handlers.payload, &attachment.program.handlers.pspin) {
            (Some(_), _) => Disposition::Process,
            (None, None) => Disposition::Deposit,
            // A PsPIN card deposits no data by itself.
            (None, Some(_)) => Disposition::Drop,
        }
    }
}

/// A message in progress at its receiver.
pub(super) struct Incoming {
    pub(super) message: MessageId,
    pub(super) header: Header,
    /// The message's destination. `None` if no match entry matched.
    pub(super) delivery: Option<Delivery>,
    /// If the message is a reply: the operation to which it replies, and the destination of the reply.
    pub(super) reply: Option<Reply>,
    pub(super) attachment: Option<Rc<Attachment>>,
    /// Number of earlier messages for handlers. Modulo the number of message queues, it selects the queue.
    pub(super) queue: u64,
    pub(super) disposition: Disposition,
    /// Packets that arrived before the end of the header handler, in the order of arrival.
    pub(super) waiting: VecDeque<Arrived>,
    /// Number of bytes received.
    pub(super) received: u64,
    /// Number of unsettled items: packets that are not yet deposited, handled or dropped, and a reply that is not yet
    /// sent. Transfers that handlers have left in flight also count.
    pub(super) unsettled: u32,
    /// Packets with bytes that transfers of handlers that have ended must still read or write.
    pub(super) lent: Vec<Lent>,
    pub(super) dropped_bytes: u64,
    /// Whether flow control has disabled the message's portal table entry during the message.
    pub(super) flow_control: bool,
    pub(super) fail: FailType,
    /// Whether a handler has requested that the match entry stays linked.
    pub(super) pending: bool,
    /// Received pieces of an atomic operation in several packets, with their offsets.
    pub(super) pieces: Vec<(u64, Payload)>,
    /// The path of the message's latest step.
    pub(super) path: Path,
    pub(super) completion_started: bool,
    /// The message's last packet, kept for a tail handler of PsPIN.
    pub(super) last: Option<Box<LastPacket>>,
    /// Whether the message is done and waits only for earlier messages.
    pub(super) done: bool,
    /// The message that completes next after this message, if such a message has matched.
    pub(super) behind: Option<usize>,
}

/// The last packet of a message, kept for a tail handler of PsPIN. Source: PsPIN's `mpq_engine.sv`, where the queue of
/// a message frees the last packet after it has sent the task of the tail handler.
pub(super) struct LastPacket {
    pub(super) packet: Arrived,
    /// The packet's slot in the packet buffer, if it has one.
    pub(super) slot: Option<u32>,
}

/// A packet that transfers of ended handlers still use.
pub(super) struct Lent {
    /// The packet's offset in the message.
    offset: u64,
    transfers: u32,
    /// Whether the packet is settled, so that only transfers keep its slot.
    settled: bool,
}

impl Incoming {
    /// Returns a message without a destination, before its first packet is processed.
    pub(super) const fn new(message: MessageId, header: Header, path: Path) -> Incoming {
        Incoming {
            message,
            header,
            delivery: None,
            reply: None,
            attachment: None,
            queue: 0,
            disposition: Disposition::Drop,
            waiting: VecDeque::new(),
            received: 0,
            unsettled: 0,
            lent: Vec::new(),
            dropped_bytes: 0,
            fail: FailType::Ok,
            pending: false,
            flow_control: false,
            pieces: Vec::new(),
            path,
            completion_started: false,
            last: None,
            done: false,
            behind: None,
        }
    }

    /// Counts another transfer that uses the packet at this offset.
    pub(super) fn lend(&mut self, offset: u64) {
        match self.lent.iter_mut().find(|lent| lent.offset == offset) {
            Some(lent) => lent.transfers += 1,
            None => self.lent.push(Lent { offset, transfers: 1, settled: false }),
        }
    }

    /// Settles a packet. Returns whether its slot can be freed because no transfer uses the packet.
    pub(super) fn settles(&mut self, offset: u64) -> bool {
        let lent = self.lent.iter_mut().find(|lent| lent.offset == offset);
        lent.map(|lent| lent.settled = true).is_none()
    }

    /// Ends a transfer that uses the packet at this offset. Returns whether the packet's slot can be freed: the packet
    /// is settled and this was its last transfer.
    pub(super) fn returns(&mut self, offset: u64) -> bool {
        let index = self.lent.iter().position(|lent| lent.offset == offset).expect("it was lent");
        self.lent[index].transfers -= 1;
        self.lent[index].transfers == 0 && self.lent.swap_remove(index).settled
    }

    /// Returns the address and length of the host memory for the message's bytes. `None` if no match entry matched.
    pub(super) fn memory(&self) -> Option<(u64, u64)> {
        let delivered = self.delivery.map(|delivery| (delivery.start, delivery.mlength));
        delivered.or(self.reply.map(|reply| (reply.start, reply.mlength)))
    }

    /// Returns the number of bytes that remain after truncation, of `len` bytes of payload from `offset` on.
    pub(super) fn kept(&self, offset: u64, len: u64) -> u64 {
        let left = self.memory().map_or(0, |(_, mlength)| mlength);
        // The payload of a swap may begin with an operand, which is not truncated.
        let operand = self.header.payload_bytes().saturating_sub(self.header.length);
        let left = if left == 0 { 0 } else { left + operand };
        len.min(left.saturating_sub(offset))
    }

    /// Returns whether the packet with `bytes` bytes from `offset` on is the last packet, and the message has a tail
    /// handler of PsPIN.
    pub(super) fn keeps(&self, offset: u64, bytes: u64) -> bool {
        let has_tail = |attachment: &Rc<Attachment>| {
            let handlers = &attachment.program.handlers;
            handlers.pspin.is_some() && handlers.completion.is_some()
        };
        offset.checked_add(bytes) == Some(self.header.payload_bytes())
            && self.attachment.as_ref().is_some_and(has_tail)
    }

    /// Returns whether at least `bytes` more bytes have not arrived yet, so that another packet may belong to the
    /// message.
    pub(super) fn awaits(&self, bytes: u64) -> bool {
        let left = self.header.payload_bytes().saturating_sub(self.received);
        bytes > 0 && bytes <= left
    }

    /// Marks the reply as sent.
    pub(super) fn replied(&mut self) {
        if let Some(delivery) = &mut self.delivery {
            delivery.replied = true;
        }
    }
}

/// The messages in progress at a receiver. Entries are reused, so that their queues keep their allocated memory.
#[derive(Default)]
pub(super) struct IncomingTable {
    pub(super) places: Vec<Incoming>,
    pub(super) free: Vec<usize>,
    by_message: FxHashMap<MessageId, usize>,
    /// The message of the last look-up. Packets of a message usually arrive back to back.
    last: Cell<Option<(MessageId, usize)>>,
    /// Maps an initiator and a portal table entry to the first and the last message in progress. Messages of such a
    /// pair complete in the order in which they matched.
    pub(super) order: FxHashMap<(NodeId, u32), (usize, usize)>,
}

impl IncomingTable {
    pub(super) fn get(&mut self, place: usize) -> &mut Incoming {
        &mut self.places[place]
    }

    /// Returns the index of a message.
    pub(super) fn place_of(&self, message: MessageId) -> Option<usize> {
        match self.last.get() {
            Some((last, place)) if last == message => Some(place),
            _ => {
                let place = *self.by_message.get(&message)?;
                self.last.set(Some((message, place)));
                Some(place)
            }
        }
    }

    /// Returns the memory of the entry that another packet of a message will need.
    pub(super) fn needed(&self, message: MessageId) -> Needed {
        self.place_of(message).map_or(Needed::NOTHING, |place| Needed::of(&self.places[place]))
    }

    pub(super) fn insert(&mut self, mut incoming: Incoming) -> usize {
        let (message, header) = (incoming.message, incoming.header);
        let matched = incoming.delivery.is_some();
        let place = match self.free.pop() {
            Some(place) => {
                std::mem::swap(&mut incoming.waiting, &mut self.places[place].waiting);
                std::mem::swap(&mut incoming.lent, &mut self.places[place].lent);
                self.places[place] = incoming;
                place
            }
            None => {
                self.places.push(incoming);
                self.places.len() - 1
            }
        };
        self.by_message.insert(message, place);
        if matched {
            match self.order.entry((header.source, header.pt)) {
                Entry::Vacant(vacant) => _ = vacant.insert((place, place)),
                Entry::Occupied(mut line) => {
                    let last = std::mem::replace(&mut line.get_mut().1, place);
                    self.places[last].behind = Some(place);
                }
            }
        }
        place
    }

    /// Removes the first message from the order of `key` if this message is done. Returns its index.
    pub(super) fn next_done(&mut self, key: (NodeId, u32)) -> Option<usize> {
        let Entry::Occupied(mut line) = self.order.entry(key) else { return None };
        let first = line.get().0;
        if !self.places[first].done {
            return None;
        }
        match self.places[first].behind.take() {
            Some(next) => line.get_mut().0 = next,
            None => _ = line.remove(),
        }
        Some(first)
    }

    /// Ends the arriving reply to an operation as failed, after the bytes that have arrived. Returns the reply's index.
    pub(super) fn cut(&mut self, operation: OperationHandle, now: Time) -> Option<usize> {
        let is_its = |p: &usize| self.places[*p].reply.is_some_and(|reply| reply.operation == operation);
        let place = self.by_message.values().copied().find(is_its)?;
        let incoming = &mut self.places[place];
        incoming.received = incoming.header.payload_bytes();
        incoming.path.advance(transport::stages::TRANSPORT, now);
        if let Some(reply) = &mut incoming.reply {
            reply.fail = FailType::Undeliverable;
        }
        Some(place)
    }

    pub(super) fn remove(&mut self, place: usize) {
        let message = self.places[place].message;
        self.by_message.remove(&message);
        self.last.set(None);
        self.places[place].attachment = None;
        debug_assert!(self.places[place].last.is_none(), "it had a tail handler, or is not kept");
        self.free.push(place);
    }

    /// Marks the messages in progress at a portal table entry that flow control has disabled.
    pub(super) fn flow_controlled(&mut self, pt: u32) {
        // Free entries are marked, too. This is harmless, because `insert` overwrites them.
        self.places.iter_mut().filter(|p| p.header.pt == pt).for_each(|p| p.flow_control = true);
    }
}

impl Card {
    /// Returns the number of a packet's bytes that remain after truncation.
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
}
