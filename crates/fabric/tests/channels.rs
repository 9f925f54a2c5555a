//! Virtual channels of a link: each channel has its own buffer and credits, and all channels share the wire.

use nicety_fabric::{Channel, HeaderBytes, Label, LinkProtocol, LinkSpec, Packet, Symbol};
use nicety_kernel::{Config, World};
use nicety_types::{Duration, Flight, Gap, MessageId, NodeId, Path, Payload, Time};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Size of a packet in bytes, and time in ps from its start to its arrival. It takes 20 ns on the wire and 33.4 ns of
/// latency.
const BYTES: u64 = 1000;
const FLIGHT: u64 = 20_000 + 33_400;

/// An arrived packet: time in picoseconds, virtual channel, and number on that channel.
type ArrivedPacket = (u64, u8, u64);

/// Sends packets on each channel as fast as possible. The receiver frees a packet's slot some time after the packet's
/// arrival. This time is in `freed` by channel, in picoseconds. `None` means that the slot is never freed.
fn run(buffer: u32, packets: &[u64], freed: &[Option<u64>], shards: usize) -> Vec<ArrivedPacket> {
    let channels = packets.len() as u8;
    let latency = Duration::from_ps(33_400);
    let spec =
        LinkSpec { latency, gap: Gap::new(20, 1), header: 0, buffer, channels, protocol: LinkProtocol::NONE };
    let mut world: World<Symbol> = World::new(Config { shards, ..Config::default() });
    let (a, b) = (world.add_node(), world.add_node());
    let (near, far) = nicety_fabric::pair(&mut world, a, b, spec);
    let (near, far) = (Rc::new(near), Rc::new(far));
    let sim = world.sim(a);
    for (channel, &packets) in (0..).zip(packets) {
        let (port, sim) = (near.clone(), sim.clone());
        sim.clone().spawn(async move {
            for sequence in 0..packets {
                let turn = port.turn_on(channel, Flight::resting(Path::from(sim.now()))).await;
                let label = Label { destination: b, message: MessageId { source: a, sequence }, offset: 0 };
                let packet = Packet {
                    label,
                    channel: Channel::Data(channel),
                    header: HeaderBytes::new(&[]),
                    payload: Payload::phantom(BYTES),
                    path: Path::from(Time::ZERO),
                };
                let handed = port.launch(packet, turn);
                sim.until(handed.at()).await;
            }
        });
    }
    // A port collects credits only while it waits for packets.
    sim.spawn(async move { while !near.receive().await.is_control() {} });
    let came = Rc::new(RefCell::new(Vec::new()));
    let (sim, freed, seen) = (world.sim(b), freed.to_vec(), came.clone());
    sim.clone().spawn(async move {
        loop {
            let packet = far.receive().await;
            let Channel::Data(channel) = packet.channel else { panic!("no control packet was sent") };
            seen.borrow_mut().push((sim.now().ps(), channel, packet.label.message.sequence));
            if let Some(after) = freed[usize::from(channel)] {
                let (port, sim) = (far.clone(), sim.clone());
                sim.clone().spawn(async move {
                    sim.delay(Duration::from_ps(after)).await;
                    port.free_slot_on(channel);
                });
            }
        }
    });
    world.run().unwrap();
    came.take()
}

fn on(came: &[ArrivedPacket], channel: u8) -> Vec<(u64, u64)> {
    came.iter().filter(|came| came.1 == channel).map(|came| (came.0, came.2)).collect()
}

#[test]
fn a_full_channel_does_not_stop_the_other() {
    // With one slot per channel, a packet waits for the credit of the preceding packet. The credit takes 33.4 ns.
    let came = run(1, &[3, 3], &[Some(0), None], 1);
    let again = FLIGHT + 33_400;
    assert_eq!(on(&came, 0), [(FLIGHT, 0), (FLIGHT + again, 1), (FLIGHT + 2 * again, 2)]);
    // The first packet of channel 1 waits until channel 0's packet has left the wire. The slot of channel 1 is never
    // freed.
    assert_eq!(on(&came, 1), [(FLIGHT + 20_000, 0)]);
    // Now channel 1 frees slots at once, and channel 0 frees a slot after 300 ns.
    let came = run(1, &[2, 3], &[Some(300_000), Some(0)], 1);
    assert_eq!(on(&came, 0), [(FLIGHT, 0), (2 * FLIGHT + 300_000 + 33_400, 1)]);
    let first = FLIGHT + 20_000;
    assert_eq!(on(&came, 1), [(first, 0), (first + again, 1), (first + 2 * again, 2)]);
}

#[test]
#[should_panic(expected = "a credit is of one virtual channel")]
fn a_packet_takes_no_credit_of_another_channel() {
    let spec = LinkSpec {
        latency: Duration::from_ns(1),
        gap: Gap::new(1, 1),
        header: 0,
        buffer: 1,
        channels: 2,
        protocol: LinkProtocol::NONE,
    };
    let mut world: World<Symbol> = World::new(Config::default());
    let (a, b) = (world.add_node(), world.add_node());
    let (port, _far) = nicety_fabric::pair(&mut world, a, b, spec);
    world.sim(a).spawn(async move {
        let path = Path::from(Time::ZERO);
        let turn = port.turn_on(1, Flight::resting(path.clone())).await;
        let label = Label { destination: NodeId(1), message: MessageId::default(), offset: 0 };
        let (header, payload) = (HeaderBytes::new(&[]), Payload::empty());
        port.launch(Packet { label, channel: Channel::Data(0), header, payload, path }, turn);
    });
    world.run().unwrap();
}

proptest! {
    #[test]
    fn channels_wait_for_their_own_slots_alone(
        buffer in 1..4u32,
        channels in prop::collection::vec((0..12u64, prop::option::of(0..400_000u64)), 1..5),
        stuck: prop::sample::Index,
    ) {
        let (packets, freed): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
        let came = run(buffer, &packets, &freed, 1);
        for (channel, (&packets, freed)) in (0..).zip(packets.iter().zip(&freed)) {
            let (times, numbers): (Vec<_>, Vec<_>) = on(&came, channel).into_iter().unzip();
            let expected = if freed.is_some() { packets } else { packets.min(buffer.into()) };
            prop_assert_eq!(numbers, (0..expected).collect::<Vec<_>>(), "channel {}", channel);
            // A slot is used again only after the receiver has freed it and its credit has returned.
            for (before, after) in times.iter().zip(times.iter().skip(buffer as usize)) {
                prop_assert!(before + freed.unwrap() + 33_400 + FLIGHT <= *after);
            }
        }
        // The wire carries one packet at a time.
        prop_assert!(came.is_sorted_by(|a, b| a.0 + 20_000 <= b.0));
        prop_assert_eq!(&came, &run(buffer, &packets, &freed, 2));
        // If one channel is stuck, the other channels send as many packets as before.
        let mut fewer = freed;
        let stuck = stuck.index(packets.len());
        fewer[stuck] = None;
        let others = run(buffer, &packets, &fewer, 1);
        for channel in (0..packets.len()).filter(|&channel| channel != stuck) {
            prop_assert_eq!(on(&others, channel as u8).len(), on(&came, channel as u8).len());
        }
    }
}
