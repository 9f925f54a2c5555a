//! A node without a card that sends forged packets.

use nicety_fabric::{Channel, HeaderBytes, Label, LinkSpec, Packet, Port, Symbol};
use nicety_kernel::{Config, World};
use nicety_types::{Duration, Flight, MessageId, NodeId, Path, Payload};
use proptest::prelude::*;
use std::rc::Rc;

/// A forged packet.
#[derive(Clone, Debug)]
pub struct Forged {
    /// The packet's header.
    pub header: Vec<u8>,
    /// The packet's payload.
    pub payload: Payload,
    /// Whether the packet is sent on the control channel.
    pub control: bool,
    /// The forger's pause before the packet, in nanoseconds.
    pub pause: u64,
}

/// Returns two nodes on a link. The first port is for the card, the second for the forger.
pub fn link(spec: LinkSpec) -> (World<Symbol>, Port, Port) {
    let mut world = World::new(Config::default());
    let (card, forger) = (world.add_node(), world.add_node());
    let (a, b) = nicety_fabric::pair(&mut world, card, forger, spec);
    (world, a, b)
}

/// Sends packets to the card, and accepts all packets from it. Then sends packets that need all of the card's `places`
/// buffer slots. So the forger's program ends only if the card has freed all slots.
pub fn send(world: &World<Symbol>, port: Port, packets: Vec<Forged>, places: u32) {
    let (sim, port) = (world.sim(NodeId(1)), Rc::new(port));
    let receiver = port.clone();
    sim.spawn(async move {
        loop {
            if !receiver.receive().await.is_control() {
                receiver.free_slot();
            }
        }
    });
    let last = Forged { header: vec![0xff; 3], payload: Payload::empty(), control: false, pause: 200_000 };
    let all = packets.into_iter().chain((0..2 * places).map(move |_| last.clone()));
    let node = sim.clone();
    sim.spawn_program("forger", async move {
        for forged in all {
            node.delay(Duration::from_ns(forged.pause)).await;
            let flight = Flight::resting(Path::from(node.now()));
            let turn = match forged.control {
                true => port.control_turn(flight.clone()).await,
                false => port.turn(flight.clone()).await,
            };
            // Only the route in the packet's label is correct.
            let message = MessageId { source: NodeId(u32::MAX), sequence: u64::MAX };
            let handed = port.launch(
                Packet {
                    label: Label { destination: NodeId(0), message, offset: u64::MAX },
                    channel: if forged.control { Channel::Control } else { Channel::Data(0) },
                    header: HeaderBytes::new(&forged.header),
                    payload: forged.payload,
                    path: flight.path,
                },
                turn,
            );
            node.until(handed.at()).await;
        }
    });
}

/// Generates small numbers, arbitrary numbers and numbers near limits.
pub fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 0..4u64,
        4 => 0..300u64,
        1 => prop::sample::select(vec![u64::MAX, u64::MAX - 1, 1 << 32, (1 << 32) - 1, 1 << 63, 4096, 65_536]),
        1 => any::<u64>(),
    ]
}

/// Generates a packet with this header and payload.
pub fn forged(
    header: impl Strategy<Value = Vec<u8>>,
    payload: impl Strategy<Value = Vec<u8>>,
) -> impl Strategy<Value = Forged> {
    let phantom = prop_oneof![9 => Just(None), 1 => (0..5000u64).prop_map(Some)];
    let pause = prop_oneof![Just(0), 0..3000u64];
    let control = prop_oneof![19 => Just(false), 1 => Just(true)];
    (header, payload, phantom, pause, control).prop_map(|(header, payload, phantom, pause, control)| {
        let payload = phantom.map_or_else(|| Payload::copy_of(&payload), Payload::phantom);
        Forged { header, payload, control, pause }
    })
}

/// Generates the origin of a packet: the sending node, the number of a message of this node, and an offset in the
/// message. In most cases, the node is the forger.
pub fn origin() -> impl Strategy<Value = (u32, u64, u64)> {
    let source = prop_oneof![18 => Just(1u32), 1 => 0..3u32, 1 => any::<u32>()];
    (source, 0..6u64, prop_oneof![2 => Just(0), 1 => number()])
}

/// Generates arbitrary bytes.
pub fn noise() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..=96)
}
