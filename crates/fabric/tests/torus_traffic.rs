//! Random traffic on random tori. No packet is lost, duplicated, reordered or stuck, however small the buffers. The
//! number of shards makes no difference.

use crate::switch_support::{Net, Received, Send, at, cases, ps};
use nicety_fabric::{
    LinkProtocol, LinkSpec, Medium, NetworkSpec, NetworkStatistics, RouterSpec, SwitchSpec, Topology, Torus,
    TorusShape,
};
use nicety_kernel::Summary;
use nicety_types::{Duration, Gap, Stage};
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Clone, Debug)]
struct Traffic {
    sizes: Vec<u32>,
    spec: NetworkSpec,
    /// By sender: the receiver, the number of packets, the size of the last packet in bytes, and the time.
    messages: Vec<Vec<(u32, u64, u64, u64)>>,
    services: Vec<u64>,
}

const FULL: u64 = 64;

fn traffic() -> impl Strategy<Value = Traffic> {
    let sizes = prop::collection::vec(1..=5u32, 1..=3);
    sizes.prop_flat_map(|sizes| {
        let hosts = sizes.iter().product::<u32>();
        let message = (0..hosts, 1..5u64, 0..=FULL, prop_oneof![Just(0), 0..5_000u64]);
        let messages = prop::collection::vec(prop::collection::vec(message, 0..6), hosts as usize);
        let services = prop::collection::vec(prop_oneof![Just(0), 0..20_000u64], hosts as usize);
        let link = (1..5_000u64, 0..400u64, 1..8u64, 0..100u64);
        let inner = prop::option::of((0..400u64, 1..8u64));
        let spec = (link, 1..4u32, (1..4u32, 1..4u32), 0..6_000u64, inner).prop_map(
            |((latency, gap, of, header), card, (buffer, entry), through, inner)| NetworkSpec {
                link: LinkSpec {
                    latency: ps(latency),
                    gap: Gap::new(gap, of),
                    header,
                    buffer: card,
                    channels: 1,
                    protocol: LinkProtocol::NONE,
                },
                switch: SwitchSpec { latency: ps(0), ports: 2, buffer: 1 },
                router: Some(RouterSpec {
                    latency: ps(through),
                    buffer,
                    entry,
                    gap: inner.map(|(gap, of)| Gap::new(gap, of)),
                    axes: [Medium::LINK; 3],
                }),
            },
        );
        let sizes = Just(sizes);
        (sizes, spec, messages, services).prop_map(|(sizes, spec, messages, services)| Traffic {
            sizes,
            spec,
            messages,
            services,
        })
    })
}

impl Traffic {
    fn torus(&self) -> (Torus, TorusShape) {
        let torus = Torus::new(&self.sizes).unwrap();
        (torus, torus.shape(self.messages.len()).unwrap())
    }

    fn sends(&self, host: u32) -> Vec<Send> {
        let messages = (0..).zip(&self.messages[host as usize]);
        let packets = messages.flat_map(|(message, &(to, packets, last, begin))| {
            (0..packets).map(move |k| {
                let bytes = if k + 1 < packets { FULL } else { last };
                Send { to, bytes, message, offset: k * FULL, head: at(begin), tail: at(begin) }
            })
        });
        packets.collect()
    }

    fn observe(&self, shards: usize) -> (Summary, Vec<Received>, NetworkStatistics) {
        let (torus, shape) = self.torus();
        let mut net = Net::joined(Topology::Torus(torus), shape.hosts(), shards, &self.spec);
        for host in 0..shape.hosts() {
            net.sends(host, &self.sends(host));
            net.serves(host, ps(self.services[host as usize]));
        }
        let seen = net.run();
        assert!(net.network.is_idle(), "no packet is left, and all credits are back");
        seen
    }

    fn check(&self, received: &[Received], statistics: &NetworkStatistics) {
        let ((_, shape), router) = (self.torus(), self.spec.router.unwrap());
        let mut missing = HashMap::new();
        for host in 0..shape.hosts() {
            for s in self.sends(host) {
                missing.insert((host, s.message, s.offset), (s.to, s.bytes));
            }
        }
        let mut last = HashMap::new();
        for r in received {
            assert_eq!(missing.remove(&(r.source, r.message, r.offset)), Some((r.by, r.bytes)));
            let before = last.insert((r.source, r.by), (r.message, r.offset));
            assert!(before < Some((r.message, r.offset)), "packets of a pair stay in order");
            let hops = u64::from(shape.hops(r.source, r.by));
            // The recorded path may belong to an earlier packet of the message. All packets of the message take the
            // same path.
            assert_eq!(r.path.total(Stage::SWITCH), router.latency * (hops + 1));
            let took = r.path.at().since(r.path.origin());
            assert_eq!(r.path.stages().map(|(_, d)| d).sum::<Duration>(), took);
            assert!(took >= router.latency * (hops + 1) + self.spec.link.latency * hops + ps(2));
        }
        assert!(missing.is_empty(), "not delivered: {missing:?}");
        let passed: u64 = received.iter().map(|r| u64::from(shape.hops(r.source, r.by)) + 1).sum();
        let ports = || statistics.switches.iter().flat_map(|switch| &switch.ports);
        assert_eq!(ports().map(|port| port.sent_packets).sum::<u64>(), passed);
        assert!(statistics.switches.iter().all(|switch| switch.ports[0].peak_buffer <= router.entry));
        let links = statistics.switches.iter().flat_map(|switch| &switch.ports[1..]);
        assert!(links.map(|port| port.peak_buffer).max() <= Some(router.buffer));
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn everything_comes_once_and_in_order(traffic in traffic()) {
        let one = traffic.observe(1);
        traffic.check(&one.1, &one.2);
        for shards in [2, 3, 7, 200] {
            prop_assert_eq!(&traffic.observe(shards), &one, "{} shards", shards);
        }
    }
}

#[test]
fn a_saturated_torus_does_not_lock_up() {
    // All hosts send many packets to all hosts. Every buffer has one slot, and receivers are slower than links.
    let router =
        Some(RouterSpec { latency: ps(500), buffer: 1, entry: 1, gap: None, axes: [Medium::LINK; 3] });
    let link = LinkSpec {
        latency: ps(1_000),
        gap: Gap::new(20, 1),
        header: 0,
        buffer: 1,
        channels: 1,
        protocol: LinkProtocol::NONE,
    };
    let spec = NetworkSpec { link, switch: SwitchSpec { latency: ps(0), ports: 2, buffer: 1 }, router };
    for sizes in [&[8][..], &[7], &[2, 2, 2], &[5, 4], &[4, 4, 4], &[3, 3, 3], &[1, 6, 2]] {
        let torus = Torus::new(sizes).unwrap();
        let hosts = sizes.iter().product::<u32>();
        let mut net = Net::joined(Topology::Torus(torus), hosts, 1, &spec);
        for host in 0..hosts {
            // All hosts send bursts to the same receivers, so that queues extend from these receivers to all hosts.
            let to = |turn: u32| (turn * 7 + turn % 3 * host) % hosts;
            let burst = |turn: u32| {
                (0..4).map(move |k| {
                    let (message, offset) = (turn.into(), k * 64);
                    Send { to: to(turn), bytes: 64, message, offset, head: at(0), tail: at(0) }
                })
            };
            net.sends(host, &(0..40).flat_map(burst).collect::<Vec<_>>());
            net.serves(host, ps(3_000));
        }
        let (_, received, _) = net.run();
        assert_eq!(received.len() as u32, hosts * 160, "{sizes:?}");
        assert!(net.network.is_idle());
    }
}
