//! Random traffic through a switch: no packet is lost, duplicated, reordered or stuck. The number of shards makes no
//! difference.

use crate::switch_support::{Net, Received, Send, at, cases, ps};
use nicety_fabric::{LinkProtocol, LinkSpec, NetworkSpec, NetworkStatistics, SwitchSpec};
use nicety_kernel::Summary;
use nicety_types::{Duration, Gap, Path};
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Clone, Debug)]
struct Traffic {
    spec: NetworkSpec,
    /// The packets of each sender, by sender.
    sends: Vec<Vec<Send>>,
    services: Vec<u64>,
}

fn network() -> impl Strategy<Value = NetworkSpec> {
    let buffers = (1..5u32, 1..5u32);
    (1..5_000u64, 0..400u64, 1..8u64, 0..100u64, buffers, 0..6_000u64).prop_map(
        |(latency, gap, of, header, (card, buffer), switch)| NetworkSpec {
            link: LinkSpec {
                latency: ps(latency),
                gap: Gap::new(gap, of),
                header,
                buffer: card,
                channels: 1,
                protocol: LinkProtocol::NONE,
            },
            switch: SwitchSpec { latency: ps(switch), ports: 8, buffer },
            router: None,
        },
    )
}

/// Generates a message of a few packets of up to 64 bytes. Its bytes may arrive slowly.
fn message(hosts: u32) -> impl Strategy<Value = (u32, u64, u64, u64, u64)> {
    (0..hosts, 1..6u64, 0..65u64, 0..8_000u64, prop_oneof![Just(0), 0..2_000u64])
}

fn traffic() -> impl Strategy<Value = Traffic> {
    (2..=8u32).prop_flat_map(|hosts| {
        let messages = prop::collection::vec(message(hosts), 0..8);
        let sends = prop::collection::vec(messages, hosts as usize);
        let services = prop::collection::vec(prop_oneof![Just(0), 0..20_000u64], hosts as usize);
        (network(), sends, services).prop_map(|(spec, messages, services)| {
            let sends = messages.into_iter().map(|messages| packets(&messages)).collect();
            Traffic { spec, sends, services }
        })
    })
}

fn packets(messages: &[(u32, u64, u64, u64, u64)]) -> Vec<Send> {
    let mut sends = Vec::new();
    for (number, &(to, packets, last, begin, slow)) in messages.iter().enumerate() {
        for k in 0..packets {
            let bytes = if k + 1 < packets { 64 } else { last };
            let head = at(begin + k * slow);
            let tail = head + ps(slow);
            sends.push(Send { to, bytes, message: number as u64, offset: k * 64, head, tail });
        }
    }
    sends
}

fn observe(traffic: &Traffic, shards: usize) -> (Summary, Vec<Received>, NetworkStatistics) {
    observe_as(traffic, shards, false)
}

fn observe_as(
    traffic: &Traffic,
    shards: usize,
    is_early: bool,
) -> (Summary, Vec<Received>, NetworkStatistics) {
    let mut net = Net::star(traffic.sends.len() as u32, shards, &traffic.spec);
    net.is_early = is_early;
    for (host, sends) in (0..).zip(&traffic.sends) {
        net.sends(host, sends);
        net.serves(host, ps(traffic.services[host as usize]));
    }
    net.run()
}

fn check(traffic: &Traffic, received: &[Received], statistics: &NetworkStatistics) {
    let mut missing = HashMap::new();
    for (source, sends) in (0..).zip(&traffic.sends) {
        for s in sends {
            missing.insert((source, s.message, s.offset), (s.to, s.bytes));
        }
    }
    let mut last = HashMap::new();
    let LinkSpec { latency, gap, header, .. } = traffic.spec.link;
    let fastest = latency * 2 + traffic.spec.switch.latency;
    for r in received {
        assert_eq!(missing.remove(&(r.source, r.message, r.offset)), Some((r.by, r.bytes)));
        // Packets from one sender to one receiver stay in order, and an output sends one packet at a time.
        let before = last.insert((r.source, r.by), (r.message, r.offset));
        assert!(before < Some((r.message, r.offset)));
        let before = last.insert((u32::MAX, r.by), (r.when.ps(), 0)).map_or(0, |(when, _)| when);
        assert!(r.when >= at(before) + gap.cover(r.bytes + header));
        check_path(&r.path, fastest);
    }
    assert!(missing.is_empty(), "not delivered: {missing:?}");
    let ports = &statistics.switches[0].ports;
    for (host, port) in statistics.hosts.iter().zip(ports) {
        assert_eq!((host.sent_packets, host.sent_bytes), (port.received_packets, port.received_bytes));
        assert_eq!((port.sent_packets, port.sent_bytes), (host.received_packets, host.received_bytes));
        assert!(port.busy >= gap.cover(port.sent_bytes), "an output is busy with its bytes at least");
        assert!(
            port.peak_buffer <= traffic.spec.switch.buffer && host.peak_buffer <= traffic.spec.link.buffer
        );
    }
}

fn check_path(path: &Path, fastest: Duration) {
    let took = path.at().since(path.origin());
    assert_eq!(path.stages().map(|(_, d)| d).sum::<Duration>(), took);
    assert!(took >= fastest);
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn everything_comes_once_and_at_the_same_time_in_any_number_of_shards(traffic in traffic()) {
        let one = observe(&traffic, 1);
        check(&traffic, &one.1, &one.2);
        for shards in 2..=traffic.sends.len() + 1 {
            prop_assert_eq!(&observe(&traffic, shards), &one, "{} shards", shards);
        }
    }

    /// Senders launch packets in advance, and receivers free slots in advance. This takes fewer events.
    #[test]
    fn early_announcements_happen_on_time(traffic in traffic()) {
        let (summary, received, statistics) = observe(&traffic, 1);
        let early = observe_as(&traffic, 1, true);
        prop_assert_eq!((early.0.end, early.1, early.2), (summary.end, received, statistics));
        prop_assert!(early.0.events <= summary.events);
    }
}
