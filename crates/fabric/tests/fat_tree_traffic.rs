//! Random traffic through random fat trees. Every pair has a path of the right length. No packet is lost, duplicated,
//! reordered or stuck, however small the buffers. The number of shards makes no difference.

use crate::switch_support::{Net, Received, Send, at, cases, ps};
use nicety_fabric::{
    FatTree, LinkProtocol, LinkSpec, NetworkSpec, NetworkStatistics, SwitchSpec, Topology, UpRouting,
};
use nicety_kernel::Summary;
use nicety_types::{Duration, Gap, Stage};
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Clone, Debug)]
struct Traffic {
    ports: u32,
    levels: Option<u32>,
    up: UpRouting,
    hosts: u32,
    spec: NetworkSpec,
    /// By sender: the receiver, the number of packets, the size of the last packet in bytes, and the time.
    messages: Vec<Vec<(u32, u64, u64, u64)>>,
    services: Vec<u64>,
}

const FULL: u64 = 64;

fn traffic() -> impl Strategy<Value = Traffic> {
    let tree = (1..5u32, prop_oneof![Just(None), (1..6u32).prop_map(Some)]);
    let up = prop::sample::select(UpRouting::ALL);
    tree.prop_flat_map(move |(half, levels)| {
        let most = 2 * half.pow(levels.unwrap_or(5)).min(8);
        ((2..=most), Just((half, levels)))
    })
    .prop_flat_map(move |(hosts, (half, levels))| {
        let message = (0..hosts, 1..5u64, 0..=FULL, prop_oneof![Just(0), 0..5_000u64]);
        let messages = prop::collection::vec(prop::collection::vec(message, 0..6), hosts as usize);
        let services = prop::collection::vec(prop_oneof![Just(0), 0..20_000u64], hosts as usize);
        let link = (1..5_000u64, 0..400u64, 1..8u64, 0..100u64);
        let spec = (link, 1..4u32, 1..4u32, 0..6_000u64).prop_map(
            |((latency, gap, of, header), card, switch, through)| NetworkSpec {
                link: LinkSpec {
                    latency: ps(latency),
                    gap: Gap::new(gap, of),
                    header,
                    buffer: card,
                    channels: 1,
                    protocol: LinkProtocol::NONE,
                },
                switch: SwitchSpec { latency: ps(through), ports: 36, buffer: switch },
                router: None,
            },
        );
        (messages, services, spec, up.clone()).prop_map(move |(messages, services, spec, up)| Traffic {
            ports: 2 * half,
            levels,
            up,
            hosts,
            spec,
            messages,
            services,
        })
    })
}

impl Traffic {
    /// Returns one packet to every host, then the random messages of the host.
    fn sends(&self, host: u32) -> Vec<Send> {
        let mut sends = Vec::new();
        let greetings = (0..self.hosts).map(|to| (to, 1, u64::from(to), 0));
        for (message, (to, packets, last, begin)) in
            (0..).zip(greetings.chain(self.messages[host as usize].iter().copied()))
        {
            for k in 0..packets {
                let bytes = if k + 1 < packets { FULL } else { last };
                sends.push(Send { to, bytes, message, offset: k * FULL, head: at(begin), tail: at(begin) });
            }
        }
        sends
    }

    fn observe(&self, shards: usize) -> (Summary, Vec<Received>, NetworkStatistics) {
        let tree = FatTree::new(self.ports, self.levels).unwrap().routed(self.up);
        let mut net = Net::joined(Topology::FatTree(tree), self.hosts, shards, &self.spec);
        for host in 0..self.hosts {
            net.sends(host, &self.sends(host));
            net.serves(host, ps(self.services[host as usize]));
        }
        net.run()
    }

    /// Number of switches on the path between two hosts: up to the first subtree with both hosts, and down.
    fn switches(&self, a: u32, b: u32) -> u64 {
        let half = self.ports / 2;
        let needed = (1..).find(|&l| half.pow(l) * 2 >= self.hosts).unwrap();
        let top = self.levels.unwrap_or(needed) - 1;
        let meet = (0..top).find(|&l| a / half.pow(l + 1) == b / half.pow(l + 1)).unwrap_or(top);
        u64::from(2 * meet + 1)
    }

