//! Forged APEnet+ packets: header and footer of 64 bytes together, with a CRC.

use nicety_fabric::Symbol;
use nicety_host::{Cpus, Kernel, Memory};
use nicety_kernel::World;
use nicety_nic_apenet::{ApenetSpec, Card, Endpoint, EventKind, Statistics, Transfer};
use nicety_nic_testing::Host;
use nicety_nic_testing::forger::{self, Forged, forged, noise, number, origin};
use nicety_spec::{SHIPPED, Spec, parse_override};
use nicety_types::{Duration, NodeId, Path, Payload, Recorder};
use proptest::prelude::*;
use std::rc::Rc;
use std::sync::Arc;

/// Returns a packet to node 0. `words` has both processes, the address, the message's size and its data. The payload's
/// size and the CRC are correct.
fn packet(kind: (u8, u8), origin: (u32, u64, u64), words: [u64; 5], payload: &[u8]) -> Forged {
    packet_to(0, kind, origin, words, payload)
}

/// Returns a packet to any node; see [`packet`].
fn packet_to(
    target: u32,
    (kind, physical): (u8, u8),
    (node, message, offset): (u32, u64, u64),
    [from, to, address, bytes, data]: [u64; 5],
    payload: &[u8],
) -> Forged {
    let words = [node, from as u32, target, to as u32, payload.len() as u32].map(u32::to_le_bytes).concat();
    let mut header =
        [&[kind, physical, 0, 0][..], &words, &address.to_le_bytes(), &message.to_le_bytes()].concat();
    header.extend([offset as u32, bytes as u32].map(u32::to_le_bytes).concat());
    header.extend(data.to_le_bytes());
    // The sequence number equals the number of the message.
    header.extend((message as u32).to_le_bytes());
    let mut payload = payload.to_vec();
    payload.resize(payload.len().next_multiple_of(32), 0);
    header.extend(crc32fast::hash(&[&header[..], &payload].concat()).to_le_bytes());
    Forged { header, payload: Payload::copy_of(&payload), control: kind == 4, pause: 20_000 }
}

/// Runs a card and a forger. A process of the card has registered a region and posted a streaming buffer. Checks that
/// the memory outside the region stays unchanged. Returns the card's counters and the process's memory.
fn run(packets: Vec<Forged>) -> (Statistics, Vec<u8>) {
    run_on(packets, true)
}

/// Like [`run`]. Unless `ordered` is true, packets of a node may arrive in any order.
fn run_on(packets: Vec<Forged>, ordered: bool) -> (Statistics, Vec<u8>) {
    let overrides = ["buffer.packets=4", "limits.gets=2"].map(|text| parse_override(text).unwrap());
    let spec = Spec::load("apenet-v5", &overrides, SHIPPED).unwrap();
    let spec = Arc::new(
        nicety_nic_core::read(&spec, &[nicety_nic_apenet::DESIGN])
            .unwrap()
            .0
            .of::<ApenetSpec>()
            .unwrap()
            .clone(),
    );
    let (mut world, port, other): (World<Symbol>, _, _) = forger::link(spec.node.link);
    let (sim, recorder) = (world.sim(NodeId(0)), Recorder::off());
    let memory = Rc::new(Memory::new(spec.node.host.memory));
    let cpus = Rc::new(Cpus::new(&sim, spec.node.host, &recorder));
    let kernel = Rc::new(Kernel::new(&sim, &cpus, spec.kernel));
    let card =
        Card::install(&sim, spec, (memory.clone(), None), kernel, port, (2, ordered), &recorder).unwrap();
    let process = card.process_of(0);
    let buffer = memory.allocate(8192).unwrap();
    // The region is in the middle of the memory.
    process.set_up(buffer.address() + 1000, 2000).unwrap();
    process.set_up_streaming(buffer.address() + 2000, 300).unwrap();
    let (node, at) = (sim.clone(), buffer.address());
    sim.spawn_program("receiver", async move {
        let mut path = Path::from(node.now());
        // The packets of a test may forge the reply to this get.
        let peer = Endpoint { node: NodeId(1), process: 0 };
        let get = Transfer { peer, local: at + 1000, remote: 64, bytes: 100, data: 0 };
        process.get(get, &mut path).await.unwrap();
        // Much later, the process puts bytes to itself, and the card works as before.
        node.delay(Duration::from_us(50_000)).await;
        let mut path = Path::from(node.now());
        let (out, back) = (memory.allocate(9000).unwrap(), memory.allocate(9000).unwrap());
        out.bytes().unwrap().write(0, &[9; 9000]);
        for memory in [&out, &back] {
            process.register(memory.address(), 9000, &mut path).await.unwrap();
        }
        let peer = Endpoint { node: NodeId(0), process: 0 };
        let put = Transfer { peer, local: out.address(), remote: back.address(), bytes: 9000, data: 77 };
        let put = process.put(put, &mut path).await.unwrap();
        let (mut sent, mut came) = (false, false);
        while !(sent && came) {
            let event = process.event(&mut path).await.unwrap();
            sent |= event.kind == EventKind::Sent(put);
            came |= event.kind == EventKind::Received && event.address == back.address();
        }
        let mut bytes = vec![0; 9000];
        back.bytes().unwrap().read(0, &mut bytes);
        assert_eq!(bytes, [9; 9000]);
    });
    forger::send(&world, other, packets, 4);
    world.run().unwrap_or_else(|error| panic!("{error}"));
    let mut bytes = vec![0; 8192];
    buffer.bytes().unwrap().read(0, &mut bytes);
    assert!(bytes[..1000].iter().chain(&bytes[3000..]).all(|&byte| byte == 0), "written outside the region");
    (card.statistics(), bytes)
}

