//! Networks without credits: the places of drops, the times of pauses, and cycles of waiting ports, all computed by
//! hand.

use crate::switch_support::{Net, Received, SPIN, Send, at, ps, send};
use nicety_fabric::{
    Alpha, Buffering, Cause, Drops, FaultStatistics, Faults, FlowControl, LinkFaults, NetworkSpec, PauseSpec,
    Per, Place, QueueStatistics, Rates, Topology,
};
use nicety_kernel::{Config, RunError, World};
use nicety_types::{Duration, NodeId, Stage};
use std::rc::Rc;

/// Serialisation time of 4 KiB in ps, and its size on the wire in bytes.
const PACKET: u64 = 81_920;
const BYTES: u64 = 4096;
/// The time of a packet's head over one link, and over two links and the switch between them, in ps.
const FLIGHT: u64 = 33_400;
const WAY: u64 = FLIGHT + 50_000 + FLIGHT;
/// Serialisation time of the shortest packet in ps. A pause frame takes the same time.
const LEAST: u64 = 84 * 20;

fn dropping(packets: u64) -> FlowControl {
    FlowControl::None(Buffering { size: Some(packets * BYTES), ..Buffering::default() })
}

fn shared(packets: u64, alpha: Alpha) -> FlowControl {
    FlowControl::None(Buffering { size: Some(packets * BYTES), per: Per::Shared, alpha })
}

fn pausing(size: u64, pause: PauseSpec) -> FlowControl {
    FlowControl::Pfc(Buffering { size: Some(size), ..Buffering::default() }, pause)
}

fn when(received: &[Received]) -> Vec<(u32, u64)> {
    received.iter().map(|r| (r.source, r.when.ps())).collect()
}

/// Returns the packets of a message: `packets` packets of 4 KiB, all ready at time zero.
fn message(to: u32, packets: u64) -> Vec<Send> {
    (0..packets).map(|k| Send { message: 7, offset: k * BYTES, ..send(to, BYTES, 0) }).collect()
}

fn star(hosts: u32, flow: FlowControl) -> Net {
    Net::flowing("star", hosts, 1, &SPIN, flow)
}

fn switch_queue(net: &Net, port: usize) -> QueueStatistics {
    net.network.queues()[net.ports.len() + port]
}

/// Incast: `hosts` hosts send one packet each to one more host, at the same instant.
fn incast(hosts: u32, flow: FlowControl) -> (Net, Vec<Received>) {
    let mut net = star(hosts + 1, flow);
    (0..hosts).for_each(|host| net.sends(host, &[send(hosts, BYTES, 0)]));
    let (outcome, received) = net.try_run();
    outcome.unwrap();
    assert!(net.network.is_idle());
    (net, received)
}

#[test]
fn a_free_switch_costs_the_same_as_with_credits_and_no_packet_is_shorter_than_a_frame() {
    for flow in [dropping(1), pausing(1 << 20, PauseSpec::default())] {
        let mut net = star(2, flow);
        net.sends(0, &[send(1, 8, 0), send(1, BYTES, 500_000)]);
        let (_, received, statistics) = net.run();
        assert_eq!(when(&received), [(0, LEAST + WAY), (0, 500_000 + PACKET + WAY)]);
        let path = &received[0].path;
        assert_eq!(
            path.stages().collect::<Vec<_>>(),
            [(Stage::LINK, ps(LEAST + 2 * FLIGHT)), (Stage::SWITCH, ps(50_000))]
        );
        assert_eq!(statistics.switches[0].ports[1].sent_bytes, 84 + BYTES);
        assert_eq!(statistics.hosts[1].received_bytes, 84 + BYTES);
    }
}

#[test]
fn a_port_drops_what_its_buffer_has_no_room_for() {
    let (net, received) = incast(5, dropping(3));
    assert_eq!(when(&received), [(0, PACKET + WAY), (1, 2 * PACKET + WAY), (2, 3 * PACKET + WAY)]);
    let (switch, target) = (Place::Switch(0), Place::Host(5));
    assert_eq!(
        switch_queue(&net, 5),
        QueueStatistics {
            at: switch,
            port: 5,
            peer: target,
            reason: Drops::Queue,
            dropped_packets: 2,
            dropped_bytes: 2 * BYTES,
            peak_bytes: 3 * BYTES,
            pauses_sent: 0,
            pauses_received: 0,
            paused: Duration::ZERO,
        }
    );
    assert_eq!(net.network.queues().iter().map(|queue| queue.dropped_packets).sum::<u64>(), 2);
    let lost = net.network.lost_packets();
    let found: Vec<_> = lost.iter().map(|p| (p.time, p.from, p.to, p.source.0, p.cause)).collect();
    let of = |source| (at(FLIGHT), switch, target, source, Cause::QueueFull(5));
    assert_eq!(found, [of(3), of(4)]);
    assert!(
        lost[0].to_string().ends_with(
            "of rank 3 to rank 5, bytes 0 to 4095, dropped by switch.0 at 33.4 ns: no room before its port 5 to hosts.5"
        ),
        "{}",
        lost[0]
    );
    assert_eq!(net.network.causes(), [(switch, target, Cause::QueueFull(5), 2)]);
}

