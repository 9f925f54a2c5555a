//! A card's loopback path: packets from a node to itself stay on its card and never reach the link.
//!
//! The packet is already on the card, so the loopback path takes no simulated time. Packets enter the packet buffer one
//! after another, each when its last byte has arrived at the card. A packet needs a buffer slot until the card has
//! processed it. The loopback path has as many slots as the link, and its own slots. So neither the link nor the
//! loopback path blocks the other.

use nicety_fabric::PacketBox;
use nicety_kernel::{Channel, Credits, Permit, Sim};
use nicety_types::{Flight, Path, Recorder, Stage, Time};
use std::cell::Cell;

/// A packet's turn on the loopback path. A turn that is dropped without a launch frees its slot.
pub struct Turn {
    flight: Flight,
    place: Permit,
}

/// The path from a card's send engine to its packet buffer.
pub struct Loopback {
    sim: Sim,
    places: Credits,
    coming: Channel<PacketBox>,
    /// Arrival time of the previous packet.
    last: Cell<Time>,
    packets: Cell<u64>,
    recorder: Recorder,
}

impl Loopback {
    /// Returns a path with this number of slots.
    pub fn new(sim: &Sim, places: u32, recorder: &Recorder) -> Loopback {
        Loopback {
            places: Credits::new(sim, u64::from(places)),
            coming: Channel::new(sim, places as usize),
            last: Cell::new(Time::ZERO),
            packets: Cell::new(0),
            recorder: recorder.clone(),
            sim: sim.clone(),
        }
    }

    /// Arrival time of the previous packet's last byte.
    pub fn free(&self) -> Time {
        self.last.get()
    }

    /// Number of packets so far.
    pub fn packets(&self) -> u64 {
        self.packets.get()
    }

    /// Waits until a packet may start. `flight` has the times at which the packet's first and last byte arrive at the
    /// card. Only one sender may wait at a time. The sender must call [`Loopback::launch`] at the instant when this
    /// returns.
    pub async fn turn(&self, mut flight: Flight) -> Turn {
        let place = self.places.acquire(1).await;
        self.sim.until(flight.head.max(self.free())).await;
        let now = self.sim.now();
        if now > flight.head {
            flight.path.advance(Stage::SEND_QUEUED, now);
            (flight.head, flight.tail) = (now, flight.tail.max(now));
        }
        Turn { flight, place }
    }

    /// Launches a packet at its turn. Returns the path up to the packet's last byte.
    pub fn launch(&self, packet: impl Into<PacketBox>, turn: Turn) -> Path {
        let mut packet = packet.into();
        let Turn { flight, place } = turn;
        place.forget();
        self.packets.set(self.packets.get() + 1);
        let (label, bytes) = (packet.label, packet.payload.len());
        self.recorder.packet_sent(label.message, label.offset, bytes, self.sim.now());
        let path = flight.landed();
        packet.path = path.clone();
        self.last.set(path.at());
        self.coming.try_send(packet).expect("a place for each packet");
        path
    }

    /// Returns the next packet when it is complete.
    pub async fn receive(&self) -> PacketBox {
        let packet = self.coming.recv().await.expect("the way is never closed");
        self.sim.until(packet.path.at()).await;
        packet
    }

    /// Frees the slot of a packet that the card has processed.
    pub fn free_slot(&self) {
        self.places.release(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_fabric::{Channel as Flow, HeaderBytes, Label, Packet};
    use nicety_kernel::{Config, World};
    use nicety_types::{MessageId, NodeId, Payload};
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn packets_come_in_order_with_their_last_bytes_and_wait_for_slots() {
        let ns = |ns: u64| Time::from_ps(1000 * ns);
        let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
        let node = world.add_node();
        let sim = world.sim(node);
        let way = Rc::new(Loopback::new(&sim, 2, &Recorder::off()));
        let (came, (end, own)) = (Rc::new(RefCell::new(Vec::new())), (way.clone(), sim.clone()));
        let seen = came.clone();
        sim.spawn_program("receiver", async move {
            for _ in 0..3 {
                let packet = end.receive().await;
                seen.borrow_mut().push((packet.label.message.sequence, own.now()));
                // The receiver frees the slot of the first packet. The slot of the second packet stays taken.
                if packet.label.message.sequence == 0 {
                    own.until(ns(40)).await;
                    end.free_slot();
                }
            }
        });
        sim.spawn_program("sender", async move {
            let mut queued = Vec::new();
            // Number of each packet, and times at which its first and last byte arrive at the card.
            for (sequence, head, tail) in [(0, 0, 10), (1, 4, 25), (2, 6, 7)] {
                let (path, slowest) = (Path::from(ns(head)), Stage::BUS);
                let turn = way.turn(Flight { head: ns(head), tail: ns(tail), path, slowest }).await;
                let message = MessageId { source: NodeId(0), sequence };
                let label = Label { destination: NodeId(0), message, offset: 0 };
                let (header, payload) = (HeaderBytes::new(&[]), Payload::empty());
                let path = Path::from(Time::ZERO);
                let handed =
                    way.launch(Packet { label, channel: Flow::Data(0), header, payload, path }, turn);
                queued.push((handed.total(Stage::SEND_QUEUED).ns(), handed.at()));
            }
            // The second packet waits until the first has arrived, and the third packet waits for a slot.
            assert_eq!(queued, [(0.0, ns(10)), (6.0, ns(25)), (34.0, ns(40))]);
            assert_eq!((way.packets(), way.free()), (3, ns(40)));
        });
        world.run().unwrap();
        // The receiver takes the second packet only after it has processed the first packet.
        assert_eq!(*came.borrow(), [(0, ns(10)), (1, ns(40)), (2, ns(40))]);
    }
}