/// First address of the region that `run` registers.
const REGION: u64 = FIRST + 1000;
/// First address behind the rings. The rings have 1024 descriptors and 16384 events of 32 B each. An unused page
/// follows each ring.
const FIRST: u64 = 0x10_0000 + 32_768 + 4096 + 524_288 + 4096;

proptest! {
    #![proptest_config(nicety_nic_testing::cases(64))]

    #[test]
    fn forged_packets_write_nothing_outside_a_region(
        packets in prop::collection::vec(
            prop_oneof![
                1 => forged(noise(), prop::collection::vec(any::<u8>(), 0..300)),
                9 => (
                    (0..6u8, prop_oneof![9 => Just(0u8), 1 => 0..3u8]),
                    origin(),
                    (
                        prop_oneof![9 => Just(0), 1 => number()],
                        prop_oneof![9 => Just(0), 1 => number()],
                        prop_oneof![3 => REGION - 50..REGION + 2050, 2 => Just(0), 1 => number()],
                        prop_oneof![1 => 0..300u64, 1 => number()],
                        number(),
                    ),
                    prop::collection::vec(1u8.., 0..300),
                ).prop_map(|(kind, origin, (f, t, a, b, d), payload)| packet(kind, origin, [f, t, a, b, d], &payload)),
                // Complete puts of one packet each.
                3 => ((0..9u64), REGION - 50..REGION + 2050, prop::collection::vec(1u8.., 0..300)).prop_map(
                    |(number, address, payload)| {
                        packet((1, 0), (1, number, 0), [0, 0, address, payload.len() as u64, 0], &payload)
                    }
                ),
            ],
            0..40,
        )
    ) {
        run(packets);
    }
}