#[test]
fn room_is_free_when_the_last_byte_has_left() {
    // At `left`, the first packet's last byte leaves. A head that arrives at this instant is admitted, and an earlier
    // head is not.
    let left = FLIGHT + 50_000 + PACKET;
    for (head, expected) in [(left - 1, 1), (left, 2)] {
        let mut net = star(3, dropping(1));
        net.sends(0, &[send(2, BYTES, 0)]);
        net.sends(1, &[send(2, BYTES, head - FLIGHT)]);
        assert_eq!(net.try_run().1.len(), expected, "{head}");
    }
}

#[test]
fn a_port_gets_its_share_of_a_shared_memory() {
    // The memory holds 8 packets. An output may use as much as is free with alpha 1, half as much with alpha 1/2, and
    // everything with alpha 8.
    for (alpha, admitted) in [(Alpha::new(1, 1), 4), (Alpha::new(1, 2), 3), (Alpha::new(8, 1), 8)] {
        let (net, received) = incast(12, shared(8, alpha));
        assert_eq!(received.len(), admitted, "{alpha:?}");
        assert_eq!(switch_queue(&net, 12).dropped_packets, 12 - admitted as u64);
    }
    // Port 8 gets four packets first. Port 9 then gets two: its occupancy is below the free memory at 0 < 4 and 1 < 3,
    // and not at 2 < 2.
    let mut net = star(10, shared(8, Alpha::default()));
    for host in 0..8 {
        net.sends(host, &[send(8 + host / 4, BYTES, 0)]);
    }
    net.try_run().0.unwrap();
    assert_eq!([8, 9].map(|port| switch_queue(&net, port).dropped_packets), [0, 2]);
    assert_eq!([8, 9].map(|port| switch_queue(&net, port).peak_bytes), [4 * BYTES, 2 * BYTES]);
}

/// Two hosts send three packets each to a third host. The switch between them pauses a host at two packets.
fn two_paused(pause: PauseSpec, faults: Faults) -> (Net, Vec<Received>) {
    let pause = PauseSpec { xoff: Some(2 * BYTES), ..pause };
    let mut net = star(3, pausing(1 << 20, pause));
    let ports = std::mem::take(&mut net.ports);
    let mut ports: Vec<_> = ports.into_iter().map(|port| Rc::into_inner(port).unwrap()).collect();
    net.network.inject(&faults, &mut ports).unwrap();
    net.ports = ports.into_iter().map(Rc::new).collect();
    net.sends(0, &message(2, 3));
    net.sends(1, &message(2, 3));
    net.try_run().0.unwrap();
    let received = net.try_run().1;
    (net, received)
}

/// The time at which a host is paused. The head of its second packet arrives at the switch after a packet time and a
/// link latency. The pause arrives at the host a frame time and a link latency later.
const PAUSED: u64 = FLIGHT + PACKET + LEAST + FLIGHT;

fn of_source(received: &[Received], source: u32) -> Vec<u64> {
    received.iter().filter(|r| r.source == source).map(|r| r.when.ps()).collect()
}

#[test]
fn a_sender_is_paused_at_the_threshold_and_goes_on_when_its_packets_have_left() {
    let (net, received) = two_paused(PauseSpec::default(), Faults::default());
    // The output takes packets of both hosts in turn. Host 0's second packet is its third one, and host 0 resumes when
    // the last byte of this packet has left.
    let left = FLIGHT + 50_000 + 3 * PACKET;
    let resumed = left + LEAST + FLIGHT;
    assert_eq!(of_source(&received, 0), [PACKET + WAY, 3 * PACKET + WAY, resumed + PACKET + WAY]);
    let host = net.network.queues()[0];
    assert_eq!((host.at, host.pauses_received), (Place::Host(0), 2));
    assert_eq!(host.paused, ps(resumed - PAUSED));
    let port = switch_queue(&net, 0);
    assert_eq!((port.pauses_sent, port.peak_bytes, port.dropped_packets), (2, 2 * BYTES, 0));
    assert_eq!(received.len(), 6);
    assert!(net.network.is_idle() && net.network.paused_ring().is_none());
}