    fn check(&self, received: &[Received], statistics: &NetworkStatistics) {
        let mut missing = HashMap::new();
        for host in 0..self.hosts {
            for s in self.sends(host) {
                missing.insert((host, s.message, s.offset), (s.to, s.bytes));
            }
        }
        let mut last = HashMap::new();
        for r in received {
            assert_eq!(missing.remove(&(r.source, r.message, r.offset)), Some((r.by, r.bytes)));
            // Packets of a flow are not reordered. If messages take different paths, this holds within each message.
            let flow = if self.up == UpRouting::HashMessage { Some(r.message) } else { None };
            let before = last.insert((r.source, r.by, flow), (r.message, r.offset));
            assert!(before < Some((r.message, r.offset)));
            let switches = self.switches(r.source, r.by);
            // The recorded path may belong to an earlier packet of the message. All packets of the message take the
            // same path.
            assert_eq!(r.path.total(Stage::SWITCH), self.spec.switch.latency * switches);
            let took = r.path.at().since(r.path.origin());
            assert_eq!(r.path.stages().map(|(_, d)| d).sum::<Duration>(), took);
            assert!(took >= self.spec.switch.latency * switches + self.spec.link.latency * (switches + 1));
        }
        assert!(missing.is_empty(), "not delivered: {missing:?}");
        let hops: u64 = received.iter().map(|r| self.switches(r.source, r.by)).sum();
        let counted: u64 = statistics.switches.iter().flat_map(|s| &s.ports).map(|p| p.sent_packets).sum();
        assert_eq!(counted, hops);
        for port in statistics.switches.iter().flat_map(|s| &s.ports) {
            assert!(port.peak_buffer <= self.spec.switch.buffer);
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn everything_comes_once_by_a_path_of_the_right_length(traffic in traffic()) {
        let one = traffic.observe(1);
        traffic.check(&one.1, &one.2);
        for shards in [2, 3, 7, 40] {
            prop_assert_eq!(&traffic.observe(shards), &one, "{} shards", shards);
        }
    }

    #[test]
    fn a_saturated_tree_does_not_lock_up(half in 1..4u32, levels in 1..4u32, up in prop::sample::select(UpRouting::ALL)) {
        // All hosts send many packets to all hosts. Every buffer has one slot, and receivers are slower than links.
        let hosts = 2 * half.pow(levels);
        let spec = NetworkSpec {
            link: LinkSpec { latency: ps(1_000), gap: Gap::new(20, 1), header: 0, buffer: 1, channels: 1, protocol: LinkProtocol::NONE },
            switch: SwitchSpec { latency: ps(500), ports: 36, buffer: 1 }, router: None,
        };
        let tree = FatTree::new(2 * half, Some(levels)).unwrap().routed(up);
        let mut net = Net::joined(Topology::FatTree(tree), hosts, 1, &spec);
        for host in 0..hosts {
            // All hosts send bursts to the same receivers, so that queues extend from these receivers to all hosts.
            let to = |turn: u32| (turn * 7 + turn % 3 * host) % hosts;
            let sends: Vec<Send> = (0..2 * hosts)
                .flat_map(|turn| (0..4).map(move |k| (turn, k)))
                .map(|(turn, k)| {
                    Send { to: to(turn), bytes: 64, message: turn.into(), offset: k * 64, head: at(0), tail: at(0) }
                })
                .collect();
            net.sends(host, &sends);
            net.serves(host, ps(3_000));
        }
        let (_, received, statistics) = net.run();
        assert_eq!(received.len() as u32, hosts * 2 * hosts * 4);
        prop_assert!(statistics.switches.iter().flat_map(|s| &s.ports).all(|p| p.peak_buffer <= 1));
    }
}
