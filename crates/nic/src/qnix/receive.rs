//! The receive path: from the link to a receive, or into the card's memory until there is one.

use super::header::Header;
use super::interface::ReceiveCommand;
use super::library::Completed;
use super::transfer::{Deposit, Doorbell, Transfer};
use super::{Card, Endpoint};
use crate::parts::{Matching, Seen};
use nicety_fabric::Packet;
use nicety_kernel::Permit;
use nicety_types::{MessageId, Path, Payload};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The location of a packet.
pub(super) enum Slot {
    /// In the packet buffer.
    Link,
    /// In a staging slot of the same card, unless it is in a Context Region.
    Staged(Option<Permit>),
    /// In so many bytes of the card's memory.
    Memory(u64),
}

/// A received packet.
pub(super) struct Arrived {
    pub(super) packet: Packet,
    pub(super) slot: Slot,
}

/// Packets that the control program has not taken.
#[derive(Default)]
pub(super) struct Arrivals {
    queue: RefCell<VecDeque<Arrived>>,
    /// Whether the first packet found no memory and nothing has changed since.
    held_back: Cell<bool>,
    /// The latest messages of each sending interface.
    heard: RefCell<BTreeMap<Endpoint, Seen<REMEMBERED>>>,
}

/// Messages of an interface that are remembered: twice as many as it may have in flight.
const REMEMBERED: usize = 64;

impl Arrivals {
    /// Whether a message is a duplicate, or older than all that are remembered.
    fn has_heard(&self, from: Endpoint, message: MessageId) -> bool {
        self.heard.borrow().get(&from).is_some_and(|seen| seen.has(message.sequence))
    }

    fn hear(&self, from: Endpoint, message: MessageId) {
        // One that has waited for its receive has been heard.
        let _ = self.heard.borrow_mut().entry(from).or_default().note(message.sequence);
    }
}

/// A message being received.
pub(super) struct Receiving {
    vni: u32,
    operation: u64,
    pub(super) message: MessageId,
    pub(super) address: u64,
    room: u64,
    from: Endpoint,
    tag: u64,
    bytes: u64,
    /// Bytes that have come, in order.
    come: Cell<u64>,
    /// Bytes that are in host memory, or beyond the buffer.
    settled: Cell<u64>,
    /// The path of the last of them.
    path: RefCell<Path>,
}

/// A message without a receive.
pub(super) struct Waiting {
    message: MessageId,
    from: Endpoint,
    header: Header,
    come: Cell<u64>,
    packets: RefCell<Vec<Kept>>,
}

/// A packet in the card's memory.
struct Kept {
    offset: u64,
    payload: Payload,
    memory: u64,
    path: Path,
}

/// The classification of a packet.
enum Belongs {
    Receiving(Rc<Receiving>),
    Waiting(Rc<Waiting>),
    /// The first packet of a message without a receive.
    Unexpected,
    /// Its interface is not open.
    Stray,
    /// It is out of sequence.
    Unusable,
}

impl Card {
    /// Takes packets from the link.
    pub(super) async fn listen(self: Rc<Card>) {
        loop {
            let packet = self.port.receive().await;
            if packet.is_control() {
                // No card sends such a packet; it occupies no slot of the buffer.
                self.count(|counted| counted.unusable += 1);
                continue;
            }
            if [packet.source, packet.message.source].contains(&self.node) {
                // A card does not send to itself over the link: this one would pass for a part of such a message.
                self.count(|counted| counted.unusable += 1);
                self.port.free_slot();
                continue;
            }
            self.arrived(Arrived { packet: packet.open(), slot: Slot::Link });
        }
    }

    pub(super) fn arrived(&self, arrived: Arrived) {
        let Packet { message, offset, .. } = arrived.packet;
        self.recorder.packet_arrived(message, offset, self.sim.now());
        self.arrivals.queue.borrow_mut().push_back(arrived);
        self.changed.notify_all();
    }

    /// Whether a packet waits for the control program.
    pub(super) fn has_packet(&self) -> bool {
        !self.arrivals.held_back.get() && !self.arrivals.queue.borrow().is_empty()
    }

    /// Notes a change that a packet without memory may have waited for.
    pub(super) fn let_on(&self) {
        self.arrivals.held_back.set(false);
        self.changed.notify_all();
    }

