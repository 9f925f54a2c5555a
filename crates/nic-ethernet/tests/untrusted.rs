//! Tests a card with forged frames. A frame on the link has a check sequence of 4 bytes as its header.

use nicety_fabric::Symbol;
use nicety_kernel::World;
use nicety_nic_ethernet::{EthernetSpec, Node, Report, SocketKind, Sockets};
use nicety_nic_testing::Host;
use nicety_nic_testing::forger::{self, Forged, noise, number};
use nicety_spec::{SHIPPED, Spec};
use nicety_types::{Duration, NodeId, Path, Payload, Time};
use proptest::prelude::*;
use std::net::IpAddr;

/// Runs a host that waits for connections and datagrams, and a forger. Returns the host's report.
fn run(frames: Vec<Forged>) -> Report {
    let spec = Spec::load("niagara2-niu", &[], SHIPPED).unwrap();
    let (card, _) = nicety_nic_core::read(&spec, &[nicety_nic_ethernet::DESIGN]).unwrap();
    let node_spec = card.of::<EthernetSpec>().unwrap().node;
    let (mut world, port, other): (World<Symbol>, _, _) = forger::link(node_spec.link);
    let Host { card, sim, .. } = Host::install(&card, world.sim(NodeId(0)), port, 2);
    let node = card.of::<Node>().unwrap();
    let own = node.clone();
    let clock = sim.clone();
    sim.spawn_program("host", async move {
        let (sockets, mut path) = (own.sockets(), Path::from(Time::ZERO));
        let listening = sockets.open(SocketKind::Stream);
        sockets.bind(0, listening, 80, &mut path).await.unwrap();
        sockets.listen(0, listening, 2, &mut path).await.unwrap();
        let datagrams = sockets.open(SocketKind::Datagram);
        sockets.bind(0, datagrams, 80, &mut path).await.unwrap();
        // Much later, the host must work as before.
        clock.delay(Duration::from_us(50_000)).await;
        let another = sockets.open(SocketKind::Datagram);
        sockets.bind(0, another, 81, &mut path).await.unwrap();
    });
    forger::send(&world, other, frames, node_spec.link.buffer);
    world.run().unwrap_or_else(|error| panic!("{error}"));
    node.report()
}

/// Returns a frame with a correct check sequence.
fn checked(frame: Vec<u8>, pause: u64) -> Forged {
    let header = crc32fast::hash(&frame).to_le_bytes().to_vec();
    Forged { header, payload: Payload::copy_of(&frame), control: false, pause }
}

fn address(rank: u32) -> [u8; 4] {
    let IpAddr::V4(address) = Sockets::address(rank) else { unreachable!("ranks have IPv4 addresses") };
    address.octets()
}

/// Returns a frame for the host, with IPv4 and these numbers in its headers. If `filled`, the checksum is correct.
fn packet(protocol: u8, [from, to]: [u16; 2], flags: u8, rest: &[u8], filled: bool) -> Vec<u8> {
    let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
    let inner = match protocol {
        6 => [&ports[..], &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 0x20, 0, 0, 0, 0, 0], rest].concat(),
        17 => [&ports[..], &(8 + rest.len() as u16).to_be_bytes(), &[0, 0], rest].concat(),
        _ => rest.to_vec(),
    };
    let total = (20 + inner.len() as u16).to_be_bytes();
    let macs = [2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 8, 0];
    let ip = [0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, protocol, 0, 0];
    let mut frame = [&macs[..], &ip, &address(1), &address(0), &inner].concat();
    if filled {
        let _ = nicety_stack::fill(&mut frame);
    }
    frame
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(64))]

    #[test]
    fn forged_frames_are_dropped(
        frames in prop::collection::vec(
            prop_oneof![
                1 => forger::forged(noise(), noise()),
                2 => (noise(), 0..3000u64).prop_map(|(frame, pause)| checked(frame, pause)),
                6 => (
                    prop::sample::select(vec![6u8, 17, 1, 41]),
                    (number(), prop_oneof![Just(80), Just(1), number()]),
                    any::<u8>(),
                    noise(),
                    prop::bool::weighted(0.8),
                    0..3000u64,
                )
                    .prop_map(|(protocol, ports, flags, rest, filled, pause)| {
                        checked(packet(protocol, [ports.0 as u16, ports.1 as u16], flags, &rest, filled), pause)
                    }),
                1 => (0..9000usize, 0..3000u64).prop_map(|(bytes, pause)| checked(vec![2; bytes], pause)),
            ],
            0..40,
        )
    ) {
        run(frames);
    }
}

#[test]
fn frames_are_dropped_for_what_they_are() {
    let whole = packet(17, [5, 80], 0, b"datagram", true);
    let wrong_sum = packet(17, [5, 80], 0, b"datagram", false);
    let damaged = Forged { header: vec![0; 4], ..checked(whole.clone(), 20_000) };
    let phantom = Forged { payload: Payload::phantom(60), ..damaged.clone() };
    let control = Forged { control: true, ..checked(whole.clone(), 20_000) };
    let frames =
        [damaged, phantom, control, checked(vec![1; 3000], 0), checked(wrong_sum, 0), checked(whole, 0)];
    let report = run(frames.to_vec());
    // The frames that the forger sends at the end are invalid, too.
    assert_eq!(report.card.fcs_errors, 3 + 2 * 64);
    assert_eq!((report.card.too_long, report.card.frames_received, report.dropped), (1, 2, 1));
}
