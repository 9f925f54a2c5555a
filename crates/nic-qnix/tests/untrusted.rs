//! Forged packets with QNIX headers of 48 bytes.

use nicety_fabric::Symbol;
use nicety_host::{Cpus, Kernel, Memory};
use nicety_kernel::World;
use nicety_nic_core::Tags;
use nicety_nic_qnix::{Card, Endpoint, Process, QnixSpec, Receive, Send, Statistics, TransferMethod};
use nicety_nic_testing::forger::{self, Forged, forged, noise, number, origin};
use nicety_spec::{SHIPPED, Spec, parse_override};
use nicety_types::{Duration, NodeId, Path, Payload, Recorder, Time};
use proptest::prelude::*;
use std::rc::Rc;
use std::sync::Arc;

/// Returns the header of a packet to node 0. The first argument has the number of the sending node, the message's
/// number at that node, and the packet's offset. The second argument has the numbers of the two interfaces, the
/// message's size and its tag.
fn header((node, message, offset): (u32, u64, u64), [from, to, bytes, tag]: [u64; 4]) -> Vec<u8> {
    let words = [node, from as u32, 0, to as u32].map(u32::to_le_bytes).concat();
    [words, [message, offset, bytes, tag].map(u64::to_le_bytes).concat()].concat()
}

/// Runs a card and a forger. A process of the card has posted receives of all kinds. Returns the card's counters.
fn run(packets: Vec<Forged>) -> Statistics {
    let overrides = ["buffer.packets=4"].map(|text| parse_override(text).unwrap());
    let spec = Spec::load("qnix", &overrides, SHIPPED).unwrap();
    let spec = Arc::new(
        nicety_nic_core::read(&spec, &[nicety_nic_qnix::DESIGN]).unwrap().0.of::<QnixSpec>().unwrap().clone(),
    );
    let (mut world, port, other): (World<Symbol>, _, _) = forger::link(spec.node.link);
    let (sim, recorder) = (world.sim(NodeId(0)), Recorder::off());
    let memory = Rc::new(Memory::new(spec.node.host.memory));
    let cpus = Rc::new(Cpus::new(&sim, spec.node.host, &recorder));
    let kernel = Rc::new(Kernel::new(&sim, &cpus, spec.kernel));
    let card = Card::install(&sim, spec.clone(), memory, kernel, port, 2, &recorder);
    let process = Rc::new(Process::new(&card, 0));
    let own = process.set_up(1 << 16).unwrap();
    let node = sim.clone();
    sim.spawn_program("receiver", async move {
        let mut path = Path::from(Time::ZERO);
        let buffer = process.alloc(200).unwrap();
        for (room, from, tag) in
            [(0, None, Some(1)), (100, Some(1), None), (200, None, Some(0)), (7, Some(0), None)]
        {
            let tags = Tags::exactly_or_any(tag);
            let from = from.map(|vni| Endpoint { node: NodeId(1), vni });
            let receive =
                Receive { address: buffer.address(), bytes: room, from, tags, how: TransferMethod::Auto };
            process.receive(own, receive, &mut path).await.unwrap();
        }
        // Much later, the process sends messages to itself, and the card works as before.
        node.delay(Duration::from_us(50_000)).await;
        let mut path = Path::from(node.now());
        let (out, back) = (process.alloc(5000).unwrap(), process.alloc(5000).unwrap());
        out.bytes().unwrap().write(0, &[9; 5000]);
        let to = Endpoint { node: NodeId(0), vni: own };
        for tag in 0..5 {
            let receive = Receive {
                address: back.address(),
                bytes: 5000,
                from: Some(to),
                tags: Tags::exactly(100),
                how: TransferMethod::Auto,
            };
            let receive = process.receive(own, receive, &mut path).await.unwrap();
            let send =
                Send { address: out.address(), bytes: 5000 - tag, to, tag: 100, how: TransferMethod::Auto };
            process.send(own, send, &mut path).await.unwrap();
            assert_eq!(process.wait(own, receive, &mut path).await.unwrap().bytes, 5000 - tag);
        }
        let mut bytes = vec![0; 5000];
        back.bytes().unwrap().read(0, &mut bytes);
        assert_eq!(bytes, [9; 5000]);
    });
    forger::send(&world, other, packets, 4);
    world.run().unwrap_or_else(|error| panic!("{error}"));
    card.statistics()
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(64))]

    #[test]
    fn forged_packets_are_counted(
        packets in prop::collection::vec(
            forged(
                prop_oneof![
                    1 => noise(),
                    9 => (origin(), number(), 0..2u64, number(), 0..3u64)
                        .prop_map(|(origin, f, t, b, g)| header(origin, [f, t, b, g])),
                ],
                prop_oneof![prop::collection::vec(any::<u8>(), 0..300), prop::collection::vec(any::<u8>(), 0..4)],
            ),
            0..40,
        )
    ) {
        run(packets);
    }
}

#[test]
fn repeated_cut_and_overlong_messages_are_dropped() {
    let packet = |message: u64, offset: u64, bytes: u64, payload: usize| Forged {
        header: header((1, message, offset), [0, 0, bytes, 0]),
        payload: Payload::copy_of(&vec![3; payload]),
        control: false,
        pause: 20_000,
    };
    let counted = run(vec![
        packet(0, 0, 10, 10),
        // A duplicate, a packet beyond the end of its message, a packet longer than its message, and packets with an
        // impossible offset or size.
        packet(0, 0, 10, 10),
        packet(0, 10, 10, 10),
        packet(1, 0, 10, 11),
        packet(2, 5, 10, 5),
        packet(3, 0, u64::MAX, 100),
        packet(4, u64::MAX, 10, 10),
        // A later packet that is longer than the rest of its message.
        packet(5, 0, 12, 10),
        packet(5, 10, 12, 10),
        packet(5, 10, 12, 2),
        // A packet with nodes that do not exist, and twice an empty message without a receive.
        Forged {
            header: [&[1; 12], &header((1, 6, 0), [0, 0, 10, 0])[12..]].concat(),
            ..packet(6, 0, 10, 10)
        },
        Forged { header: header((1, 7, 0), [0, 0, 0, 9]), ..packet(7, 0, 0, 0) },
        Forged { header: header((1, 7, 0), [0, 0, 0, 9]), ..packet(7, 0, 0, 0) },
    ]);
    // The forger adds eight more invalid packets at the end.
    assert_eq!((counted.unusable, counted.packets_received), (9 + 8, 4 + 5 * 2));
}

/// A forged message claims to come from the card itself. It arrives before the card's first message to itself, with
/// that message's number.
#[test]
fn messages_in_the_cards_own_name_are_dropped() {
    let packet = |source: u32, message: u64| Forged {
        header: header((source, message, 0), [0, 0, 10, 1]),
        payload: Payload::copy_of(&[3; 5]),
        control: false,
        pause: 20_000,
    };
    let counted = run(vec![packet(0, 0), packet(0, 1), packet(2, 2), packet(1, 3)]);
    assert_eq!((counted.unusable, counted.packets_received), (3 + 8, 1 + 5 * 2));
}
