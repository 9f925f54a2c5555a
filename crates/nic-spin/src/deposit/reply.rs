//! Gets and atomic operations: their work in host memory, and their replies.
//!
//! A get's reply is fetched like a triggered put: the request and the data cross the bus. An atomic operation reads
//! host memory, computes, and writes the result back. A card executes one atomic operation at a time, in the order in
//! which their bytes arrived. The next operation begins when the previous result has been handed to the bus, where a
//! read does not overtake it. A DMA atomic of a handler waits for an atomic operation on the same memory. So operations
//! of this card are atomic to each other, but not to the host's CPUs.
//!
//! # Freedom from deadlock
//! A get leaves the packet buffer when it has matched, and a reply leaves it when the reply is in host memory. Neither
//! waits for other packets. So gets and their replies, puts and their acknowledgements never block each other, even if
//! the buffers of both cards are full.
//!
//! The number of waiting messages is bounded. `limits.replies` bounds the messages that need a reply: the card refuses
//! further messages. The number of operations of the initiators bounds acknowledgements. The last packet of an atomic
//! operation keeps its slot in the buffer until its turn, which needs only the bus. Handlers that send before they end
//! can block each other across cards, because a payload handler keeps its packet.

use crate::Card;
use crate::stages;
use crate::transmit::{HostPart, Report};
use nicety_kernel::{Pool, Signal, Sim};
use nicety_nic_core::FailureKind;
use nicety_nic_processors::ready::Arrived;
use nicety_portals::{Delivery, FailType, HeaderKind, Reply};
use nicety_types::{MessageId, Path, Payload, Resource, Starter};
use std::cell::Cell;
use std::rc::Rc;

/// The unit that executes atomic operations.
pub(crate) struct Atomics {
    turn: Pool,
    /// The host memory of the operation in progress: address and bytes.
    held: Cell<Option<(u64, u64)>>,
    released: Signal,
}

impl Atomics {
    pub(crate) fn new(sim: &Sim) -> Atomics {
        Atomics { turn: Pool::new(sim, 1), held: Cell::new(None), released: Signal::new(sim) }
    }

    /// Waits until the current operation and the queued operations have ended.
    pub(crate) async fn idle(&self) {
        drop(self.turn.acquire().await);
    }

    /// Waits until no current operation uses this memory.
    pub(crate) async fn clear_of(&self, address: u64, bytes: u64) {
        let held = || self.held.get().is_some_and(|(at, len)| at < address + bytes && address < at + len);
        if held() {
            self.released.wait_until(|| !held()).await;
        }
    }
}

impl Card {
    /// Executes a get or an atomic operation.
    pub(crate) async fn serve(self: Rc<Card>, place: usize, packet: Arrived) {
        let (message, delivery) = {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            (incoming.message, incoming.delivery.expect("only matched messages are served"))
        };
        match delivery.header.kind {
            HeaderKind::Get => {
                self.release_slot(place, packet.offset);
                let path = packet.path.clone();
                drop(packet);
                self.answer(place, &delivery, path).await;
            }
            _ => self.operate(place, message, &delivery, packet).await,
        }
    }

    /// Fetches the requested bytes of a get, and replies.
    async fn answer(self: Rc<Card>, place: usize, delivery: &Delivery, path: Path) {
        if self.dma.memory().check(delivery.start, delivery.mlength).is_err() {
            // The library exposes all addresses to other ranks, so a get may name an address without memory.
            let mut table = self.incoming.borrow_mut();
            table.get(place).fail = FailType::Segv;
            drop(table);
            return self.finish(place, &path);
        }
        let reply = delivery.reply().expect("a get is answered by a reply");
        self.incoming.borrow_mut().get(place).replied();
        let (report, by) = (Some(Report::Replied(place)), Starter::Card);
        if delivery.mlength == 0 {
            return self.send_from_card(reply, Payload::empty(), report, None, path, by);
        }
        let memory = HostPart::at(delivery.start, delivery.mlength);
        self.fetch_and_send(reply, memory, report, None, path, by).await;
    }

