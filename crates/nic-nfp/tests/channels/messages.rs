//! Tests messages between hosts over channels, forwarding processes and Ethernet.

use nicety_fabric::{NetworkSpec, Port, Symbol, Topology};
use nicety_host::{Cpus, Memory};
use nicety_kernel::{Config, Sim, World};
use nicety_nic_core::Tags;
use nicety_nic_nfp::{Arrival, Card, INLINE, MessageError, Messenger, NfpSpec, Slot, WINDOW, number, stages};
use nicety_types::{Duration, NodeId, Path, Recorder, Stage, Time};
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// A host with its card in a network.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) sim: Sim,
    pub(super) card: Rc<Card>,
    pub(super) memory: Rc<Memory>,
    pub(super) messenger: Rc<Messenger>,
}

impl Node {
    /// Returns memory with these bytes in it.
    pub(super) fn buffer(&self, bytes: &[u8]) -> u64 {
        let address = self.memory.allocate(bytes.len() as u64).unwrap().address();
        self.memory.write(address, bytes).unwrap();
        address
    }

    pub(super) fn bytes(&self, address: u64, len: usize) -> Vec<u8> {
        self.memory.read(address, len as u64).unwrap().into_buffer().unwrap().to_vec()
    }
}

/// Returns a card in a network, and its host's memory.
pub(super) fn card(
    world: &World<Symbol>,
    spec: &NfpSpec,
    id: NodeId,
    (port, nodes): (Port, u32),
) -> (Rc<Card>, Rc<Memory>) {
    let (sim, off) = (world.sim(id), Recorder::off());
    let memory = Rc::new(Memory::new(spec.node.host.memory));
    let cpus = Rc::new(Cpus::new(&sim, spec.node.host, &off));
    let card = Card::install(
        &sim,
        Arc::new(spec.clone()),
        memory.clone(),
        &cpus,
        (Some(port), nodes),
        (&Slot::default(), &off),
    );
    (card, memory)
}

/// Returns two hosts on a link.
pub(super) fn pair(spec: &NfpSpec, seed: u64) -> (World<Symbol>, [Node; 2]) {
    let mut world = World::new(Config { seed, ..Config::default() });
    let nodes = [world.add_node(), world.add_node()];
    let (a, b) = nicety_fabric::pair(&mut world, nodes[0], nodes[1], spec.node.link);
    let nodes = [(nodes[0], a), (nodes[1], b)].map(|(id, port)| node(&world, spec, id, (port, 2)));
    (world, nodes)
}

fn node(world: &World<Symbol>, spec: &NfpSpec, id: NodeId, port: (Port, u32)) -> Node {
    let (sim, nodes) = (world.sim(id), port.1);
    let (card, memory) = card(world, spec, id, port);
    let messenger = Messenger::install(&sim, &card, nodes).unwrap();
    Node { sim, card, memory, messenger }
}

pub(super) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 241 + seed * 7) as u8).collect()
}

#[test]
fn messages_of_all_sizes_arrive() {
    let sizes = [0, 1, 31, 32, 33, 56, 1484, 1485, 4096, 65_536, 65_537, 300_000];
    let (mut world, [a, b]) = pair(&crate::spec(&[]), 1);
    let (sender, b_card) = (a.clone(), b.card.clone());
    a.sim.spawn_program("sender", async move {
        let mut path = Path::from(Time::ZERO);
        for (number, size) in sizes.into_iter().enumerate() {
            let address = sender.buffer(&pattern(size, number));
            let size = size as u64;
            sender.messenger.send(&mut path, 1, number as u64, address, size).await.unwrap();
        }
    });
    b.sim.clone().spawn_program("receiver", async move {
        let mut path = Path::from(Time::ZERO);
        for (number, size) in sizes.into_iter().enumerate() {
            let address = b.buffer(&vec![0; size + 5]);
            let posted =
                b.messenger.post(&path, Some(0), Tags::exactly(number as u64), address, size as u64 + 5);
            let arrival = b.messenger.received(&mut path, posted.unwrap()).await.unwrap();
            assert_eq!(arrival, Arrival { source: 0, tag: number as u64, bytes: size as u64 });
            assert_eq!(b.bytes(address, size), pattern(size, number));
            assert_eq!(path.at(), b.sim.now());
        }
    });
    world.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(a.card.channel_counters().pinned, 0);
    let (sent, received) = (a.card.port_counters(), b_card.port_counters());
    assert_eq!((sent.sent, received.damaged), (received.received, 0));
}

