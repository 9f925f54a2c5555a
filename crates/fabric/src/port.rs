//! A node's end of a link.

use crate::{Packet, Symbol};
use nicety_kernel::{Credits, Permit, Sim, WireRx, WireTx, World};
use nicety_types::{Duration, Flight, Gap, NodeId, Path, Stage, Stream, Time};
use std::cell::{Cell, RefCell};

/// What a link is described by.
#[derive(Clone, Copy, Debug)]
pub struct LinkSpec {
    /// Flight time; at least a picosecond, since it is what lets nodes run apart.
    pub latency: Duration,
    /// Per byte on the wire.
    pub gap: Gap,
    /// Bytes of header and framing on the wire for each packet.
    pub header: u64,
    /// Packets that the buffer at the receiving end holds.
    pub buffer: u32,
}

/// A packet's turn on a link; dropped without a launch, its credit goes back.
pub struct Turn {
    flight: Flight,
    credit: Permit,
}

/// A node's end of a link, both directions.
///
/// A packet starts only with a credit for a slot of the buffer at the other end; the receiver gives it back as a
/// symbol on its own direction of the link, which takes the link's latency and no bandwidth.
pub struct Port {
    sim: Sim,
    spec: LinkSpec,
    link: RefCell<Stream>,
    credits: Credits,
    outgoing: WireTx<Symbol>,
    incoming: WireRx<Symbol>,
    sent: Cell<u64>,
    received: Cell<u64>,
}

impl Port {
    /// Makes the ends of one link out of two wires.
    fn new(sim: Sim, spec: LinkSpec, outgoing: WireTx<Symbol>, incoming: WireRx<Symbol>) -> Port {
        Port {
            spec,
            link: RefCell::new(Stream::new(spec.latency, spec.gap, Stage::Link, Stage::LinkQueued)),
            credits: Credits::new(&sim, u64::from(spec.buffer)),
            outgoing,
            incoming,
            sent: Cell::new(0),
            received: Cell::new(0),
            sim,
        }
    }

    /// When the link's serialiser is free again.
    pub fn free(&self) -> Time {
        self.link.borrow().free()
    }

    /// How long the serialiser has been occupied.
    pub fn busy(&self) -> Duration {
        self.link.borrow().busy()
    }

    /// Packets sent and received so far.
    pub fn packets(&self) -> (u64, u64) {
        (self.sent.get(), self.received.get())
    }

    /// Waits until a packet that comes as `flight` says may start: a credit for the buffer at the other end, its
    /// first byte, the serialiser. One sender at a time; [`Port::launch`] follows at the same instant.
    pub async fn turn(&self, mut flight: Flight) -> Turn {
        let asked = self.sim.now();
        let credit = self.credits.acquire(1).await;
        let granted = self.sim.now();
        if granted > asked && granted > flight.head {
            flight.path.advance(Stage::LinkQueued, granted);
            flight.head = granted;
            flight.tail = flight.tail.max(granted);
        }
        self.sim.until(flight.head.max(self.free())).await;
        Turn { flight, credit }
    }

    /// Puts a packet on the link whose turn it is. Returns the path up to the instant at which its last byte is handed
    /// to the link.
    pub fn launch(&self, mut packet: Packet, turn: Turn) -> Path {
        let Turn { flight, credit } = turn;
        credit.forget();
        let bytes = packet.payload.len() + self.spec.header;
        let landing = self.link.borrow_mut().cross(packet.message, bytes, flight).landed();
        packet.path = landing;
        self.sent.set(self.sent.get() + 1);
        self.outgoing.send(landing.at(), Symbol::Packet(packet));
        let mut handed = flight.path;
        handed.advance(Stage::Link, Time::from_ps(landing.at().ps() - self.spec.latency.ps()));
        handed
    }

    /// The next packet that has come, whole. Takes the credits that come between packets.
    pub async fn receive(&self) -> Packet {
        loop {
            match self.incoming.recv().await {
                Symbol::Packet(packet) => {
                    self.received.set(self.received.get() + 1);
                    return packet;
                }
                Symbol::Credits(slots) => self.credits.release(u64::from(slots)),
                Symbol::Barrier => unreachable!("a barrier symbol on a data link"),
            }
        }
    }

    /// Tells the other end that a slot of this end's packet buffer is free again.
    pub fn free_slot(&self) {
        self.outgoing.send(self.sim.now() + self.spec.latency, Symbol::Credits(1));
    }
}

/// Joins two nodes by a link, both directions alike.
///
/// # Panics
/// When the latency is zero or the buffer holds nothing.
pub fn pair(world: &mut World<Symbol>, a: NodeId, b: NodeId, spec: LinkSpec) -> (Port, Port) {
    assert!(!spec.latency.is_zero(), "a link takes time");
    assert!(spec.buffer > 0, "a link without a buffer never carries a packet");
    let (a_to_b, b_from_a) = world.wire(a, b, spec.latency);
    let (b_to_a, a_from_b) = world.wire(b, a, spec.latency);
    (Port::new(world.sim(a), spec, a_to_b, a_from_b), Port::new(world.sim(b), spec, b_to_a, b_from_a))
}
