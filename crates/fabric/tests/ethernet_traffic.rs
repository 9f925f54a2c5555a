//! Random traffic without credits. Each packet either arrives once or is counted where it was dropped. Without pauses,
//! exactly the packets without room are dropped. With pauses, no packet is dropped. The number of shards makes no
//! difference.

use crate::switch_support::{Net, Received, Send, at, cases, ps};
use nicety_fabric::{
    Alpha, Buffering, FlowControl, LinkProtocol, LinkSpec, NetworkSpec, PauseSpec, Per, QueueStatistics,
    SwitchSpec,
};
use nicety_types::Gap;
use proptest::prelude::*;
use std::collections::HashSet;

const MOST: u64 = 4096;

#[derive(Clone, Debug)]
struct Traffic {
    topology: &'static str,
    spec: NetworkSpec,
    flow: FlowControl,
    /// The packets of each sender, by sender.
    sends: Vec<Vec<Send>>,
    services: Vec<u64>,
}

fn network() -> impl Strategy<Value = NetworkSpec> {
    (1..60_000u64, 1..400u64, 1..8u64, 0..100u64, 1..5u32, 0..6_000u64).prop_map(
        |(latency, gap, of, header, buffer, switch)| NetworkSpec {
            link: LinkSpec {
                latency: ps(latency),
                gap: Gap::new(gap, of),
                header,
                buffer,
                channels: 1,
                protocol: LinkProtocol::NONE,
            },
            switch: SwitchSpec { latency: ps(switch), ports: 8, buffer: 4 },
            router: None,
        },
    )
}

/// Returns the size on the wire of the longest packet, and the number of bytes that arrive until a paused sender stops.
fn needed(spec: &NetworkSpec) -> (u64, u64) {
    let LinkSpec { latency, gap, header, .. } = spec.link;
    let largest = MOST + header;
    let time = latency * 2 + gap.cover(largest) + gap.cover(84);
    (largest, gap.bytes_in(time) + largest)
}

fn flow(spec: NetworkSpec) -> impl Strategy<Value = FlowControl> {
    let (largest, needed) = needed(&spec);
    let alpha = (1..9u64, 1..9u64).prop_map(|(n, d)| Alpha::new(n, d));
    let none = (largest..6 * largest, any::<bool>(), alpha.clone()).prop_map(|(size, shared, alpha)| {
        let per = if shared { Per::Shared } else { Per::Port };
        FlowControl::None(Buffering { size: Some(size), per, alpha })
    });
    // Without `headroom`, the headroom is exactly as large as needed.
    let pause = move |quanta, headroom| PauseSpec { xoff: None, xon: None, headroom, quanta };
    let own = (largest..3 * largest, 2_000..u16::MAX).prop_map(move |(xoff, quanta)| {
        let buffering = Buffering { size: Some(xoff + needed), ..Buffering::default() };
        FlowControl::Pfc(buffering, pause(quanta, None))
    });
    let shared = (largest..6 * largest, alpha).prop_map(move |(size, alpha)| {
        let buffering = Buffering { size: Some(size + 8 * needed), per: Per::Shared, alpha };
        FlowControl::Pfc(buffering, pause(u16::MAX, None))
    });
    let cut = (largest..3 * largest, 0..needed).prop_map(move |(xoff, headroom)| {
        let buffering = Buffering { size: Some(xoff + headroom), ..Buffering::default() };
        FlowControl::Pfc(buffering, pause(u16::MAX, Some(headroom)))
    });
    prop_oneof![3 => none, 2 => own, 2 => shared, 1 => cut]
}

/// Whether a network with this flow control loses nothing.
fn is_lossless(flow: FlowControl) -> bool {
    matches!(flow, FlowControl::Pfc(_, PauseSpec { headroom: None, .. }))
}

fn message(hosts: u32) -> impl Strategy<Value = (u32, u64, u64, u64)> {
    (0..hosts, 1..9u64, prop_oneof![0..65u64, 0..=MOST], 0..80_000u64)
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let shape = prop_oneof![
        (2..=8u32).prop_map(|hosts| ("star", hosts)),
        (3..=8u32).prop_map(|hosts| ("fat-tree:4", hosts)),
    ];
    (shape, network()).prop_flat_map(|((topology, hosts), spec)| {
        let messages = prop::collection::vec(message(hosts), 0..8);
        let sends = prop::collection::vec(messages, hosts as usize);
        let services = prop::collection::vec(prop_oneof![Just(0), 0..2_000_000u64], hosts as usize);
        (flow(spec), sends, services).prop_map(move |(flow, messages, services)| {
            let sends = messages.into_iter().map(|messages| packets(&messages)).collect();
            Traffic { topology, spec, flow, sends, services }
        })
    })
}