#[test]
fn strays_are_dropped_and_counted() {
    let put = |number, offset: u64, bytes: u64, payload: usize| {
        packet((1, 0), (1, number, offset), [0, 0, REGION + offset, bytes, 0], &vec![3; payload])
    };
    let damaged = {
        let mut packet = put(9, 0, 10, 10);
        packet.header[33] ^= 4;
        packet
    };
    let (counted, memory) = run(vec![
        put(0, 0, 10, 10),
        // A duplicate, a packet longer than its message, a packet without its message's first packet, and an empty
        // packet of a message with bytes.
        put(0, 0, 10, 10),
        put(1, 0, 10, 11),
        put(2, 5, 10, 5),
        put(3, 0, 10, 0),
        // The second packet of this message has an address that contradicts the first packet.
        put(4, 0, 200, 100),
        packet((1, 0), (1, 4, 100), [0, 0, REGION + 500, 200, 0], &[5; 100]),
        put(4, 100, 200, 100),
        damaged,
        // Packets in the name of this card and of a node that does not exist. Then a reply to no get, a refusal of no
        // message, and a refusal on the data channel.
        packet((1, 0), (0, 5, 0), [0, 0, REGION, 10, 0], &[4; 10]),
        packet((1, 0), (2, 6, 0), [0, 0, REGION, 10, 0], &[4; 10]),
        packet((3, 0), (1, 7, 0), [0, 0, 0, 10, 99], &[4; 10]),
        packet((4, 0), (1, 1 << 40, 0), [0, 0, 0, 0, 1], &[]),
        Forged { control: false, ..packet((4, 0), (1, 0, 0), [0, 0, 0, 0, 1], &[]) },
        // A refusal of the get from another process than the get went to.
        Forged { pause: 200_000, ..packet((4, 0), (1, 0, 0), [3, 0, 0, 0, 1], &[]) },
        // A reply of another size than the get's, and then the right reply.
        packet((3, 0), (1, 8, 0), [0, 0, 0, 10, 0], &[4; 10]),
        packet((3, 0), (1, 10, 0), [0, 0, 0, 100, 0], &[6; 100]),
    ]);
    // The forger adds eight more invalid packets. A reply to a get that may have ended is counted as stale.
    assert_eq!((counted.unusable, counted.stale_replies), (11 + 8, 1));
    assert_eq!((counted.refused, counted.refused_by_peer), (1, 0));
    assert_eq!(memory[1000..1100], [6; 100]);
    assert_eq!(memory[1100..1200], [3; 100]);
    assert_eq!((counted.packets_received, counted.events_lost, counted.abandoned), (16 - 7 + 3, 0, 1));
}

/// Runs a card that expects the reply of 100 bytes to its get 0. Returns counters of the card and the process's memory.
/// The counters are unusable packets, stale replies, refused messages, messages refused by peers, abandoned messages,
/// and gets served.
fn counted(packets: &[Forged]) -> ([u64; 6], Vec<u8>) {
    let (counted, memory) = run(packets.to_vec());
    // The forger adds eight more invalid packets.
    let Statistics { unusable, stale_replies, refused, refused_by_peer, abandoned, gets_served, .. } =
        counted;
    ([unusable - 8, stale_replies, refused, refused_by_peer, abandoned, gets_served], memory)
}

#[test]
fn a_refusal_is_taken_from_the_end_that_the_get_went_to_alone() {
    let refusal = |from, to, bytes, data| packet((4, 0), (1, 0, 0), [from, to, 0, bytes, data], &[]);
    let right = refusal(0, 0, 100, 1);
    assert_eq!(counted(std::slice::from_ref(&right)).0, [0, 0, 0, 1, 0, 0]);
    // These refusals name other processes, another size, or no valid reason. Then come a put on the control channel,
    // and a refusal to another node. The right refusal counts once.
    for wrong in [
        refusal(3, 0, 100, 1),
        refusal(0, 3, 100, 1),
        refusal(0, 0, 99, 1),
        refusal(0, 0, 100, 0),
        refusal(0, 0, 100, 8),
        Forged { control: true, ..packet((1, 0), (1, 0, 0), [0, 0, 0, 100, 1], &[]) },
        packet_to(1, (4, 0), (1, 0, 0), [0, 0, 0, 100, 1], &[]),
    ] {
        assert_eq!(counted(&[wrong.clone(), right.clone()]).0, [1, 0, 0, 1, 0, 0], "{wrong:?}");
        assert_eq!(counted(&[wrong]).0, [1, 0, 0, 0, 0, 0]);
    }
    assert_eq!(counted(&[right.clone(), right]).0, [1, 0, 0, 1, 0, 0]);
}

#[test]
fn a_get_is_served_once_and_has_no_payload() {
    let get =
        |number, offset, payload: &[u8]| packet((2, 0), (1, number, offset), [0, 0, REGION, 10, 0], payload);
    let twice = [get(5, 0, &[]), get(5, 0, &[]), get(6, 0, &[1]), get(7, 1, &[]), get(8, 0, &[])];
    assert_eq!(counted(&twice).0, [3, 0, 0, 0, 0, 2]);
}

