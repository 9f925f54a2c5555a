//! Forged Portals packets: headers of 72 and 32 bytes, with and without reliable transport.

use crate::support::code::{Code, payload, program};
use crate::support::{Node, PT, PathCell, counted, entry, spec};
use nicety_fabric::{HeaderBytes, Symbol};
use nicety_host::{Cpus, Memory};
use nicety_kernel::World;
use nicety_nic_core::parts::transport::{Frame, Kind, TransportStatistics};
use nicety_nic_spin::{Card, Unusable};
use nicety_nic_testing::forger::{self, Forged, forged, noise, number, origin};
use nicety_portals::{
    AckRequest, Atomic, AtomicOp, Datatype, FailType, GetRequest, Header, HeaderKind, List, MdOptions, Me,
    MeOptions, PutRequest,
};
use nicety_types::{NodeId, Path, Payload, Recorder, Time};
use proptest::prelude::*;
use std::rc::Rc;
use std::sync::Arc;

fn header() -> impl Strategy<Value = Header> {
    let kind = prop::sample::select(vec![
        HeaderKind::Put,
        HeaderKind::Get,
        HeaderKind::Reply,
        HeaderKind::Ack,
        HeaderKind::Atomic,
        HeaderKind::FetchAtomic,
        HeaderKind::Swap,
    ]);
    let ack = prop::sample::select(vec![
        AckRequest::None,
        AckRequest::Full,
        AckRequest::Counting,
        AckRequest::OperationCompleted,
    ]);
    let atomic = prop::sample::select(vec![
        Atomic::new(AtomicOp::Sum, Datatype::Uint32),
        Atomic::new(AtomicOp::Sum, Datatype::Uint8),
        Atomic::new(AtomicOp::Swap, Datatype::Uint64),
        Atomic::new(AtomicOp::Cswap, Datatype::Uint32),
    ]);
    let who = (prop_oneof![19 => Just(1u32), 1 => 0..4u32], prop_oneof![19 => Just(0u32), 1 => 0..4u32]);
    let place = (0..3u32, 0..6u64, number(), number(), number());
    (kind, ack, atomic, who, place, number()).prop_map(
        |(
            kind,
            ack,
            atomic,
            (source, target),
            (pt, match_bits, length, remote_offset, operation),
            hdr_data,
        )| {
            let atomic = match kind {
                HeaderKind::Atomic | HeaderKind::FetchAtomic | HeaderKind::Swap => atomic.ok(),
                _ => None,
            };
            Header {
                kind,
                ack,
                fail: FailType::Ok,
                list: List::Priority,
                source: NodeId(source),
                target: NodeId(target),
                pt,
                match_bits,
                length,
                remote_offset,
                hdr_data,
                operation,
                uid: 0,
                atomic,
            }
        },
    )
}

/// Returns the header of a message's first packet.
fn first(header: &Header, message: u64) -> Vec<u8> {
    [&header.encode()[..], &message.to_le_bytes()].concat()
}

/// Returns the header of a further packet. Its fields are the sender, the message's number at the sender, the offset in
/// the message, and the target.
fn further((source, message, offset): (u32, u64, u64), target: u32) -> Vec<u8> {
    let words = [1, source, target, 0].map(u32::to_le_bytes).concat();
    [words, [message, offset].map(u64::to_le_bytes).concat()].concat()
}

/// Runs a card and a forger. The card has entries and handlers of all kinds, and pending operations.
fn run(packets: Vec<Forged>, overrides: &[&str]) -> (Unusable, TransportStatistics) {
    let spec = Arc::new(spec(&[&["buffer.packets=4"], overrides].concat()));
    let (mut world, port, other): (World<Symbol>, _, _) = forger::link(spec.link);
    let (sim, recorder) = (world.sim(NodeId(0)), Recorder::off());
    let memory = Rc::new(Memory::new(spec.host.memory));
    let card = Card::install(&sim, spec.clone(), memory.clone(), port, 2, Arc::new(|_| {}), &recorder);
    let eq = card.eq_alloc(spec.limits.event_queue_depth).unwrap();
    card.pt_alloc(Some(PT), Some(eq)).unwrap();
    let ct = card.ct_alloc().unwrap();
    let cpus = Rc::new(Cpus::new(&sim, spec.host, &recorder));
    let path = Rc::new(PathCell::new(Path::from(Time::ZERO)));
    let node = Node { cpus, memory, path, card: card.clone(), eq, ct, sim: sim.clone() };
    sim.spawn_program("host", async move {
        let room = node.alloc(&[0; 400]);
        let any = MeOptions::OP_PUT | MeOptions::OP_GET;
        let every = Me { options: entry(&room, 0).options | any, ..entry(&room, 0) };
        node.append(every).await.unwrap();
        node.append(Me { options: counted(&room, 1, node.ct).options | any, ..counted(&room, 1, node.ct) })
            .await
            .unwrap();
        let managed = MeOptions::MANAGE_LOCAL | MeOptions::EVENT_COMM_DISABLE;
        node.append(Me { options: entry(&room, 2).options | any | managed, ..entry(&room, 2) })
            .await
            .unwrap();
        let succeed = || Code::new().returns(0);
        node.append_with(entry(&room, 3), &payload(succeed()), &[]).await.unwrap();
        let all = program(Some(succeed()), Some(succeed()), Some(succeed()));
        node.append_with(Me { options: entry(&room, 4).options | any, ..entry(&room, 4) }, &all, &[])
            .await
            .unwrap();
        let md = node.counted_md(&room, MdOptions::EVENT_CT_REPLY);
        for bits in 0..3 {
            node.post(GetRequest::new(md, 100, NodeId(1), PT, bits)).await.unwrap();
            let put = PutRequest::new(md, 50, NodeId(1), PT, bits);
            node.post(PutRequest { ack: AckRequest::Full, ..put }).await.unwrap();
        }
    });
    forger::send(&world, other, packets, 4);
    world.run().unwrap_or_else(|error| panic!("{error}"));
    (card.unusable(), card.transport_statistics())
}

