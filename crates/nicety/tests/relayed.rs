//! Tests that a card reads only the bytes of a packet. The relay of these tests rebuilds packets from their bytes, with
//! arbitrary labels and empty paths. On every design, the receiver gets the same messages as from the original packets,
//! at the same virtual times.

use nicety_fabric::{Network, NetworkSpec, Symbol};
use nicety_kernel::World;
use nicety_nic_testing::relay::{self, Relay};
use nicety_nic_testing::{Host, pattern};
use nicety_spec::{SHIPPED, Spec, parse_override};
use nicety_types::{Duration, NodeId, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Sizes of messages in bytes, for eager messages, several packets, and rendezvous.
const SIZES: [u64; 6] = [0, 8, 3000, 20_000, 100, 70_000];

/// A received message: the receiving rank, the time, the source, the tag, and whether the bytes are correct.
type Received = (u32, Time, u32, u64, bool);

/// Returns two hosts with a relay between them.
fn hosts(nic: &str, overrides: &[&str], relay: Relay) -> (World<Symbol>, [Host; 2], Network) {
    let overrides: Vec<_> = overrides.iter().map(|text| parse_override(text).unwrap()).collect();
    let (spec, _) = nicety::designs::read(&Spec::load(nic, &overrides, SHIPPED).unwrap()).unwrap();
    let node = spec.node();
    let (world, ports, network) =
        relay::link(relay, &NetworkSpec { link: node.link, switch: node.switch, router: node.router });
    let mut rank = 0;
    let hosts = ports.map(|port| {
        rank += 1;
        Host::install(&spec, world.sim(NodeId(rank - 1)), port, 2)
    });
    (world, hosts, network)
}

/// Both hosts send messages of all sizes to each other, and receive them in a different order.
fn run(nic: &str, overrides: &[&str], relay: Relay) -> Vec<Received> {
    let (mut world, hosts, _network) = hosts(nic, overrides, relay);
    let came = Rc::new(RefCell::new(Vec::new()));
    for (rank, host) in (0..2).zip(hosts) {
        let sim = host.sim.clone();
        for (tag, bytes) in (0..).zip(SIZES) {
            let sender = host.clone();
            sim.spawn_program(format!("sender {rank}.{tag}"), async move {
                send(&sender, 1 - rank, tag, bytes).await;
            });
        }
        let came = came.clone();
        sim.spawn_program(format!("receiver {rank}"), async move {
            // Some messages arrive before their receives.
            host.sim.delay(Duration::from_us(20)).await;
            for tag in [3, 0, 1, 2, 5, 4] {
                let (source, tag, right) = receive(&host, tag).await;
                came.borrow_mut().push((rank, host.sim.now(), source, tag, right));
            }
        });
    }
    world.run().unwrap_or_else(|error| panic!("{nic}: {error}"));
    came.take()
}

/// Sends `bytes` bytes that encode the tag.
async fn send(host: &Host, to: u32, tag: u64, bytes: u64) {
    let buffer = host.room(bytes);
    buffer.bytes().unwrap().write(0, &pattern(bytes as usize, tag));
    host.send_from(&buffer, to, tag, bytes).await.unwrap();
}

/// Receives the message with a tag. Returns its source, its tag, and whether its bytes are correct.
async fn receive(host: &Host, tag: u64) -> (u32, u64, bool) {
    let room = SIZES[tag as usize];
    let buffer = host.room(room);
    let arrival = host.receive_into(&buffer, Some(tag), room).await.unwrap();
    let mut bytes = vec![0; room as usize];
    buffer.bytes().unwrap().read(0, &mut bytes);
    (arrival.source, arrival.tag, arrival.bytes == room && bytes == pattern(room as usize, tag))
}

#[test]
fn messages_are_received_from_the_bytes_of_packets_alone() {
    for (nic, overrides) in [
        ("spin-discrete", &[][..]),
        ("spin-discrete", &["transport.reliable=true"]),
        ("spin-integrated", &["buffer.packets=2"]),
        ("qnix", &[]),
        ("nfp-4000", &[]),
        ("apenet-v5", &[]),
        ("niagara2-niu", &[]),
        ("niagara2-neptune", &[]),
    ] {
        let found = run(nic, overrides, Relay::FromBytes);
        assert_eq!(found, run(nic, overrides, Relay::Unchanged), "{nic} {overrides:?}");
        let others = found.iter().all(|&(rank, _, source, _, right)| source == 1 - rank && right);
        assert!(others && found.len() == 2 * SIZES.len(), "{nic} {overrides:?}: {found:?}");
    }
}

#[test]
fn a_phantom_that_waits_for_its_receive_copies_no_bytes() {
    const BYTES: u64 = 1500;
    // A buffer has room for two messages, and every third message is a phantom. So in each half of a buffer, a real
    // message follows a phantom.
    let overrides = ["messages.buffers=2", "messages.buffer=4 KiB"];
    let (mut world, [sender, receiver], _network) = hosts("spin-discrete", &overrides, Relay::Unchanged);
    let apart = Duration::from_us(40);
    let [sending, receiving] = [&sender, &receiver].map(|host| host.sim.clone());
    sending.spawn_program("sender", async move {
        for tag in 0..12 {
            match tag % 3 {
                0 => {
                    let buffer = sender.memory.allocate_phantom(BYTES).unwrap();
                    sender.send_from(&buffer, 1, tag, BYTES).await.unwrap();
                }
                _ => send(&sender, 1, tag, BYTES).await,
            }
            sender.sim.delay(apart).await;
        }
    });
    receiving.spawn_program("receiver", async move {
        receiver.sim.delay(Duration::from_us(20)).await;
        for tag in 0..12 {
            let buffer = receiver.memory.allocate(BYTES).unwrap();
            buffer.bytes().unwrap().write(0, &[0xaa; BYTES as usize]);
            let arrival = receiver.receive_into(&buffer, Some(tag), BYTES).await.unwrap();
            assert_eq!(arrival.bytes, BYTES);
            let mut bytes = [0; BYTES as usize];
            buffer.bytes().unwrap().read(0, &mut bytes);
            let left = if tag % 3 == 0 { vec![0xaa; bytes.len()] } else { pattern(bytes.len(), tag) };
            assert!(bytes == *left, "message {tag}");
            receiver.sim.delay(apart).await;
        }
    });
    world.run().unwrap();
}
