//! From the link to a receive, or into the card's memory until there is one.

use super::header::Header;
use super::interface::ReceiveCommand;
use super::library::Completed;
use super::transfer::{Deposit, Doorbell, Transfer};
use super::{Card, Endpoint};
use nicety_fabric::Packet;
use nicety_kernel::Permit;
use nicety_types::{MessageId, Path, Payload};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Where a packet lies.
pub(super) enum Slot {
    /// In the packet buffer of the link.
    Link,
    /// Where it was staged by the same card, if not in a Context Region.
    Staged(Option<Permit>),
    /// In so many bytes of the card's memory.
    Memory(u64),
}

/// A packet that has come.
pub(super) struct Arrived {
    pub(super) packet: Packet,
    pub(super) slot: Slot,
}

/// Packets that the control program has not looked at.
#[derive(Default)]
pub(super) struct Arrivals {
    queue: RefCell<VecDeque<Arrived>>,
    /// The first one finds no memory, and nothing has changed since.
    held_back: Cell<bool>,
    /// The last messages of each interface that has sent any, to know one that comes twice.
    heard: RefCell<BTreeMap<Endpoint, VecDeque<u64>>>,
}

/// Messages of an interface that are remembered: twice as many as it may have under way.
const REMEMBERED: usize = 64;

impl Arrivals {
    /// Whether a message has begun to come before, or is older than all that are remembered.
    fn has_heard(&self, from: Endpoint, message: MessageId) -> bool {
        let heard = self.heard.borrow();
        let Some(last) = heard.get(&from) else { return false };
        let too_old =
            last.len() == REMEMBERED && last.iter().min().is_some_and(|&oldest| message.sequence < oldest);
        too_old || last.contains(&message.sequence)
    }

    fn hear(&self, from: Endpoint, message: MessageId) {
        let mut heard = self.heard.borrow_mut();
        let last = heard.entry(from).or_default();
        if last.contains(&message.sequence) {
            // It waited for its receive.
            return;
        }
        if last.len() == REMEMBERED {
            last.pop_front();
        }
        last.push_back(message.sequence);
    }
}

/// A message on its way into a receive.
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
    /// Bytes that are in host memory, or beyond the receive's room.
    settled: Cell<u64>,
    /// Accounts for the last of them.
    path: Cell<Path>,
}

/// A message that nobody receives yet.
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

/// What a packet belongs to.
enum Belongs {
    Receiving(Rc<Receiving>),
    Waiting(Rc<Waiting>),
    /// The first packet of a message that no receive takes.
    Unexpected,
    /// Nobody has the interface.
    Stray,
    /// It is out of place.
    Unusable,
}

impl Card {
    /// Takes packets off the link.
    pub(super) async fn listen(self: Rc<Card>) {
        loop {
            let packet = self.port.receive().await;
            if packet.is_control() {
                // No card sends such, and it has no place in the buffer.
                self.count(|counted| counted.unusable += 1);
                continue;
            }
            if [packet.source, packet.message.source].contains(&self.node) {
                // The card stages what it sends to itself: this would pass for a part of such a message.
                self.count(|counted| counted.unusable += 1);
                self.port.free_slot();
                continue;
            }
            self.arrived(Arrived { packet, slot: Slot::Link });
        }
    }

    pub(super) fn arrived(&self, arrived: Arrived) {
        let Packet { message, offset, .. } = arrived.packet;
        self.recorder.packet_arrived(message, offset, self.sim.now());
        self.arrivals.queue.borrow_mut().push_back(arrived);
        self.changed.notify_all();
    }

    /// Whether there is a packet to be looked at.
    pub(super) fn has_packet(&self) -> bool {
        !self.arrivals.held_back.get() && !self.arrivals.queue.borrow().is_empty()
    }

    /// Something has changed that a packet without memory may have waited for.
    pub(super) fn let_on(&self) {
        self.arrivals.held_back.set(false);
        self.changed.notify_all();
    }

    /// Takes a packet that came: into its receive, or into the card's memory.
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

    /// Whether a packet may be what its header says: a part of a message, of an interface of another card.
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