#[test]
fn a_pause_that_is_not_repeated_expires() {
    let (from, to) = (Place::Switch(0), Place::Host(0));
    let drop = |frames: &[u64]| {
        let link = LinkFaults { from, to, rates: Rates::default(), down: vec![], drop: frames.to_vec() };
        Faults { links: vec![link], ..Faults::default() }
    };
    // A pause lasts for 40 quanta of 64 bytes: 51.2 ns. All pause frames after the first are lost.
    let pause = PauseSpec { quanta: 40, ..PauseSpec::default() };
    let (net, received) = two_paused(pause, drop(&(2..200).collect::<Vec<_>>()));
    // The third packet arrives at the switch before the output is free.
    assert_eq!(of_source(&received, 0)[2], 5 * PACKET + WAY);
    assert_eq!(net.network.queues()[0].paused, ps(51_200));
    let lost: u64 = net.network.statistics().faults.iter().map(|link: &FaultStatistics| link.lost).sum();
    assert!(lost > 2);
    // The first pause frame is lost. The second frame comes half a pause later, when the host has begun its third
    // packet.
    let (net, received) = two_paused(pause, drop(&[1]));
    assert_eq!(of_source(&received, 0).len(), 3);
    assert!(net.network.queues()[0].pauses_received > 1);
    // With all pause frames delivered, the sender stops until it may resume.
    let (net, _) = two_paused(pause, Faults::default());
    let resumed = FLIGHT + 50_000 + 3 * PACKET + LEAST + FLIGHT;
    assert_eq!(net.network.queues()[0].paused, ps(resumed - PAUSED));
}

fn far() -> NetworkSpec {
    let mut spec = SPIN;
    spec.link.latency = ps(100_000);
    spec
}

/// Two hosts send 40 packets each to a third host, over links with a latency of 100 ns.
fn two_streams(flow: FlowControl) -> (Net, usize) {
    let mut net = Net::flowing("star", 3, 1, &far(), flow);
    net.sends(0, &message(2, 40));
    net.sends(1, &message(2, 40));
    let (outcome, received) = net.try_run();
    outcome.unwrap();
    (net, received.len())
}