#[test]
fn a_packet_is_for_this_card_and_no_longer_than_the_largest() {
    let put = |node, bytes: usize| {
        packet_to(node, (1, 0), (1, 5, 0), [0, 0, REGION, bytes as u64, 0], &vec![1; bytes])
    };
    for (packet, unusable, refused) in
        [(put(0, 100), 0, 0), (put(1, 100), 1, 0), (put(0, 4096), 0, 1), (put(0, 4097), 1, 0)]
    {
        assert_eq!(counted(&[packet]).0, [unusable, 0, refused, 0, 0, 0]);
    }
}

#[test]
fn a_get_takes_one_reply_from_the_end_that_it_went_to() {
    let part = |number, process, offset, bytes, value: u8, length: usize| {
        packet((3, 0), (1, number, offset), [process, 0, 0, bytes, 0], &vec![value; length])
    };
    let right = [part(10, 0, 0, 100, 6, 50), part(10, 0, 50, 100, 6, 50)];
    for (wrong, at) in [
        // A second reply that begins after the first reply, a reply from another process, and a reply of another size
        // that begins in its middle.
        (part(11, 0, 0, 100, 5, 100), 1),
        (part(11, 3, 0, 100, 5, 100), 0),
        (part(11, 0, 50, 99, 5, 20), 0),
    ] {
        let mut packets = right.to_vec();
        packets.insert(at, wrong);
        let (counted, memory) = counted(&packets);
        assert_eq!((counted, &memory[1000..1100]), ([0, 1, 0, 0, 0, 0], &[6; 100][..]));
    }
    // The destination is the get's virtual address, even if the packet claims another or a physical address.
    let hits =
        |physical| run(vec![packet((3, physical), (1, 10, 0), [0, 0, 64, 100, 0], &[6; 100])]).0.tlb_hits;
    assert_eq!(hits(1), hits(0));
}

#[test]
fn a_message_goes_on_beside_packets_that_are_no_part_of_it() {
    let part = |offset, address| packet((1, 0), (1, 4, offset), [0, 0, address, 300, 0], &[3; 100]);
    let parts = [0, 100, 200].map(|offset| part(offset, REGION + offset));
    // A repeated packet, and a later packet with another address.
    for wrong in [parts[0].clone(), part(200, REGION)] {
        let [first, second, third] = parts.clone();
        let (counted, memory) = counted(&[first, wrong, second, third]);
        assert_eq!((counted, &memory[1000..1300]), ([1, 0, 0, 0, 0, 0], &[3; 300][..]));
    }
}

#[test]
fn a_message_that_many_later_ones_have_passed_is_taken_once() {
    let put = |number| packet((1, 0), (1, number, 0), [0, 0, REGION, 8, 0], &[3; 8]);
    let get = |number| packet((2, 0), (1, number, 0), [0, 0, REGION, 8, 0], &[]);
    for later in [1u64, 64, 65, 500] {
        for one in [put as fn(u64) -> Forged, get] {
            let mut packets: Vec<Forged> = (1..=later).map(one).collect();
            packets.extend([0, later, 0, 1, later + 1].map(one));
            // The forger adds eight more invalid packets.
            assert_eq!(run_on(packets, false).0.unusable, 3 + 8, "{later}");
        }
    }
}

#[test]
fn messages_that_may_pass_each_other_are_given_up_when_there_are_too_many() {
    let begin = |number| packet((1, 0), (1, number, 0), [0, 0, REGION, 200, 0], &[3; 100]);
    let given_up = |count| run_on((0..count).map(begin).collect(), false).0.abandoned;
    assert_eq!([1, 64, 65, 67].map(given_up), [0, 0, 1, 3]);
    // The event of a whole message waits for the earlier message, until the card gives up the earlier message.
    let whole = packet((1, 0), (1, 2, 0), [0, 0, REGION + 500, 10, 0], &[4; 10]);
    let last = packet((1, 0), (1, 1, 150), [0, 0, REGION + 150, 200, 0], &[3; 50]);
    let [without, with] = [vec![begin(1), whole.clone()], vec![begin(1), whole, last]]
        .map(|packets| run_on(packets, false).0.events);
    // The additional events are of the whole message and of the message that was given up.
    assert_eq!(with, without + 2);
}

