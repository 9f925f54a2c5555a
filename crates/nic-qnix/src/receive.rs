//! The receive path: from the link to a receive's buffer, or into the card's memory until a receive takes the message.

use crate::interface::{Completed, Kept, ReceiveCommand, Receiving, Slot, Waiting};
use crate::transfer::{Deposit, Doorbell, Transfer};
use crate::wire::Repr;
use crate::{Card, Endpoint};
use nicety_fabric::Packet;
use nicety_nic_core::parts::{DuplicateFilter, Matching};
use nicety_types::{MessageId, Path, Payload};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// A received packet.
struct Arrived {
    /// The parsed header. `None` if the header or the packet is invalid.
    header: Option<Repr>,
    payload: Payload,
    path: Path,
    slot: Slot,
}

/// Packets that the control program has not taken yet.
#[derive(Default)]
pub(super) struct Arrivals {
    queue: RefCell<VecDeque<Arrived>>,
    /// Whether the card had no memory for the first packet, and nothing has changed since.
    held_back: Cell<bool>,
    /// Maps a sending interface to its latest messages.
    heard: RefCell<BTreeMap<Endpoint, DuplicateFilter<REMEMBERED>>>,
}

/// Number of remembered messages for each sending interface.
const REMEMBERED: usize = 64;

impl Arrivals {
    /// Whether a message is a duplicate, or older than all remembered messages.
    fn has_heard(&self, from: Endpoint, message: MessageId) -> bool {
        self.heard.borrow().get(&from).is_some_and(|seen| seen.has(message.sequence))
    }

    fn hear(&self, from: Endpoint, message: MessageId) {
        // For a message that has waited for its receive, this is the second call.
        let _ = self.heard.borrow_mut().entry(from).or_default().note(message.sequence);
    }
}

/// The classification of a packet.
enum PacketClass {
    Receiving(Rc<Receiving>),
    Waiting(Rc<Waiting>),
    /// The first packet of a message without a receive.
    Unexpected,
    /// A packet for an interface that is not open.
    Stray,
    /// A packet out of sequence.
    Unusable,
}

impl Card {
    /// Takes packets from the link.
    pub(super) async fn listen(self: Rc<Card>) {
        loop {
            let packet = self.port.receive().await;
            if packet.is_control() {
                // No card sends a control packet. A control packet occupies no slot of the packet buffer.
                self.count(|counted| counted.unusable += 1);
                continue;
            }
            self.arrived(packet.open(), Slot::Link);
        }
    }

    /// Parses the header of a packet, and queues the packet for the control program.
    pub(super) fn arrived(&self, packet: Packet, slot: Slot) {
        let Packet { header, payload, path, .. } = packet;
        let header = Repr::parse(header.as_slice()).filter(|header| self.may_be(header, &payload, &slot));
        if let Some(header) = &header {
            self.recorder.packet_arrived(header.message(), header.offset, self.sim.now());
        }
        self.arrivals.queue.borrow_mut().push_back(Arrived { header, payload, path, slot });
        self.changed.notify_all();
    }

    /// Whether a packet waits for the control program.
    pub(super) fn has_packet(&self) -> bool {
        !self.arrivals.held_back.get() && !self.arrivals.queue.borrow().is_empty()
    }

    /// Records a change that may have freed memory for a packet that waits in the packet buffer.
    pub(super) fn let_on(&self) {
        self.arrivals.held_back.set(false);
        self.changed.notify_all();
    }

    /// Takes a received packet. Moves it to its receive's buffer or into the card's memory.
    pub(super) async fn take_packet(self: &Rc<Card>) {
        let next = self.arrivals.queue.borrow_mut().pop_front();
        let Some(Arrived { header, payload, mut path, slot }) = next else { return };
        self.work(self.spec.program.receive, &mut path).await;
        let Some(header) = header else { return self.unusable(slot, &path) };
        let belongs = self.belongs(&header, &mut path).await;
        let (message, offset) = (header.message(), header.offset);
        self.recorder.packet_matched(message, offset, self.sim.now());
        let packet = Arrived { header: Some(header), payload, path, slot };
        match belongs {
            PacketClass::Receiving(receiving) => {
                self.count(|counted| counted.packets_received += 1);
                let Arrived { payload, path, slot, .. } = packet;
                self.come(&receiving, offset, payload, path, slot);
            }
            PacketClass::Waiting(waiting) => self.keep(waiting, packet),
            PacketClass::Unexpected => {
                let (come, packets) = (Cell::new(0), RefCell::default());
                self.keep(Rc::new(Waiting { header, come, packets }), packet);
            }
            PacketClass::Stray => {
                let last = offset + packet.payload.len() == header.bytes;
                self.count(|counted| counted.strays += u64::from(last));
                if offset == 0 {
                    self.recorder.message_matched(message, self.sim.now(), "no such interface");
                }
                self.vacate(packet.slot, &packet.path);
            }
            PacketClass::Unusable => self.unusable(packet.slot, &packet.path),
        }
    }

    fn unusable(&self, slot: Slot, path: &Path) {
        self.count(|counted| counted.unusable += 1);
        self.vacate(slot, path);
    }

    /// Whether a header is valid for a packet with this payload: a part of a message to this card. The sender of a
    /// packet from the link must be an interface of another card. The sender of any other packet must be an interface
    /// of this card.
    fn may_be(&self, header: &Repr, payload: &Payload, slot: &Slot) -> bool {
        let Repr { from, to, offset, .. } = *header;
        let (limits, bytes) = (&self.spec.limits, payload.len());
        let end = offset.checked_add(bytes);
        !payload.is_damaged()
            && from.node.0 < self.nodes
            && (from.node == self.node) == matches!(slot, Slot::Staged { .. })
            && to.node == self.node
            && from.vni < limits.vnis
            && header.bytes <= limits.message
            && bytes <= self.spec.packet
            && end.is_some_and(|end| end <= header.bytes)
            // Only an empty message has a packet without payload.
            && (bytes > 0 || header.bytes == 0)
    }

