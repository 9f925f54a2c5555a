//! A card's loopback path: packets of a node to itself turn round on its card and never reach the link.
//!
//! The packet is on the card already, so turning round takes no time: it is in the packet buffer as soon as its last
//! byte has come to the card, one packet after another. It needs a buffer slot until the card has processed it; there
//! are as many slots as the link has, and separate ones, so that neither path blocks the other.

use nicety_fabric::{Packet, Parcel};
use nicety_kernel::{Channel, Credits, Permit, Sim};
use nicety_types::{Flight, Path, Recorder, Stage, Time};
use std::cell::Cell;

/// A packet's turn; if dropped without a launch, its slot is free again.
pub(crate) struct Turn {
    flight: Flight,
    place: Permit,
}

/// The path from a card's send engine to its packet buffer.
pub(crate) struct Loopback {
    sim: Sim,
    places: Credits,
    coming: Channel<Parcel>,
    /// When the previous packet will have come.
    last: Cell<Time>,
    packets: Cell<u64>,
    recorder: Recorder,
}

impl Loopback {
    /// A path with so many slots.
    pub(crate) fn new(sim: &Sim, places: u32, recorder: &Recorder) -> Loopback {
        Loopback {
            places: Credits::new(sim, u64::from(places)),
            coming: Channel::new(sim, places as usize),
            last: Cell::new(Time::ZERO),
            packets: Cell::new(0),
            recorder: recorder.clone(),
            sim: sim.clone(),
        }
    }

    /// When the earlier packets will have come.
    pub(crate) fn free(&self) -> Time {
        self.last.get()
    }

    /// Number of packets so far.
    pub(crate) fn packets(&self) -> u64 {
        self.packets.get()
    }

    /// Waits until a packet that arrives as `flight` says may start. One sender at a time; [`Loopback::launch`]
    /// follows at the same instant.
    pub(crate) async fn turn(&self, mut flight: Flight) -> Turn {
        let place = self.places.acquire(1).await;
        self.sim.until(flight.head.max(self.free())).await;
        let now = self.sim.now();
        if now > flight.head {
            flight.path.advance(Stage::SEND_QUEUED, now);
            (flight.head, flight.tail) = (now, flight.tail.max(now));
        }
        Turn { flight, place }
    }

    /// Launches a packet at its turn. Returns the path up to its last byte.
    pub(crate) fn launch(&self, mut packet: Packet, turn: Turn) -> Path {
        let Turn { flight, place } = turn;
        place.forget();
        self.packets.set(self.packets.get() + 1);
        let (label, bytes) = (packet.label, packet.payload.len());
        self.recorder.packet_sent(label.message, label.offset, bytes, self.sim.now());
        let path = flight.landed();
        packet.path = path.clone();
        self.last.set(path.at());
        self.coming.try_send(Parcel::new(packet)).expect("a place for each packet");
        path
    }

    /// The next complete packet.
    pub(crate) async fn receive(&self) -> Parcel {
        let packet = self.coming.recv().await.expect("the way is never closed");
        self.sim.until(packet.path.at()).await;
        packet
    }

    /// Frees the slot of a packet that the card has processed.
    pub(crate) fn free_slot(&self) {
        self.places.release(1);
    }
}
