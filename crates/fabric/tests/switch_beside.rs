//! The launcher's barriers, which traffic through a switch cannot delay, and the data in packets.

use crate::switch_support::{Net, SPIN, at, ps, send};
use nicety_fabric::{HeaderBytes, Launcher, Topology, pair};
use nicety_kernel::{Config, World};
use nicety_types::{Duration, NodeId, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Returns the times at which each host left each barrier. The hosts reach the first barrier at the times `arrive`.
fn barriers(arrive: &[u64], shards: usize, busy: bool) -> Vec<(u32, u32, Time)> {
    let mut world = World::new(Config { shards, ..Config::default() });
    let hosts: Vec<NodeId> = arrive.iter().map(|_| world.add_node()).collect();
    let (ports, network) = Topology::Star.build(&mut world, &hosts, &SPIN).unwrap();
    let barriers = Launcher::install(&mut world, &hosts, Duration::from_us(10));
    let left = Rc::new(RefCell::new(Vec::new()));
    for ((host, &arrive), barrier) in hosts.iter().zip(arrive).zip(barriers) {
        let (sim, left) = (world.sim(*host), left.clone());
        sim.clone().spawn_program(format!("rank {}", host.0), async move {
            sim.until(at(arrive)).await;
            for round in 0..3 {
                barrier.wait().await;
                left.borrow_mut().push((sim.node().0, round, sim.now()));
            }
        });
    }
    let mut net = Net::new(world, ports, network);
    if busy {
        (1..arrive.len() as u32).for_each(|host| net.sends(host, &[send(0, 1 << 20, 0)]));
    }
    net.run();
    let mut left = left.borrow().clone();
    left.sort_unstable();
    left
}

#[test]
fn a_barrier_opens_two_ways_after_the_last_has_come() {
    let arrive = [5_000, 70_000_000, 0, 123];
    // The last host arrives at 70 us. All hosts reach the next barrier at once.
    let expected: Vec<_> = (0..4)
        .flat_map(|host| {
            (0..3).map(move |round| (host, round, at(90_000_000 + u64::from(round) * 20_000_000)))
        })
        .collect();
    for shards in [1, 2, 5, 9] {
        for busy in [false, true] {
            assert_eq!(barriers(&arrive, shards, busy), expected, "{shards} shards");
        }
    }
}

#[test]
fn a_pair_is_two_ports_of_one_link() {
    let mut world = World::new(Config::default());
    let (a, b) = (world.add_node(), world.add_node());
    let (of_a, of_b) = pair(&mut world, a, b, SPIN.link);
    let (_, network) = Topology::Pair.build(&mut world, &[a, b], &SPIN).unwrap();
    assert_eq!(of_a.free(), Time::ZERO);
    let mut net = Net::new(world, vec![of_a, of_b], network);
    net.sends(1, &[send(0, 8, 0)]);
    let (_, received, _) = net.run();
    assert_eq!(received[0].when, at(160 + 33_400));
    assert_eq!(net.ports[1].free(), at(160));
    assert_eq!(net.ports[1].busy(), ps(160));
}

#[test]
fn a_header_is_kept_byte_for_byte() {
    let bytes: Vec<u8> = (0..96).collect();
    for len in [0, 1, 64, 96] {
        assert_eq!(HeaderBytes::new(&bytes[..len]).as_slice(), &bytes[..len]);
    }
    assert_eq!(format!("{:?}", HeaderBytes::new(&[0xab, 1])), "HeaderBytes([ab, 01])");
}

#[test]
#[should_panic(expected = "out of range")]
fn a_header_longer_than_96_bytes_is_refused() {
    HeaderBytes::new(&[0; 97]);
}