    /// Classifies a packet. The first packet of a message is compared with the posted receives.
    async fn belongs(&self, header: &Repr, path: &mut Path) -> PacketClass {
        let Repr { from, offset, .. } = *header;
        let message = header.message();
        let known = self.interface(header.to.vni, |interface| {
            if let Some(receiving) = interface.receiving.get(&message) {
                let same =
                    (receiving.from, receiving.tag, receiving.bytes) == (from, header.tag, header.bytes);
                let expected = same && receiving.come.get() == offset;
                return Some(if expected {
                    PacketClass::Receiving(receiving.clone())
                } else {
                    PacketClass::Unusable
                });
            }
            if let Some(waiting) = interface.matching.messages().find(|w| w.header.message() == message) {
                // An empty message has no second packet.
                let expected =
                    waiting.header.is_of_message(header) && waiting.come.get() == offset && offset > 0;
                return Some(if expected {
                    PacketClass::Waiting(waiting.clone())
                } else {
                    PacketClass::Unusable
                });
            }
            let begins = offset == 0 && !self.arrivals.has_heard(from, message);
            (!begins).then_some(PacketClass::Unusable)
        });
        let Some(known) = known else { return PacketClass::Stray };
        if let Some(known) = known {
            return known;
        }
        let found = self.interface(header.to.vni, |interface| {
            interface.matching.take_receive(|receive| receive.takes(from, header.tag))
        });
        let (receive, compared) = found.unwrap_or_default();
        self.work(self.spec.program.compare * compared, path).await;
        let Some(receive) = receive else { return PacketClass::Unexpected };
        self.recorder.message_matched(message, self.sim.now(), "receiving");
        PacketClass::Receiving(self.begin(receive, header))
    }

    /// Begins to receive a message into the buffer of a receive.
    fn begin(&self, receive: ReceiveCommand, header: &Repr) -> Rc<Receiving> {
        let Repr { from, to: Endpoint { vni, .. }, .. } = *header;
        let message = header.message();
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

    /// Queues the deposit of a packet into its receive's buffer. Discards bytes beyond the buffer.
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
            self.vacate(slot, &path);
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

    /// Handles a finished deposit.
    pub(super) fn settle(&self, deposit: Deposit) {
        let Deposit { receiving, offset, bytes, slot, path, .. } = deposit;
        self.recorder.packet_settled(receiving.message, offset, path.at());
        self.vacate(slot, &path);
        self.settled(&receiving, bytes, &path);
    }

    /// Counts `bytes` bytes of a message as settled. After the last byte of the message, queues the doorbell of the
    /// receive.
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

    /// Keeps a packet in the card's memory. If the memory is full, the packet stays in the packet buffer and blocks the
    /// packets behind it.
    fn keep(&self, waiting: Rc<Waiting>, packet: Arrived) {
        let memory = packet.payload.len() + self.spec.memory.status;
        if !self.card_memory.borrow_mut().take(memory) {
            self.count(|counted| counted.buffer_stalls += 1);
            self.arrivals.queue.borrow_mut().push_front(packet);
            self.arrivals.held_back.set(true);
            return;
        }
        self.count(|counted| {
            counted.packets_received += 1;
            counted.buffered += 1;
        });
        let Arrived { payload, path, slot, .. } = packet;
        self.vacate(slot, &path);
        let Waiting { header, ref come, .. } = *waiting;
        let offset = come.get();
        if offset == 0 {
            self.recorder.message_matched(header.message(), self.sim.now(), "buffered");
            self.interface(header.to.vni, |interface| interface.matching.keep(waiting.clone()));
            self.arrivals.hear(header.from, header.message());
        }
        come.set(offset + payload.len());
        waiting.packets.borrow_mut().push(Kept { offset, payload, memory, path });
    }

    /// Frees the location of a packet.
    fn vacate(&self, slot: Slot, path: &Path) {
        match slot {
            Slot::Link => self.port.free_slot(),
            Slot::Staged { place, message } => self.unstage(place, message, path),
            Slot::Memory(bytes) => {
                self.card_memory.borrow_mut().give_back(bytes);
                self.let_on();
            }
        }
    }

    /// Posts a receive. The receive takes the oldest message that matches it. Without such a message, the receive
    /// waits.
    pub(super) async fn post(self: &Rc<Card>, vni: u32, mut receive: ReceiveCommand) {
        let found = self.interface(vni, |interface| {
            interface.matching.take_message(|waiting| receive.takes(waiting.header.from, waiting.header.tag))
        });
        let (waiting, compared) = found.unwrap_or_default();
        self.work(self.spec.program.compare * compared, &mut receive.path).await;
        match waiting {
            Some(waiting) => {
                let receiving = self.begin(receive, &waiting.header);
                for Kept { offset, payload, memory, path } in waiting.packets.take() {
                    self.come(&receiving, offset, payload, path, Slot::Memory(memory));
                }
            }
            None => {
                self.interface(vni, |interface| interface.matching.post(receive));
            }
        }
        self.let_on();
    }

    /// Frees the card memory of messages to a closed interface. Returns the number of messages, which no receive has
    /// taken.
    pub(super) fn forget(&self, matching: &Matching<ReceiveCommand, Rc<Waiting>>) -> u64 {
        for message in matching.messages() {
            for kept in message.packets.take() {
                self.card_memory.borrow_mut().give_back(kept.memory);
            }
        }
        matching.messages().len() as u64
    }
}