fn packets() -> impl Strategy<Value = Vec<Forged>> {
    let first = (header(), 0..6u64).prop_map(|(header, message)| first(&header, message));
    let to = prop_oneof![19 => Just(0u32), 1 => any::<u32>()];
    let further = (origin(), to).prop_map(|(origin, to)| further(origin, to));
    let header = prop_oneof![1 => noise(), 6 => first, 3 => further];
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..8),
        prop::collection::vec(any::<u8>(), 0..300),
        prop::sample::select(vec![4usize, 8, 16, 50, 100]).prop_map(|len| vec![1; len]),
    ];
    prop::collection::vec(forged(header, payload), 0..60)
}

/// Returns these packets with transport headers of all kinds. Some of the headers are not in sequence.
fn sealed(packets: Vec<Forged>, frames: &[(u8, u8, u64)]) -> Vec<Forged> {
    let mut next = 0;
    let seal = |(mut forged, &(kind, source, number)): (Forged, &(u8, u8, u64))| {
        let kind = match kind {
            0..=20 => Kind::Data,
            21 => Kind::Acknowledgement,
            22 => Kind::Refusal,
            23 => Kind::Probe,
            _ => Kind::Farewell,
        };
        let number = if number < 250 { next } else { number };
        next += u64::from(kind == Kind::Data && number == next && !forged.control);
        let source = if source < 40 { 1 } else { u32::from(source) - 40 };
        forged.header.truncate(76);
        let frame = Frame { kind, source: NodeId(source), number };
        forged.header = frame.seal(HeaderBytes::new(&forged.header), &forged.payload).as_slice().to_vec();
        forged
    };
    packets.into_iter().zip(frames).map(seal).collect()
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(96))]

    #[test]
    fn forged_packets_are_counted(packets in packets()) {
        run(packets, &[]);
    }

    #[test]
    fn forged_packets_behind_good_frames_are_counted(
        packets in packets(),
        frames in prop::collection::vec((0..26u8, 0..44u8, 0..260u64), 60),
    ) {
        run(sealed(packets, &frames), &["transport.reliable=true", "transport.retries=2"]);
    }
}

#[test]
fn a_message_takes_no_more_than_it_said() {
    let put = Header::put(NodeId(1), NodeId(0), PT, 0, 100);
    let packet = |message: u64, offset: u64, payload: usize| Forged {
        header: if offset == 0 { first(&put, message) } else { further((1, message, offset), 0) },
        payload: Payload::copy_of(&vec![7; payload]),
        control: false,
        pause: 20_000,
    };
    let (unusable, _) = run(
        vec![
            packet(0, 0, 101),
            packet(1, 0, 60),
            packet(1, 60, 41),
            packet(1, 60, 0),
            packet(1, 0, 60),
            packet(1, 60, 40),
            packet(1, 60, 40),
            Forged { control: true, ..packet(2, 0, 100) },
            // These packets come from the card itself, come from no node, or are for another node. The last packet has
            // offset 0, which no further packet may have.
            Forged { header: further((0, 3, 4), 0), ..packet(3, 4, 10) },
            Forged { header: further((2, 3, 4), 0), ..packet(3, 4, 10) },
            Forged { header: further((1, 3, 4), 1), ..packet(3, 4, 10) },
            Forged { header: further((1, 3, 0), 0), ..packet(3, 4, 10) },
        ],
        &[],
    );
    // Eight more packets are invalid.
    assert_eq!((unusable.headers, unusable.strays), (1 + 1 + 4 + 8, 4));
}