fn packets(messages: &[(u32, u64, u64, u64)]) -> Vec<Send> {
    let mut sends = Vec::new();
    for (number, &(to, packets, bytes, begin)) in messages.iter().enumerate() {
        for k in 0..packets {
            let (message, head) = (number as u64, at(begin));
            sends.push(Send { to, bytes, message, offset: k * MOST, head, tail: head });
        }
    }
    sends
}

type Observed = (u64, Vec<Received>, Vec<QueueStatistics>, usize);

fn observe(traffic: &Traffic, shards: usize) -> Observed {
    let hosts = traffic.sends.len() as u32;
    let mut net = Net::flowing(traffic.topology, hosts, shards, &traffic.spec, traffic.flow);
    for (host, sends) in (0..).zip(&traffic.sends) {
        net.sends(host, sends);
        net.serves(host, ps(traffic.services[host as usize]));
    }
    let (outcome, received) = net.try_run();
    let end = outcome.unwrap().end.ps();
    assert!(net.network.is_idle() && net.network.paused_ring().is_none());
    let lost = net.network.causes().iter().map(|cause| cause.3 as usize).sum();
    (end, received, net.network.queues(), lost)
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn each_packet_comes_once_or_is_counted_where_it_was_dropped(traffic in traffic()) {
        let one = observe(&traffic, 1);
        let (_, received, queues, lost) = &one;
        let wire = |bytes: u64| (bytes + traffic.spec.link.header).max(84);
        let sent: Vec<u64> = traffic.sends.iter().flatten().map(|send| wire(send.bytes)).collect();
        let dropped: u64 = queues.iter().map(|queue| queue.dropped_packets).sum();
        let bytes: u64 = queues.iter().map(|queue| queue.dropped_bytes).sum();
        let came: HashSet<_> = received.iter().map(|r| (r.source, r.message, r.offset)).collect();
        prop_assert_eq!(came.len(), received.len(), "none comes twice");
        prop_assert_eq!(received.len() as u64 + dropped, sent.len() as u64);
        prop_assert_eq!(received.iter().map(|r| wire(r.bytes)).sum::<u64>() + bytes, sent.iter().sum::<u64>());
        prop_assert_eq!(*lost as u64, dropped);
        if is_lossless(traffic.flow) {
            prop_assert_eq!(dropped, 0);
        }
        for shards in 2..=traffic.sends.len() + 1 {
            prop_assert_eq!(&observe(&traffic, shards), &one, "{} shards", shards);
        }
    }
}

/// Returns whether each packet that arrives at an output finds room, computed from a list of departures. `arrivals` has
/// the time and the size in bytes of each packet.
fn admitted(arrivals: &[(u64, u64)], spec: &NetworkSpec, size: u64) -> Vec<bool> {
    let mut inside: Vec<(u64, u64)> = Vec::new();
    let mut free = 0;
    let admit = |&(time, bytes): &(u64, u64)| {
        inside.retain(|&(left, _)| left > time);
        let fits = inside.iter().map(|(_, bytes)| bytes).sum::<u64>() + bytes <= size;
        if fits {
            let start = free.max(time + spec.switch.latency.ps());
            free = start + spec.link.gap.cover(bytes).ps();
            inside.push((free, bytes));
        }
        fits
    };
    arrivals.iter().map(admit).collect()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn exactly_those_are_dropped_for_which_there_is_no_room(
        spec in network(),
        sends in prop::collection::vec((0..300_000u64, 0..=MOST), 1..8),
        room in 1.0..4.0f64,
    ) {
        let (largest, _) = needed(&spec);
        let size = (largest as f64 * room) as u64;
        let flow = FlowControl::None(Buffering { size: Some(size), ..Buffering::default() });
        let spec = NetworkSpec { link: LinkSpec { buffer: 100, ..spec.link }, ..spec };
        let hosts = sends.len() as u32 + 1;
        let spec = NetworkSpec { switch: SwitchSpec { ports: hosts, ..spec.switch }, ..spec };
        let mut net = Net::flowing("star", hosts, 1, &spec, flow);
        let mut arrivals = Vec::new();
        for (host, &(begin, bytes)) in (0..).zip(&sends) {
            let (to, head) = (hosts - 1, at(begin));
            net.sends(host, &[Send { to, bytes, message: 0, offset: 0, head, tail: head }]);
            arrivals.push((begin + spec.link.latency.ps(), host, (bytes + spec.link.header).max(84)));
        }
        arrivals.sort_unstable();
        let expected = admitted(&arrivals.iter().map(|&(time, _, bytes)| (time, bytes)).collect::<Vec<_>>(), &spec, size);
        let expected: HashSet<u32> = arrivals.iter().zip(expected).filter(|(_, fits)| *fits).map(|(a, _)| a.1).collect();
        let found: HashSet<u32> = net.try_run().1.iter().map(|r| r.source).collect();
        prop_assert_eq!(found, expected);
    }
}