    /// Takes a received packet: into its receive's buffer, or into the card's memory.
    pub(super) async fn take_packet(self: &Rc<Card>) {
        let next = self.arrivals.queue.borrow_mut().pop_front();
        let Some(Arrived { mut packet, slot }) = next else { return };
        self.work(self.spec.program.receive, &mut packet.path).await;
        let usable = Header::decode(&packet.header).filter(|header| self.may_be(&packet, header));
        let (message, offset, bytes) = (packet.message, packet.offset, packet.payload.len());
        let belongs = match usable {
            Some(header) => self.belongs(&mut packet, header).await,
            None => Belongs::Unusable,
        };
        self.recorder.packet_matched(message, offset, self.sim.now());
        match (belongs, usable) {
            (Belongs::Receiving(receiving), _) => {
                self.count(|counted| counted.packets_received += 1);
                let Packet { offset, payload, path, .. } = packet;
                self.come(&receiving, offset, payload, path, slot);
            }
            (Belongs::Waiting(waiting), _) => self.keep(waiting, packet, slot),
            (Belongs::Unexpected, Some(header)) => {
                let from = header.source(packet.source);
                let (come, packets) = (Cell::new(0), RefCell::default());
                self.keep(Rc::new(Waiting { message, from, header, come, packets }), packet, slot);
            }
            (Belongs::Stray, Some(header)) => {
                let last = offset.checked_add(bytes) == Some(header.bytes);
                self.count(|counted| counted.strays += u64::from(last));
                if offset == 0 {
                    self.recorder.message_matched(message, self.sim.now(), "no such interface");
                }
                self.vacate(slot, message, &packet.path);
            }
            _ => {
                self.count(|counted| counted.unusable += 1);
                self.vacate(slot, message, &packet.path);
            }
        }
    }

    /// Whether a packet agrees with its header: a part of a message, from an interface of another card.
    fn may_be(&self, packet: &Packet, header: &Header) -> bool {
        let (limits, bytes) = (&self.spec.limits, packet.payload.len());
        let end = packet.offset.checked_add(bytes);
        !packet.payload.is_damaged()
            && packet.source.0 < self.nodes
            && header.from < limits.vnis
            && header.bytes <= limits.message
            && bytes <= self.spec.packet
            && end.is_some_and(|end| end <= header.bytes)
            // Only an empty message has an empty packet.
            && (bytes > 0 || header.bytes == 0)
    }

    /// Classifies a packet. The first packet of a message is compared with the posted receives.
    async fn belongs(&self, packet: &mut Packet, header: Header) -> Belongs {
        let (message, offset, from) = (packet.message, packet.offset, header.source(packet.source));
        let known = self.interface(header.to, |interface| {
            if let Some(receiving) = interface.receiving.get(&message) {
                let same =
                    (receiving.from, receiving.tag, receiving.bytes) == (from, header.tag, header.bytes);
                let expected = same && receiving.come.get() == offset;
                return Some(if expected {
                    Belongs::Receiving(receiving.clone())
                } else {
                    Belongs::Unusable
                });
            }
            if let Some(waiting) = interface.matching.messages().find(|waiting| waiting.message == message) {
                let same = waiting.from == from && waiting.header == header;
                let expected = same && waiting.come.get() == offset;
                return Some(if expected { Belongs::Waiting(waiting.clone()) } else { Belongs::Unusable });
            }
            let begins = offset == 0 && !self.arrivals.has_heard(from, message);
            (!begins).then_some(Belongs::Unusable)
        });
        let Some(known) = known else { return Belongs::Stray };
        if let Some(known) = known {
            return known;
        }
        let found = self.interface(header.to, |interface| {
            interface.matching.take_receive(|receive| receive.takes(from, header.tag))
        });
        let (receive, compared) = found.unwrap_or_default();
        self.work(self.spec.program.compare * compared, &mut packet.path).await;
        let Some(receive) = receive else { return Belongs::Unexpected };
        self.recorder.message_matched(message, self.sim.now(), "receiving");
        Belongs::Receiving(self.begin(header.to, receive, message, from, header))
    }

    /// Matches a message with a receive.
    fn begin(
        &self,
        vni: u32,
        receive: ReceiveCommand,
        message: MessageId,
        from: Endpoint,
        header: Header,
    ) -> Rc<Receiving> {
        let receiving = Rc::new(Receiving {
            vni,
            operation: receive.operation,
            message,
            address: receive.address,
            room: receive.room,
            from,
            tag: header.tag,
            bytes: header.bytes,
            come: Cell::new(0),
            settled: Cell::new(0),
            path: RefCell::new(receive.path),
        });
        self.interface(vni, |interface| interface.receiving.insert(message, receiving.clone()));
        self.arrivals.hear(from, message);
        receiving
    }