#[test]
fn with_the_computed_headroom_nothing_is_lost_and_with_less_the_switch_counts_it() {
    // The bytes that arrive until a sender stops. They arrive during two link latencies, a packet in the other
    // direction, the pause frame, and a packet that has just begun.
    let headroom = 2 * 100_000 / 20 + BYTES + 84 + BYTES;
    let size = 2 * BYTES + headroom;
    let (net, received) = two_streams(pausing(size, PauseSpec::default()));
    assert_eq!((received, net.network.lost_packets().len()), (80, 0));
    assert!(switch_queue(&net, 0).pauses_sent > 2);
    // A memory smaller by one byte is refused. So is a threshold that leaves less headroom.
    let refused = |flow: FlowControl| {
        let mut world = World::new(Config::default());
        let hosts: Vec<(NodeId, _)> = (0..3).map(|_| (world.add_node(), far().link)).collect();
        Topology::Star
            .build_with(&mut world, &hosts, &far(), (flow, 4096))
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(refused(pausing(BYTES + headroom, PauseSpec::default())), None);
    assert_eq!(
        refused(pausing(BYTES + headroom - 1, PauseSpec::default())).unwrap(),
        format!(
            "flow control pfc: a buffer of {} B has no room for a packet of 4096 B in addition to a headroom \
             of {headroom} B: it holds the bytes that arrive until a sender stops; write buffer={} or more, or a smaller \
             headroom to see what is lost",
            BYTES + headroom - 1,
            BYTES + headroom
        )
    );
    let late = PauseSpec { xoff: Some(2 * BYTES + 1), ..PauseSpec::default() };
    assert!(refused(pausing(size, late)).unwrap().contains("write xoff=8192 or less"));
    // The headroom is too small on purpose. Packets that do not fit are dropped at the input and counted.
    let cut = PauseSpec { headroom: Some(0), ..PauseSpec::default() };
    let (net, received) = two_streams(pausing(2 * BYTES, cut));
    let dropped: u64 = net.network.queues().iter().map(|queue| queue.dropped_packets).sum();
    assert!(dropped > 0);
    assert_eq!(received as u64 + dropped, 80);
    let lost = net.network.lost_packets();
    assert!(
        lost.iter()
            .all(|packet| packet.to == Place::Switch(0) && matches!(packet.cause, Cause::NoHeadroom(0 | 1)))
    );
    assert!(lost[0].to_string().contains("dropped by switch.0 at "), "{}", lost[0]);
    // When the third packet arrives, the first packet of host 1 still waits behind the first packet of host 0.
    assert!(lost[0].to_string().contains("no headroom at its port 1 from hosts.1"), "{}", lost[0]);
}

#[test]
fn a_shared_memory_pauses_by_what_is_free_and_loses_nothing() {
    let headroom = 2 * 100_000 / 20 + 2 * BYTES + 84;
    for alpha in [Alpha::new(1, 8), Alpha::new(1, 1), Alpha::new(16, 1)] {
        let size = 3 * headroom + 3 * BYTES;
        let buffering = Buffering { size: Some(size), per: Per::Shared, alpha };
        let (net, received) = two_streams(FlowControl::Pfc(buffering, PauseSpec::default()));
        assert_eq!((received, net.network.lost_packets().len()), (80, 0), "{alpha:?}");
        assert!(switch_queue(&net, 0).pauses_sent > 2, "{alpha:?}");
    }
}

#[test]
fn a_card_with_a_full_buffer_drops_what_comes_or_pauses_its_switch() {
    let mut spec = SPIN;
    spec.link.buffer = 2;
    let run = |flow| {
        let mut net = Net::flowing("star", 2, 1, &spec, flow);
        net.sends(0, &message(1, 30));
        net.serves(1, ps(10 * PACKET));
        let (outcome, received) = net.try_run();
        outcome.unwrap();
        (net.network.queues()[1], received.len() as u64, net.network.causes())
    };
    let (card, received, causes) = run(dropping(40));
    // A packet arrives every 82 ns, and the card needs 819 ns for a packet. Two packets get the two slots, and each
    // slot is free again for one more packet.
    assert_eq!((card.at, card.reason, received + card.dropped_packets), (Place::Host(1), Drops::Card, 30));
    assert_eq!(received, 2 + 2);
    assert_eq!(causes, [(Place::Switch(0), Place::Host(1), Cause::CardFull, card.dropped_packets)]);
    let (card, received, causes) = run(pausing(1 << 20, PauseSpec::default()));
    assert_eq!((card.dropped_packets, received, causes.len()), (0, 30, 0));
    assert!(card.pauses_sent > 10);
    // The packet without a slot triggers the pause. The switch had already begun one more packet.
    assert_eq!(card.peak_bytes, 2 * BYTES);
}

/// A ring of four switches with one host each. Each host sends to the host at the opposite switch.
fn ring(flow: FlowControl, spec: &NetworkSpec) -> (Net, Result<(), RunError>) {
    let mut net = Net::flowing("ring:4", 4, 1, spec, flow);
    for host in 0..4 {
        net.sends(host, &message((host + 2) % 4, 40));
    }
    let outcome = net.try_run().0.map(|_| ());
    (net, outcome)
}

#[test]
fn a_ring_of_paused_ports_is_named_and_the_run_ends() {
    let (net, outcome) = ring(pausing(5 * BYTES, PauseSpec::default()), &SPIN);
    assert!(matches!(outcome, Err(RunError::Deadlock { .. })), "{outcome:?}");
    let found = net.network.paused_ring().unwrap();
    assert_eq!(found.0.len(), 4);
    // Port 0 of each switch leads to its host, and port 1 leads to the next switch.
    let text = found.to_string();
    for (at, peer) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
        assert!(text.contains(&format!("switch.{at} port 1 (paused by switch.{peer}) -> ")), "{text}");
    }
    assert_eq!(net.network.lost_packets().len(), 0);
    // Without flow control the run completes, and the ring loses packets. With credits the ring deadlocks too.
    let (net, outcome) = ring(dropping(5), &SPIN);
    assert!(outcome.is_ok() && !net.network.lost_packets().is_empty() && net.network.paused_ring().is_none());
    let mut few = SPIN;
    few.switch.buffer = 1;
    assert!(ring(FlowControl::Credits, &few).1.is_err());
    // With two switches on its path, a packet waits for at most one other switch. So neighbours never wait for each
    // other in a cycle.
    let mut net = Net::flowing("ring:4", 4, 1, &SPIN, pausing(5 * BYTES, PauseSpec::default()));
    for host in 0..4 {
        net.sends(host, &message((host + 1) % 4, 40));
    }
    net.run();
}