    /// Takes a packet of an atomic operation. Executes the operation when all of its bytes have arrived.
    async fn operate(
        self: Rc<Card>,
        place: usize,
        message: MessageId,
        delivery: &Delivery,
        mut packet: Arrived,
    ) {
        let (offset, mut path) = (packet.offset, packet.path.clone());
        let payload = std::mem::take(&mut packet.payload);
        drop(packet);
        let Some(payload) = self.gather(place, offset, payload, &mut path) else {
            return self.settled(place, offset, &path);
        };
        let bytes = delivery.mlength;
        let old = if bytes == 0 {
            Payload::empty()
        } else {
            let turn = self.atomics.turn.acquire().await;
            path.advance(stages::ATOMIC_QUEUED, self.sim.now());
            self.atomics.held.set(Some((delivery.start, bytes)));
            let started = self.sim.now();
            let (old, flight) = self.dma.read(message, delivery.start, bytes, path).await;
            path = flight.landed();
            path.advance(stages::ATOMIC, path.at() + self.spec.atomic);
            self.sim.until(path.at()).await;
            let new = computed(delivery, &old, payload);
            self.reply_with(place, delivery, old, path.clone());
            let handover = self.dma.write(message, delivery.start, bytes, new, path);
            self.recorder.slice(Resource::DMA, started, handover.landed, Some(message), "atomic");
            path = handover.path;
            self.sim.until(path.at()).await;
            self.atomics.held.set(None);
            self.atomics.released.notify_all();
            drop(turn);
            return self.settled(place, offset, &path);
        };
        self.reply_with(place, delivery, old, path.clone());
        self.settled(place, offset, &path);
    }

    /// Sends the old value to the initiator of an atomic operation, if the initiator wants it.
    fn reply_with(self: &Rc<Card>, place: usize, delivery: &Delivery, old: Payload, path: Path) {
        let Some(reply) = delivery.reply() else { return };
        {
            let mut table = self.incoming.borrow_mut();
            table.get(place).replied();
            table.get(place).unsettled += 1;
        }
        self.send_from_card(reply, old, Some(Report::Replied(place)), None, path, Starter::Card);
    }

    /// Collects the payload of an atomic operation. Returns it when the last packet has arrived. Earlier packets leave
    /// the packet buffer at their arrival.
    fn gather(&self, place: usize, offset: u64, payload: Payload, path: &mut Path) -> Option<Payload> {
        let mut table = self.incoming.borrow_mut();
        let incoming = table.get(place);
        let total = incoming.header.payload_bytes();
        if payload.len() == total {
            return Some(payload);
        }
        incoming.pieces.push((offset, payload));
        path.follow(&incoming.path);
        if incoming.pieces.iter().map(|(_, piece)| piece.len()).sum::<u64>() < total {
            return None;
        }
        incoming.pieces.sort_unstable_by_key(|(offset, _)| *offset);
        let mut whole = Payload::empty();
        for (_, piece) in incoming.pieces.drain(..) {
            piece.segments().cloned().for_each(|segment| whole.push(segment));
        }
        Some(whole)
    }

    /// Ends a reply when all of its bytes have been handed to the bus.
    pub(crate) fn replied(self: &Rc<Card>, message: MessageId, reply: &Reply, path: Path) {
        let seen = self.with_effects_of(Some(message), path, |interface, effects| {
            interface
                .complete_reply(reply, FailType::Ok, effects)
                .expect("an operation waits for its reply and ends once");
        });
        self.recorder.message_completed(message, &seen, crate::incoming::outcome(reply.fail));
        if reply.of_card && !reply.fail.is_ok() {
            let text = format!("a handler's get of {} bytes failed: {}", reply.rlength, reply.fail);
            self.processors().report_failure(FailureKind::Refused, None, text);
        }
    }
}

/// Returns the new content of memory after an atomic operation. It is phantom if memory or operand is phantom.
fn computed(delivery: &Delivery, old: &Payload, payload: Payload) -> Payload {
    let atomic = delivery.header.atomic.expect("only atomic operations are computed");
    let missing = || Payload::phantom(delivery.mlength);
    let (Ok(mut new), Ok(brought)) = (old.clone().into_buffer(), payload.into_buffer()) else {
        return missing();
    };
    let (operand, data) = brought.split_at(atomic.operand_bytes());
    let data = &data[..new.len()];
    atomic
        .apply(&mut new, data, operand)
        .expect("the header was checked when it came, and truncation leaves whole items");
    Payload::real(new)
}