/// Returns an empty put to the library with this address and data.
fn to_library((node, number): (u32, u64), address: u64, data: u64) -> Forged {
    let library = u64::from(u32::MAX);
    Forged { pause: 200_000, ..packet((1, 0), (node, number, 0), [library, library, address, 0, data], &[]) }
}

/// Runs a host with a forger as its peer. The host sends 8 KiB from a longer buffer to rank 1, and posts a receive.
/// Returns the counters of the host's card, and the number of calls that the host has completed.
fn library(packets: Vec<Forged>) -> (Statistics, u32) {
    let spec = Spec::load("apenet-v5", &[], SHIPPED).unwrap();
    let (spec, _) = nicety_nic_core::read(&spec, &[nicety_nic_apenet::DESIGN]).unwrap();
    let (mut world, port, other): (World<Symbol>, _, _) = forger::link(spec.node().link);
    let host = Host::install(&spec, world.sim(NodeId(0)), port, 3);
    let (out, into) = (host.room(16_384), host.room(16_384));
    let ended = Rc::new(std::cell::Cell::new(0));
    for sends in [true, false] {
        let (own, out, into, ended) = (host.clone(), out.clone(), into.clone(), ended.clone());
        host.sim.spawn(async move {
            let whole = if sends {
                own.send_from(&out, 1, 0, 8192).await.is_ok()
            } else {
                own.receive_into(&into, None, 10_000).await.is_ok()
            };
            ended.set(ended.get() + u32::from(whole));
        });
    }
    forger::send(&world, other, packets, 16);
    world.run().unwrap_or_else(|error| panic!("{error}"));
    let node = host.card.of::<nicety_nic_apenet::Node>().unwrap();
    (node.card().statistics(), ended.get())
}

#[test]
fn the_library_puts_no_more_than_its_message_and_to_its_receiver_alone() {
    let cts = |number, node, address, length| to_library((node, number), address, 3u64 << 60 | length);
    // The request to send (RTS) has a tag of 64 bits.
    let rts = to_library((1, 3), 1u64 << 63 | 9000, 2u64 << 60);
    let forged = vec![cts(0, 1, 4096, 8193), cts(1, 2, 4096, 100), cts(2, 1, 0, 100), rts];
    let (counted, ended) = library(forged.clone());
    // The host has sent only its own RTS.
    assert_eq!((counted.packets_sent, counted.unusable, ended), (1, 4 + 32, 0));
    let (counted, ended) = library([forged, vec![cts(4, 1, 4096, 5000)]].concat());
    assert_eq!((counted.packets_sent, counted.unusable, ended), (1 + 2, 4 + 32, 1));
}

#[test]
fn the_library_has_as_many_streaming_buffers_as_windows_allow() {
    // Each of three hosts may have sixteen messages. The receive takes one message, and the library posts its streaming
    // buffer again.
    let eager = |number: u64| {
        let library = u64::from(u32::MAX);
        packet((1, 0), (1, number, 0), [library, library, 0, 8, 1u64 << 63 | 5], &[1; 8])
    };
    for (sends, refused) in [(49, 0), (50, 1), (60, 11)] {
        assert_eq!(library((0..sends).map(eager).collect()).0.refused, refused, "{sends}");
    }
}

#[test]
fn a_receive_does_not_end_before_its_bytes() {
    // The forger sends an RTS of 9000 bytes, and a notice that it has put the bytes. No byte has arrived.
    let rts = to_library((1, 0), 9000, 2u64 << 60 | 7 << 32);
    let bytes = to_library((1, 1), 0, 4u64 << 60 | 7 << 32);
    let (counted, ended) = library(vec![rts, bytes]);
    // The host has sent an RTS for its own message, and a clear to send (CTS).
    assert_eq!((counted.packets_sent, counted.unusable, ended), (2, 1 + 32, 0));
}