#[test]
fn receives_take_messages_in_any_order() {
    let (mut world, [a, b]) = pair(&crate::spec(&[]), 1);
    for tag in 0..4 {
        let sender = a.clone();
        a.sim.spawn_program(format!("sender {tag}"), async move {
            let address = sender.buffer(&pattern(10_000, tag as usize));
            let mut path = Path::from(Time::ZERO);
            sender.messenger.send(&mut path, 1, tag, address, 10_000).await.unwrap();
        });
    }
    b.sim.clone().spawn_program("receiver", async move {
        let mut path = Path::from(Time::ZERO);
        let address = b.buffer(&[0; 10_000]);
        for tag in [2, 0, 3, 1] {
            let posted = b.messenger.post(&path, None, Tags::exactly(tag), address, 10_000).unwrap();
            b.messenger.received(&mut path, posted).await.unwrap();
            assert_eq!(b.bytes(address, 10_000), pattern(10_000, tag as usize));
        }
    });
    world.run().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn both_may_send_at_once() {
    let (mut world, nodes) = pair(&crate::spec(&[]), 1);
    for node in nodes {
        node.sim.clone().spawn_program("both", async move {
            let (me, mut path) = (node.sim.node().0, Path::from(Time::ZERO));
            let (out, back) = (node.buffer(&pattern(200_000, me as usize)), node.buffer(&[0; 200_000]));
            let posted = node.messenger.post(&path, Some(1 - me), Tags::ANY, back, 200_000).unwrap();
            node.messenger.send(&mut path, 1 - me, 9, out, 200_000).await.unwrap();
            node.messenger.received(&mut path, posted).await.unwrap();
            assert_eq!(node.bytes(back, 200_000), pattern(200_000, 1 - me as usize));
        });
    }
    world.run().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_host_that_does_not_receive_delays_its_sender_only() {
    let (mut world, [a, b]) = pair(&crate::spec(&[]), 1);
    let sent = Rc::new(Cell::new(0));
    let (sender, count) = (a.clone(), sent.clone());
    a.sim.spawn_program("sender", async move {
        let (address, mut path) = (sender.buffer(&[7; INLINE as usize]), Path::from(Time::ZERO));
        for _ in 0..WINDOW + 5 {
            sender.messenger.send(&mut path, 1, 0, address, INLINE).await.unwrap();
            count.set(count.get() + 1);
        }
    });
    // Another message is sent in the other direction at the same time.
    let receiver = a.clone();
    a.sim.spawn_program("receiver", async move {
        let (address, mut path) = (receiver.buffer(&[0; 1000]), Path::from(Time::ZERO));
        let posted = receiver.messenger.post(&path, None, Tags::ANY, address, 1000).unwrap();
        receiver.messenger.received(&mut path, posted).await.unwrap();
    });
    b.sim.clone().spawn_program("late", async move {
        let (address, mut path) = (b.buffer(&[0; 1000]), Path::from(Time::ZERO));
        b.sim.delay(Duration::from_us(1000)).await;
        assert_eq!(sent.get(), WINDOW);
        let mut path_now = Path::from(b.sim.now());
        b.messenger.send(&mut path_now, 0, 1, address, 1000).await.unwrap();
        for _ in 0..WINDOW + 5 {
            let posted = b.messenger.post(&path, Some(0), Tags::exactly(0), address, 1000).unwrap();
            b.messenger.received(&mut path, posted).await.unwrap();
            assert_eq!(b.bytes(address, INLINE as usize), [7; INLINE as usize]);
        }
    });
    world.run().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn invalid_arguments_are_refused() {
    let (mut world, [a, b]) = pair(&crate::spec(&["limits.message=4096 B"]), 1);
    let sender = a.clone();
    a.sim.spawn_program("sender", async move {
        let (address, mut path) = (sender.buffer(&[0; 5000]), Path::from(Time::ZERO));
        let mut refused = async |to, address, bytes| {
            sender.messenger.send(&mut path, to, 0, address, bytes).await.unwrap_err().to_string()
        };
        let text = refused(2, address, 8).await;
        assert!(text.contains("there is no rank 2; the cluster has ranks 0 to 1"), "{text}");
        let text = refused(1, address, 5000).await;
        assert!(text.contains("takes at most 4096 (limits.message)"), "{text}");
        let text = refused(1, 8, 100).await;
        assert!(text.contains("no allocation of the host holds the 100 bytes at 0x8"), "{text}");
        sender.messenger.send(&mut path, 1, 3, address, 20).await.unwrap();
    });
    b.sim.clone().spawn_program("receiver", async move {
        let (address, mut path) = (b.buffer(&[0; 10]), Path::from(Time::ZERO));
        let posted = b.messenger.post(&path, None, Tags::ANY, address, 10).unwrap();
        let error = b.messenger.received(&mut path, posted).await.unwrap_err();
        let message = Arrival { source: 0, tag: 3, bytes: 20 };
        assert_eq!(error, MessageError::NoRoom { message, room: 10 });
        assert!(b.messenger.post(&path, Some(2), Tags::ANY, address, 10).is_err());
    });
    world.run().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_parts_of_a_ping_pong_add_up() {
    for size in [8u64, 4096] {
        let (mut world, nodes) = pair(&crate::spec(&[]), 1);
        for node in nodes {
            node.sim.clone().spawn_program("ping-pong", async move {
                let (me, address) = (node.sim.node().0, node.buffer(&vec![0; size as usize]));
                let mut path = Path::from(Time::ZERO);
                for round in 0..4 {
                    let posted = node.messenger.post(&path, None, Tags::ANY, address, size).unwrap();
                    node.sim.until(Time::ZERO + Duration::from_us(1000 * (round + 1))).await;
                    path = Path::from(node.sim.now());
                    if me == 0 {
                        node.messenger.send(&mut path, 1, 0, address, size).await.unwrap();
                    }
                    node.messenger.received(&mut path, posted).await.unwrap();
                    if me == 1 {
                        node.messenger.send(&mut path, 0, 0, address, size).await.unwrap();
                    } else {
                        assert_eq!(path.origin(), Time::ZERO + Duration::from_us(1000 * (round + 1)));
                        assert_eq!(path.at(), node.sim.now());
                        let all = path.stages().map(|(_, time)| time).sum::<Duration>();
                        assert_eq!(all, path.at().since(path.origin()));
                        for stage in [Stage::LINK, stages::PROCESS, stages::MANAGER, Stage::INTERRUPT] {
                            assert!(!path.total(stage).is_zero(), "{stage:?} of {size} bytes");
                        }
                    }
                }
            });
        }
        world.run().unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The path of a round trip is that of its initiator. This also holds for the first message, which starts the
/// forwarding processes of both cards, and for messages at the time of credits.
#[test]
fn the_path_of_every_round_trip_is_its_initiators() {
    for late in [0, 3] {
        let (mut world, [a, b]) = pair(&crate::spec(&[]), 1);
        a.sim.clone().spawn_program("ping", async move {
            let address = a.buffer(&[0; 8]);
            a.sim.delay(Duration::from_us(10)).await;
            for round in 0..40 {
                let begun = a.sim.now();
                let mut path = Path::from(begun);
                let posted = a.messenger.post(&path, None, Tags::ANY, address, 8).unwrap();
                a.messenger.send(&mut path, 1, 0, address, 8).await.unwrap();
                a.messenger.received(&mut path, posted).await.unwrap();
                assert_eq!((path.origin(), path.at()), (begun, a.sim.now()), "round {round}, {late} us late");
            }
        });
        b.sim.clone().spawn_program("pong", async move {
            let (address, mut path) = (b.buffer(&[0; 8]), Path::from(Time::ZERO));
            b.sim.delay(Duration::from_us(10 + late)).await;
            for _ in 0..40 {
                let posted = b.messenger.post(&path, None, Tags::ANY, address, 8).unwrap();
                b.messenger.received(&mut path, posted).await.unwrap();
                b.messenger.send(&mut path, 0, 0, address, 8).await.unwrap();
            }
        });
        world.run().unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |shards: usize, seed: u64| {
        let spec = crate::spec(&["dma.errors=5 %", "driver.retries=100"]);
        let mut world: World<Symbol> = World::new(Config { seed, shards, ..Config::default() });
        let nodes = [world.add_node(), world.add_node()];
        let (a, b) = nicety_fabric::pair(&mut world, nodes[0], nodes[1], spec.node.link);
        let nodes = [(nodes[0], a), (nodes[1], b)].map(|(id, port)| node(&world, &spec, id, (port, 2)));
        let cards = nodes.clone().map(|node| node.card);
        for node in nodes {
            node.sim.clone().spawn_program("both", async move {
                let (me, mut path) = (node.sim.node().0, Path::from(Time::ZERO));
                let (out, back) = (node.buffer(&pattern(500_000, me as usize)), node.buffer(&[0; 500_000]));
                let posted = node.messenger.post(&path, Some(1 - me), Tags::ANY, back, 500_000).unwrap();
                node.messenger.send(&mut path, 1 - me, 9, out, 500_000).await.unwrap();
                node.messenger.received(&mut path, posted).await.unwrap();
                assert_eq!(node.bytes(back, 500_000), pattern(500_000, 1 - me as usize));
            });
        }
        let summary = world.run().unwrap_or_else(|error| panic!("{error}"));
        (summary.end, cards.map(|card| (card.channel_counters(), card.port_counters())))
    };
    let first = run(1, 5);
    assert!(first.1.iter().all(|(channels, _)| channels.retries > 0), "{first:?}");
    assert_eq!(run(1, 5), first);
    assert_eq!(run(2, 5), first);
    assert_ne!(run(1, 6), first);
}

/// Before the first message, the microengines are free for any process.
#[test]
fn messages_start_with_the_first_of_them() {
    for receives_first in [false, true] {
        let (mut world, [a, b]) = pair(&crate::spec(&[]), 1);
        let late = b.clone();
        let cards = [a.card.clone(), b.card.clone()];
        a.sim.clone().spawn_program("sender", async move {
            assert!(!a.messenger.is_started());
            a.sim.delay(Duration::from_us(10)).await;
            let (address, mut path) = (a.buffer(&pattern(20, 1)), Path::from(a.sim.now()));
            a.messenger.send(&mut path, 1, 5, address, 20).await.unwrap();
            assert!(a.messenger.is_started());
        });
        b.sim.clone().spawn_program("receiver", async move {
            let address = b.buffer(&[0; 20]);
            if !receives_first {
                b.sim.delay(Duration::from_us(500)).await;
            }
            let mut path = Path::from(b.sim.now());
            let posted = b.messenger.post(&path, Some(0), Tags::exactly(5), address, 20).unwrap();
            b.messenger.received(&mut path, posted).await.unwrap();
            assert_eq!(b.bytes(address, 20), pattern(20, 1));
        });
        late.sim.clone().spawn_program("looks on", async move {
            late.sim.delay(Duration::from_us(5)).await;
            assert_eq!(late.messenger.is_started(), receives_first);
            late.sim.delay(Duration::from_us(400)).await;
            assert!(late.messenger.is_started(), "the message has come");
        });
        world.run().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(cards.map(|card| card.port_counters().unclaimed), [0, 0]);
    }
}

#[test]
fn messages_need_their_microengines() {
    let (mut world, [a, b]) = pair(&crate::spec(&[]), 1);
    let spec = crate::spec(&[]);
    let wait = crate::program(
        &spec,
        &[nicety_hpu::asm::addi(17, 0, number::WAIT_ANY as i32), nicety_hpu::asm::ecall()],
    );
    b.card.processor().load(57, &wait, 1).unwrap();
    b.card.processor().start(57, 0, nicety_nic_nfp::map::CODE, &[1]);
    let card = b.card.clone();
    a.sim.clone().spawn_program("sender", async move {
        let (address, mut path) = (a.buffer(&[0; 20]), Path::from(Time::ZERO));
        a.messenger.send(&mut path, 1, 5, address, 20).await.unwrap();
    });
    b.sim.clone().spawn_program("receiver", async move {
        b.sim.delay(Duration::from_us(500)).await;
        let error =
            b.messenger.post(&Path::from(b.sim.now()), None, Tags::ANY, 0, 0).map(|_| ()).unwrap_err();
        assert_eq!(error, MessageError::Microengine { number: 57, first: 56, last: 59 });
        assert!(
            error.to_string().contains("need microengines 56 to 59, but a process runs on microengine 57")
        );
    });
    world.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(card.port_counters().unclaimed, 1);
}

#[test]
fn a_card_that_is_too_small_says_of_what() {
    for (key, text) in [
        ("hpu.cores=2", "it needs 4 microengines, but the card has 2 (hpu.cores)"),
        ("hpu.contexts=4", "it needs 8 contexts of a microengine, but the card has 4 (hpu.contexts)"),
        ("memory.emem.size=1 MiB", "bytes of EMEM, but the card has 1048576 (memory.emem.size)"),
        ("limits.targets=17", "it needs 18 targets, but the card has 17 (limits.targets)"),
        ("limits.threads=17", "it needs 18 threads, but the card has 17 (limits.threads)"),
    ] {
        let spec = crate::spec(&[key]);
        let mut world: World<Symbol> = World::new(Config::default());
        let nodes = [world.add_node(), world.add_node()];
        let (a, _b) = nicety_fabric::pair(&mut world, nodes[0], nodes[1], spec.node.link);
        let (card, _) = card(&world, &spec, nodes[0], (a, 2));
        let error = Messenger::install(&world.sim(nodes[0]), &card, 2).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

/// A large message keeps the link busy. Three steps overlap: the load of a chunk, the send of the previous chunk, and
/// the delivery of the chunk before that.
#[test]
fn chunks_overlap() {
    const BYTES: usize = 4 << 20;
    let (mut world, [a, b]) = pair(&crate::spec(&[]), 1);
    let sender = a.clone();
    a.sim.spawn_program("sender", async move {
        let (address, mut path) = (sender.buffer(&pattern(BYTES, 1)), Path::from(Time::ZERO));
        sender.messenger.send(&mut path, 1, 0, address, BYTES as u64).await.unwrap();
    });
    b.sim.clone().spawn_program("receiver", async move {
        let (address, mut path) = (b.buffer(&vec![0; BYTES]), Path::from(Time::ZERO));
        let posted = b.messenger.post(&path, None, Tags::ANY, address, BYTES as u64).unwrap();
        b.messenger.received(&mut path, posted).await.unwrap();
        assert_eq!(b.bytes(address, BYTES), pattern(BYTES, 1));
        let gbps = 8.0 * BYTES as f64 / (b.sim.now().ps() as f64 / 1000.0);
        // Steps without overlap would reach only 3 Gb/s. The load is the slowest step.
        assert!((5.0..9.6).contains(&gbps), "{gbps}");
    });
    world.run().unwrap_or_else(|error| panic!("{error}"));
}

/// A message of a random program: source, destination, size in bytes, and the delay before its send.
type Sent = (u32, u32, usize, u32);

/// Three hosts at a switch post receives for all of these messages, each host in its own order, and send the messages.
/// Returns the end of the run.
fn exchange(messages: &[Sent], order: u64, shards: usize) -> Time {
    let spec = crate::spec(&[]);
    let mut world: World<Symbol> = World::new(Config { seed: 1, shards, ..Config::default() });
    let ids = [world.add_node(), world.add_node(), world.add_node()];
    let parts = NetworkSpec { link: spec.node.link, switch: spec.node.switch, router: spec.node.router };
    let (ports, _) = Topology::Star.build(&mut world, &ids, &parts).unwrap();
    let nodes: Vec<_> =
        ids.into_iter().zip(ports).map(|(id, port)| node(&world, &spec, id, (port, 3))).collect();
    let cards: Vec<_> = nodes.iter().map(|node| node.card.clone()).collect();
    for node in nodes {
        let me = node.sim.node().0;
        let mut awaited: Vec<_> =
            messages.iter().enumerate().filter(|(_, message)| message.1 == me).collect();
        let turns = (order as usize * (me as usize + 1)) % awaited.len().max(1);
        awaited.rotate_left(turns);
        let (mut path, mut posted) = (Path::from(Time::ZERO), Vec::new());
        for &(number, &(from, _, len, _)) in &awaited {
            let address = node.buffer(&vec![0; len + 3]);
            // Every second receive accepts any rank.
            let source = (number % 2 == 0).then_some(from);
            let room = len as u64 + 3;
            let receive =
                node.messenger.post(&path, source, Tags::exactly(number as u64), address, room).unwrap();
            posted.push((number, from, len, address, receive));
        }
        let (receiver, mut own) = (node.clone(), path.clone());
        node.sim.clone().spawn_program("receiver", async move {
            for (number, source, len, address, receive) in posted {
                let arrival = receiver.messenger.received(&mut path, receive).await.unwrap();
                assert_eq!(arrival, Arrival { source, tag: number as u64, bytes: len as u64 });
                assert_eq!(receiver.bytes(address, len + 3), [pattern(len, number), vec![0; 3]].concat());
            }
        });
        let sends: Vec<_> =
            messages.iter().copied().enumerate().filter(|(_, message)| message.0 == me).collect();
        node.sim.clone().spawn_program("sender", async move {
            for (number, (_, to, len, wait)) in sends {
                node.sim.delay(Duration::from_ns(wait.into())).await;
                let address = node.buffer(&pattern(len, number));
                node.messenger.send(&mut own, to, number as u64, address, len as u64).await.unwrap();
            }
        });
    }
    let end = world.run().unwrap_or_else(|error| panic!("{error}")).end;
    for card in &cards {
        assert_eq!(card.channel_counters().pinned, 0);
        assert_eq!(card.channel_counters().dropped, 0);
    }
    let frames = |count: fn(&Card) -> u64| cards.iter().map(|card| count(card)).sum::<u64>();
    assert_eq!(frames(|card| card.port_counters().sent), frames(|card| card.port_counters().received));
    end
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(24))]

    #[test]
    fn every_message_arrives_once(
        messages in prop::collection::vec(
            (0..3u32, 0..3u32, prop_oneof![0..80usize, 0..80usize, 80..150_000usize], 0..50_000u32)
                .prop_map(|(from, other, len, wait)| (from, (from + other) % 3, len, wait)),
            1..40,
        ),
        order in 0..40u64,
    ) {
        let end = exchange(&messages, order, 1);
        prop_assert_eq!(exchange(&messages, order, 3), end);
    }
}
