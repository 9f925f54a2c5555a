//! A relay between two cards. It receives packets from each card and sends them to the other card.

use nicety_fabric::{HeaderBytes, Label, Network, NetworkSpec, Packet, PacketBox, Port, Symbol, Topology};
use nicety_kernel::{Channel, Config, Sim, World};
use nicety_types::{Buffer, Flight, MessageId, NodeId, Path, Payload, Segment};
use std::cell::Cell;
use std::rc::Rc;

/// The form in which the relay forwards packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relay {
    /// The relay forwards packets unchanged.
    Unchanged,
    /// The relay builds new packets from the bytes, the destination and the virtual channel of the received packets.
    FromBytes,
}

/// Returns a simulation of two nodes that a relay connects. Also returns the ports for the two cards, and the network
/// of the first card's link.
pub fn link(relay: Relay, spec: &NetworkSpec) -> (World<Symbol>, [Port; 2], Network) {
    let mut world = World::new(Config::default());
    let [a, b, between] = [(); 3].map(|()| world.add_node());
    let mut join = |node| {
        let (ports, network) = Topology::Pair.build(&mut world, &[node, between], spec).unwrap();
        let [near, far] = ports.try_into().ok().expect("two ports");
        (near, Rc::new(far), network)
    };
    let ((port_a, far_a, network), (port_b, far_b, _)) = (join(a), join(b));
    let sim = world.sim(between);
    for (from, to) in [(far_a.clone(), far_b.clone()), (far_b, far_a)] {
        let come = Rc::new(Channel::new(&sim, 64));
        sim.spawn(take(from.clone(), come.clone()));
        sim.spawn(carry(sim.clone(), relay, (from, come), to));
    }
    (world, [port_a, port_b], network)
}

/// Moves packets from a port to a channel. A port accepts credits only while it waits for packets, so this task always
/// waits.
async fn take(from: Rc<Port>, come: Rc<Channel<PacketBox>>) {
    loop {
        come.send(from.receive().await).await.unwrap();
    }
}

async fn carry(sim: Sim, relay: Relay, (from, come): (Rc<Port>, Rc<Channel<PacketBox>>), to: Rc<Port>) {
    let packets = Cell::new(0);
    loop {
        let packet = come.recv().await.unwrap();
        let control = packet.is_control();
        let packet = match relay {
            Relay::Unchanged => packet.open(),
            Relay::FromBytes => anew(&packet, packets.replace(packets.get() + 1), Path::from(sim.now())),
        };
        let flight = Flight::resting(packet.path.clone());
        let turn = if control { to.control_turn(flight).await } else { to.turn(flight).await };
        let handed = to.launch(packet, turn);
        sim.until(handed.at()).await;
        if !control {
            from.free_slot();
        }
    }
}

/// Returns a new packet with the same bytes, destination and virtual channel. The other fields of its label are
/// arbitrary.
fn anew(packet: &Packet, count: u64, path: Path) -> Packet {
    let destination = packet.label.destination;
    let message = MessageId { source: NodeId(7 + count as u32 % 3), sequence: count % 5 };
    let header = HeaderBytes::new(packet.header.as_slice());
    let mut payload = Payload::empty();
    for segment in packet.payload.segments() {
        payload.push(match segment {
            Segment::Real(bytes) => {
                Segment::Real(Buffer::filled_by(bytes.len(), |into| into.copy_from_slice(bytes)))
            }
            Segment::Phantom(bytes) => Segment::Phantom(*bytes),
        });
    }
    let label = Label { destination, message, offset: count * 8 % 24 };
    Packet { label, channel: packet.channel, header, payload, path }
}