    /// What a packet belongs to. Compares the first one of a message with the receives that are posted.
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
            if let Some(waiting) = interface.waiting.iter().find(|waiting| waiting.message == message) {
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
            let found = interface.receives.iter().position(|receive| receive.takes(from, header.tag));
            let compared = found.map_or(interface.receives.len(), |at| at + 1);
            (found.and_then(|at| interface.receives.remove(at)), compared as u64)
        });
        let (receive, compared) = found.unwrap_or_default();
        self.work(self.spec.program.compare * compared, &mut packet.path).await;
        let Some(receive) = receive else { return Belongs::Unexpected };
        self.recorder.message_matched(message, self.sim.now(), "receiving");
        Belongs::Receiving(self.begin(header.to, receive, message, from, header))
    }

    /// A receive has got a message.
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
            path: Cell::new(receive.path),
        });
        self.interface(vni, |interface| interface.receiving.insert(message, receiving.clone()));
        self.arrivals.hear(from, message);
        receiving
    }

    /// Has a packet brought where its receive says; what is beyond its room is left out.
    fn come(&self, receiving: &Rc<Receiving>, offset: u64, payload: Payload, mut path: Path, slot: Slot) {
        let bytes = payload.len();
        receiving.come.set(offset + bytes);
        if receiving.come.get() == receiving.bytes {
            self.interface(receiving.vni, |interface| interface.receiving.remove(&receiving.message));
        }
        path.follow(&receiving.path.get());
        let room = receiving.room.saturating_sub(offset);
        let fits = bytes <= room;
        if bytes == 0 || room == 0 {
            self.vacate(slot, receiving.message, &path);
            return self.settled(receiving, bytes, &path);
        }
        let payload = if fits { payload } else { payload.part(0, room) };
        let receiving = receiving.clone();
        // What does not fit is settled by being left out.
        receiving.settled.set(receiving.settled.get() + bytes - payload.len());
        self.enqueue(Transfer::Deposit(Deposit { receiving, offset, payload, slot, path }));
    }

    /// A deposit has ended.
    pub(super) fn settle(&self, deposit: Deposit) {
        let Deposit { receiving, offset, payload, slot, path } = deposit;
        self.recorder.packet_settled(receiving.message, offset, path.at());
        self.vacate(slot, receiving.message, &path);
        self.settled(&receiving, payload.len(), &path);
    }

    /// So many bytes more of a message are done with; after the last the process hears of it.
    fn settled(&self, receiving: &Rc<Receiving>, bytes: u64, path: &Path) {
        let mut latest = receiving.path.get();
        latest.follow(path);
        receiving.path.set(latest);
        receiving.settled.set(receiving.settled.get() + bytes);
        if receiving.settled.get() == receiving.bytes && receiving.come.get() == receiving.bytes {
            let Receiving { vni, operation, message, from, tag, bytes, room, .. } = **receiving;
            let completed = Completed { peer: from, tag, bytes, truncated: bytes > room };
            let doorbell = Doorbell { vni, operation, message, completed, path: latest };
            self.enqueue(Transfer::Doorbell(doorbell));
        }
    }

    /// Keeps a packet in the card's memory. Without memory it stays where it is, and what comes behind it waits.
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
            self.interface(waiting.header.to, |interface| interface.waiting.push_back(waiting.clone()));
            self.arrivals.hear(waiting.from, message);
        }
        waiting.come.set(offset + payload.len());
        waiting.packets.borrow_mut().push(Kept { offset, payload, memory, path });
    }

    /// Where a packet lay is free again.
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

    /// Posts a receive: for the oldest message that waits for one like it, or for one to come.
    pub(super) async fn post(self: &Rc<Card>, vni: u32, mut receive: ReceiveCommand) {
        let found = self.interface(vni, |interface| {
            let found =
                interface.waiting.iter().position(|waiting| receive.takes(waiting.from, waiting.header.tag));
            let compared = found.map_or(interface.waiting.len(), |at| at + 1);
            (found.and_then(|at| interface.waiting.remove(at)), compared as u64)
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
                self.interface(vni, |interface| interface.receives.push_back(receive));
            }
        }
        self.let_on();
    }

    /// An interface is closed: gives its memory back. Returns how many messages nobody will receive.
    pub(super) fn forget(&self, waiting: VecDeque<Rc<Waiting>>) -> u64 {
        for message in &waiting {
            for kept in message.packets.take() {
                self.card_memory.borrow_mut().give_back(kept.memory);
            }
        }
        waiting.len() as u64
    }
}