#[test]
fn a_slow_card_is_waited_for_however_long_it_takes() {
    let mut spec = SPIN;
    spec.link.buffer = 1;
    let pause = PauseSpec { quanta: 200, ..PauseSpec::default() };
    let mut net = Net::flowing("star", 3, 1, &spec, pausing(5 * BYTES, pause));
    net.sends(0, &message(2, 12));
    net.sends(1, &message(2, 12));
    // The service time is far more than 16 half pauses of 128 ns.
    net.serves(2, Duration::from_us(50));
    let (_, received, _) = net.run();
    assert_eq!(received.len(), 24);
    assert_eq!(net.network.lost_packets(), []);
}

#[test]
fn networks_without_switches_and_buffers_without_room_are_refused() {
    let refused = |topology: &str, hosts: usize, flow: FlowControl| {
        let mut world = World::new(Config::default());
        let hosts: Vec<(NodeId, _)> = (0..hosts).map(|_| (world.add_node(), SPIN.link)).collect();
        let topology: Topology = topology.parse().unwrap();
        match topology.build_with(&mut world, &hosts, &SPIN, (flow, 4096)) {
            Ok(_) => panic!("{topology} with {flow:?} was built"),
            Err(error) => error.to_string(),
        }
    };
    for (topology, hosts) in [("pair", 2), ("torus:2x2", 4), ("alone", 1)] {
        assert_eq!(
            refused(topology, hosts, dropping(4)),
            "flow control none: this topology has no switches; write topology star, fat-tree or ring"
        );
    }
    let none = |size| FlowControl::None(Buffering { size: Some(size), ..Buffering::default() });
    assert_eq!(
        refused("star", 3, none(4095)),
        "flow control none: a buffer of 4095 B for each port has no room for a packet of 4096 B; write buffer=4096 or more"
    );
    let pfc = |pause| pausing(1 << 20, pause);
    let with = |xoff, xon| pfc(PauseSpec { xoff, xon, ..PauseSpec::default() });
    assert!(
        refused("star", 3, with(Some(2 << 20), None))
            .contains("xoff=2097152 is above the buffer of 1048576 B")
    );
    assert!(refused("star", 3, with(Some(0), None)).contains("xoff=0 admits no packet"));
    assert!(
        refused("star", 3, with(Some(9000), Some(9000)))
            .contains("xon=9000 is not below xoff, 9000; write xon=8999")
    );
    let buffering = Buffering { size: Some(1 << 20), per: Per::Shared, ..Buffering::default() };
    let shared = |pause| FlowControl::Pfc(buffering, pause);
    let late = PauseSpec { xoff: Some(9000), ..PauseSpec::default() };
    assert!(refused("star", 3, shared(late)).contains("a shared buffer has no fixed thresholds"));
    let small = Buffering { size: Some(40_000), ..buffering };
    let error = refused("fat-tree:4", 5, FlowControl::Pfc(small, PauseSpec::default()));
    assert!(error.contains("for each of 4 ports"), "{error}");
}

#[test]
fn rings_have_three_switches_and_ports_for_their_hosts() {
    let parsed = |text: &str| text.parse::<Topology>().map_err(|error| error.to_string());
    assert_eq!(parsed("ring:4").unwrap().to_string(), "ring:4");
    for text in ["ring", "ring:", "ring:x", "ring:+4", "ring:4:4", "ring:-1"] {
        assert!(parsed(text).unwrap_err().contains("write ring:SWITCHES, as in ring:4"), "{text}");
    }
    assert!(parsed("ring:2").unwrap_err().starts_with("a ring has 3 to 4096 switches, not 2"));
    let ring = parsed("ring:3").unwrap();
    assert!(ring.check(102, &SPIN.switch).is_ok());
    assert!(ring.check(103, &SPIN.switch).unwrap_err().to_string().contains("or set switch.ports=37"));
    assert!(ring.check(1, &SPIN.switch).is_err());
    // Traffic between all pairs of hosts, over the shorter way, with 1 to 3 switches on a path.
    let mut net = Net::flowing("ring:5", 10, 1, &SPIN, FlowControl::Credits);
    for host in 0..10u32 {
        let sends: Vec<_> =
            (0..10).filter(|&to| to != host).map(|to| send(to, 8, u64::from(to) * 1_000_000)).collect();
        net.sends(host, &sends);
    }
    let (_, received, _) = net.run();
    for r in received {
        let (a, b) = (r.source / 2, r.by / 2);
        let round = (b + 5 - a) % 5;
        let switches = 1 + u64::from(round.min(5 - round));
        assert!(r.path.total(Stage::SWITCH) == ps(50_000 * switches), "{} to {}", r.source, r.by);
    }
}