    /// Queues the deposit of a packet in its receive's buffer; bytes beyond the buffer are left out.
    fn come(&self, receiving: &Rc<Receiving>, offset: u64, payload: Payload, mut path: Path, slot: Slot) {
        let bytes = payload.len();
        receiving.come.set(offset + bytes);
        if receiving.come.get() == receiving.bytes {
            self.interface(receiving.vni, |interface| interface.receiving.remove(&receiving.message));
        }
        path.follow(&receiving.path.borrow());
        let room = receiving.room.saturating_sub(offset);
        let fits = bytes <= room;
        if bytes == 0 || room == 0 {
            self.vacate(slot, receiving.message, &path);
            return self.settled(receiving, bytes, &path);
        }
        let payload = if fits { payload } else { payload.part(0, room) };
        let receiving = receiving.clone();
        // Bytes beyond the buffer need no deposit.
        receiving.settled.set(receiving.settled.get() + bytes - payload.len());
        self.enqueue(Transfer::Deposit(Deposit {
            receiving,
            offset,
            bytes: payload.len(),
            payload,
            slot,
            path,
        }));
    }

    /// A deposit has ended.
    pub(super) fn settle(&self, deposit: Deposit) {
        let Deposit { receiving, offset, bytes, slot, path, .. } = deposit;
        self.recorder.packet_settled(receiving.message, offset, path.at());
        self.vacate(slot, receiving.message, &path);
        self.settled(&receiving, bytes, &path);
    }

    /// Counts so many bytes of a message as done; after the last one its doorbell is queued.
    fn settled(&self, receiving: &Rc<Receiving>, bytes: u64, path: &Path) {
        receiving.path.borrow_mut().follow(path);
        receiving.settled.set(receiving.settled.get() + bytes);
        if receiving.settled.get() == receiving.bytes && receiving.come.get() == receiving.bytes {
            let Receiving { vni, operation, message, from, tag, bytes, room, .. } = **receiving;
            let completed = Completed { peer: from, tag, bytes, truncated: bytes > room };
            let doorbell =
                Doorbell { vni, operation, message, completed, path: receiving.path.borrow().clone() };
            self.enqueue(Transfer::Doorbell(doorbell));
        }
    }

    /// Keeps a packet in the card's memory. Without memory it stays in the packet buffer and blocks those behind it.
    fn keep(&self, waiting: Rc<Waiting>, packet: Packet, slot: Slot) {
        let memory = packet.payload.len() + self.spec.memory.status;
        if !self.card_memory.borrow_mut().take(memory) {
            self.count(|counted| counted.held_back += 1);
            self.arrivals.queue.borrow_mut().push_front(Arrived { packet, slot });
            self.arrivals.held_back.set(true);
            return;
        }
        self.count(|counted| {
            counted.packets_received += 1;
            counted.buffered += 1;
        });
        let Packet { offset, payload, path, message, .. } = packet;
        self.vacate(slot, message, &path);
        if offset == 0 {
            self.recorder.message_matched(message, self.sim.now(), "buffered");
            self.interface(waiting.header.to, |interface| interface.matching.keep(waiting.clone()));
            self.arrivals.hear(waiting.from, message);
        }
        waiting.come.set(offset + payload.len());
        waiting.packets.borrow_mut().push(Kept { offset, payload, memory, path });
    }

    /// Frees a packet's location.
    fn vacate(&self, slot: Slot, message: MessageId, path: &Path) {
        match slot {
            Slot::Link => self.port.free_slot(),
            Slot::Staged(place) => self.unstage(place, message, path),
            Slot::Memory(bytes) => {
                self.card_memory.borrow_mut().give_back(bytes);
                self.let_on();
            }
        }
    }

    /// Posts a receive: it takes the oldest message that matches, or waits.
    pub(super) async fn post(self: &Rc<Card>, vni: u32, mut receive: ReceiveCommand) {
        let found = self.interface(vni, |interface| {
            interface.matching.take_message(|waiting| receive.takes(waiting.from, waiting.header.tag))
        });
        let (waiting, compared) = found.unwrap_or_default();
        self.work(self.spec.program.compare * compared, &mut receive.path).await;
        match waiting {
            Some(waiting) => {
                let Waiting { message, from, header, ref packets, .. } = *waiting;
                let receiving = self.begin(vni, receive, message, from, header);
                for Kept { offset, payload, memory, path } in packets.take() {
                    self.come(&receiving, offset, payload, path, Slot::Memory(memory));
                }
            }
            None => {
                self.interface(vni, |interface| interface.matching.post(receive));
            }
        }
        self.let_on();
    }

    /// Frees the card memory of a closed interface. Returns the number of messages without a receive.
    pub(super) fn forget(&self, matching: &Matching<ReceiveCommand, Rc<Waiting>>) -> u64 {
        for message in matching.messages() {
            for kept in message.packets.take() {
                self.card_memory.borrow_mut().give_back(kept.memory);
            }
        }
        matching.messages().len() as u64
    }
}
