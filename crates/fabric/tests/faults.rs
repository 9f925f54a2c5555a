//! Faults on links and their effect on packets. Faults do not change credits, the timing of other packets, or other
//! links.

use nicety_fabric::{
    Cause, Channel, FaultStatistics, Faults, HeaderBytes, Label, LinkFaults, LinkProtocol, LinkSpec,
    LostPacket, NetworkSpec, NetworkStatistics, NodeFailure, Outage, Packet, Place, Port, Rates, SwitchSpec,
    Symbol, Topology,
};
use nicety_kernel::{Config, World};
use nicety_types::{Duration, Flight, Gap, MessageId, NodeId, Path, Payload, Segment, Time};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

const BYTES: u64 = 1000;

/// An arrived packet: time, sender, sequence number, and bytes.
type ArrivedPacket = (Time, u32, u64, Vec<u8>);

struct Outcome {
    /// Arrived packets of each host, by host.
    came: Vec<Vec<ArrivedPacket>>,
    statistics: NetworkStatistics,
    lost: Vec<LostPacket>,
    end: Time,
}

fn spec(buffer: u32) -> NetworkSpec {
    NetworkSpec {
        link: LinkSpec {
            latency: Duration::from_ps(33_400),
            gap: Gap::new(20, 1),
            header: 0,
            buffer,
            channels: 1,
            protocol: LinkProtocol::NONE,
        },
        switch: SwitchSpec { latency: Duration::from_ns(50), ports: 8, buffer },
        router: None,
    }
}

fn content(host: u32, sequence: u64) -> Vec<u8> {
    (0..BYTES).map(|i| (i * 7 + sequence * 13 + u64::from(host)) as u8).collect()
}

/// Every host sends `packets` packets to the next host, as fast as possible.
fn run(topology: Topology, hosts: u32, packets: u64, buffer: u32, faults: &Faults, shards: usize) -> Outcome {
    let mut world: World<Symbol> = World::new(Config { seed: 1, shards, ..Config::default() });
    let ids: Vec<NodeId> = (0..hosts).map(|_| world.add_node()).collect();
    let (mut ports, mut network) = topology.build(&mut world, &ids, &spec(buffer)).unwrap();
    network.inject(faults, &mut ports).unwrap();
    let came: Vec<Rc<RefCell<Vec<ArrivedPacket>>>> = ids.iter().map(|_| Rc::default()).collect();
    for ((port, &id), came) in ports.into_iter().zip(&ids).zip(&came) {
        let (port, sim): (Rc<Port>, _) = (Rc::new(port), world.sim(id));
        let (sender, clock) = (port.clone(), sim.clone());
        sim.spawn_program("sender", async move {
            for sequence in 0..packets {
                let turn = sender.turn(Flight::resting(Path::from(clock.now()))).await;
                let packet = Packet {
                    label: Label {
                        destination: NodeId((id.0 + 1) % hosts),
                        message: MessageId { source: id, sequence },
                        offset: 0,
                    },
                    channel: Channel::Data(0),
                    header: HeaderBytes::new(&[0xaa; 16]),
                    payload: Payload::copy_of(&content(id.0, sequence)),
                    path: Path::from(Time::ZERO),
                };
                sender.launch(packet, turn);
            }
        });
        let (clock, came) = (sim.clone(), came.clone());
        sim.spawn(async move {
            loop {
                let packet = port.receive().await;
                let parts: Duration = packet.path.stages().map(|(_, time)| time).sum();
                assert_eq!((packet.path.at(), packet.path.origin() + parts), (clock.now(), clock.now()));
                let Some(Segment::Real(bytes)) = packet.payload.segments().next() else { panic!("no bytes") };
                let message = packet.label.message;
                let mut bytes = bytes.to_vec();
                bytes.extend(packet.header.as_slice());
                came.borrow_mut().push((clock.now(), message.source.0, message.sequence, bytes));
                port.free_slot();
            }
        });
    }
    let end = world.run().unwrap().end;
    let came = came.iter().map(|came| came.borrow().clone()).collect();
    Outcome { came, statistics: network.statistics(), lost: network.lost_packets(), end }
}

fn ps(times: &[ArrivedPacket]) -> Vec<(u64, u64)> {
    times.iter().map(|came| (came.0.ps(), came.2)).collect()
}

fn on_first_link(rates: Rates, down: Vec<Outage>, drop: Vec<u64>) -> Faults {
    let links = vec![LinkFaults { from: Place::Host(0), to: Place::Host(1), rates, down, drop }];
    Faults { seed: 5, links, ..Faults::default() }
}

/// The time of the first packet's arrival in ps. A packet of 1000 B takes the link for 20 ns, and has a latency of 33.4
/// ns.
const FIRST: u64 = 20_000 + 33_400;

#[test]
fn a_dropped_packet_frees_its_slot_when_it_would_have_come() {
    // With one slot, a packet waits for the credit of the preceding packet, even if that packet is lost. The packet
    // takes 53.4 ns, and its credit takes 33.4 ns.
    let faults = on_first_link(Rates::default(), vec![], vec![2]);
    let outcome = run(Topology::Pair, 2, 4, 1, &faults, 1);
    let again = FIRST + 33_400;
    assert_eq!(ps(&outcome.came[1]), [(FIRST, 0), (FIRST + 2 * again, 2), (FIRST + 3 * again, 3)]);
    assert_eq!(outcome.came[0].len(), 4);
    let [lost] = outcome.lost.as_slice() else { panic!("{:?}", outcome.lost) };
    assert_eq!((lost.time.ps(), lost.message.sequence, lost.cause), (again, 1, Cause::Dropped));
    assert_eq!(
        lost.to_string(),
        "message 1 of rank 0 to rank 1, bytes 0 to 999, lost on hosts.0 -> hosts.1 at 86.8 ns"
    );
    let [statistics] = outcome.statistics.faults.as_slice() else { panic!() };
    assert_eq!((statistics.packets, statistics.lost, statistics.corrupted), (4, 1, 0));
}

#[test]
fn a_link_that_is_down_loses_what_begins_to_go_out() {
    // Packets begin at 0, 20, 40, ... ns.
    let t = |ns: u64| Time::from_ps(ns * 1000);
    let down = vec![
        Outage { from: t(20), until: Some(t(40)) },
        Outage { from: t(61), until: Some(t(100)) },
        Outage { from: t(140), until: None },
    ];
    let outcome = run(Topology::Pair, 2, 9, 8, &on_first_link(Rates::default(), down.clone(), vec![]), 1);
    let sequences: Vec<u64> = outcome.came[1].iter().map(|came| came.2).collect();
    assert_eq!(sequences, [0, 2, 3, 5, 6]);
    assert_eq!(outcome.lost[0].cause, Cause::LinkDown(down[0]));
    assert!(outcome.lost.iter().all(|lost| lost.cause.is_failure()));
    assert!(outcome.lost[2].to_string().ends_with("at 140 ns: the link is down from 140 ns on"));
}

#[test]
fn nothing_goes_into_or_comes_out_of_a_node_that_has_failed() {
    let nodes = vec![NodeFailure { node: Place::Host(1), at: Time::from_ps(30_000) }];
    let outcome = run(Topology::Star, 3, 4, 8, &Faults { nodes: nodes.clone(), ..Faults::default() }, 1);
    let sequences = |host: usize| outcome.came[host].iter().map(|came| came.2).collect::<Vec<_>>();
    // Host 0's first packet passes the switch at 83.4 ns and is lost on the next link. Host 1's first two packets began
    // before the failure.
    assert_eq!((sequences(0), sequences(1), sequences(2)), (vec![0, 1, 2, 3], vec![], vec![0, 1]));
    assert_eq!(outcome.lost.len(), 6);
    assert!(outcome.lost.iter().all(|lost| lost.cause == Cause::NodeDown(nodes[0])));
    assert!(
        outcome.lost[0]
            .to_string()
            .ends_with("on hosts.1 -> switch.0 at 40 ns: hosts.1 is down from 30 ns on")
    );
}

#[test]
fn a_second_packet_follows_the_first_one() {
    let faults = on_first_link(Rates { duplication: 1.0, ..Rates::default() }, vec![], vec![]);
    let outcome = run(Topology::Pair, 2, 2, 8, &faults, 1);
    assert_eq!(
        ps(&outcome.came[1]),
        [(FIRST, 0), (FIRST + 20_000, 0), (FIRST + 40_000, 1), (FIRST + 60_000, 1)]
    );
    // The buffer has no slot for the copy, so the packet is not duplicated.
    let outcome = run(Topology::Pair, 2, 2, 1, &faults, 1);
    assert_eq!(outcome.came[1].len(), 2);
    assert_eq!(outcome.statistics.faults[0].duplicated, 0);
}

#[test]
fn a_switch_s_second_packet_takes_a_place_too() {
    let rates = Rates { duplication: 1.0, ..Rates::default() };
    let links = vec![LinkFaults {
        from: Place::Switch(0),
        to: Place::Host(1),
        rates,
        ..on_first_link(rates, vec![], vec![]).links.remove(0)
    }];
    let faults = Faults { seed: 5, links, ..Faults::default() };
    let through = FIRST + 50_000 + 33_400;
    let outcome = run(Topology::Star, 2, 2, 8, &faults, 1);
    let times = [0, 20_000, 40_000, 60_000].map(|later| through + later);
    assert_eq!(ps(&outcome.came[1]), [(times[0], 0), (times[1], 0), (times[2], 1), (times[3], 1)]);
    assert_eq!(outcome.came[0].len(), 2);
    // The buffer has no slot for the copy, so the packet is not duplicated.
    let outcome = run(Topology::Star, 2, 1, 1, &faults, 1);
    assert_eq!(ps(&outcome.came[1]), [(through, 0)]);
    assert_eq!(outcome.statistics.faults[0].duplicated, 0);
}

#[test]
fn a_delayed_packet_is_passed_by_others() {
    let rates = Rates { reordering: 0.5, delay: Duration::from_us(1), ..Rates::default() };
    let outcome = run(Topology::Pair, 2, 20, 64, &on_first_link(rates, vec![], vec![]), 1);
    let mut sequences: Vec<u64> = outcome.came[1].iter().map(|came| came.2).collect();
    assert!(!sequences.is_sorted());
    sequences.sort_unstable();
    assert_eq!(sequences, (0..20).collect::<Vec<_>>());
    for (time, _, sequence, _) in &outcome.came[1] {
        let undelayed = FIRST + 20_000 * sequence;
        assert!((undelayed..=undelayed + 1_000_000).contains(&time.ps()));
    }
}

#[test]
fn one_byte_of_a_damaged_packet_is_wrong() {
    let faults = on_first_link(Rates { corruption: 1.0, ..Rates::default() }, vec![], vec![]);
    let outcome = run(Topology::Pair, 2, 200, 64, &faults, 1);
    let mut in_headers = 0;
    for (_, source, sequence, bytes) in &outcome.came[1] {
        let intact = [content(*source, *sequence), vec![0xaa; 16]].concat();
        let wrong: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i] != intact[i]).collect();
        assert_eq!(wrong.len(), 1);
        in_headers += usize::from(wrong[0] >= BYTES as usize);
    }
    assert!((1..20).contains(&in_headers), "{in_headers}");
    assert_eq!(outcome.statistics.faults[0].corrupted, 200);
}

fn rates() -> impl Strategy<Value = Rates> {
    let rate = || prop_oneof![Just(0.0), 0.0..0.5f64];
    let burst = prop_oneof![Just(0.0), 1.0..8.0f64];
    (rate(), rate(), rate(), rate(), 0u64..3_000_000, burst).prop_map(
        |(loss, corruption, duplication, reordering, delay, burst)| Rates {
            loss,
            corruption,
            duplication,
            reordering,
            delay: Duration::from_ps(delay),
            burst,
        },
    )
}

proptest! {
    #[test]
    fn nothing_comes_that_was_not_sent_and_nothing_is_lost_but_what_is_counted(
        rates in rates(), seed: u64, buffer in 1u32..5, star: bool, shards in 1usize..4
    ) {
        let (topology, hosts) = if star { (Topology::Star, 4) } else { (Topology::Pair, 2) };
        let faults = Faults { seed, rates, ..Faults::default() };
        let outcome = run(topology, hosts, 30, buffer, &faults, shards);
        let sum = |of: fn(&FaultStatistics) -> u64| outcome.statistics.faults.iter().map(of).sum::<u64>();
        let (lost, corrupted, duplicated) = (sum(|s| s.lost), sum(|s| s.corrupted), sum(|s| s.duplicated));
        let came: u64 = outcome.came.iter().map(|came| came.len() as u64).sum();
        // A copy may itself be lost or damaged on a later link.
        prop_assert_eq!(came, 30 * u64::from(hosts) + duplicated - lost);
        let mut wrong = 0;
        for (_, source, sequence, bytes) in outcome.came.iter().flatten() {
            prop_assert!(*sequence < 30);
            wrong += u64::from(*bytes != [content(*source, *sequence), vec![0xaa; 16]].concat());
        }
        // A damaged packet may be duplicated or lost on a later link.
        prop_assert!(wrong <= corrupted + duplicated);
        prop_assert!(wrong > 0 || corrupted <= lost + duplicated);
        let one = run(topology, hosts, 30, buffer, &faults, 1);
        prop_assert_eq!((one.came, one.statistics, one.end), (outcome.came, outcome.statistics, outcome.end));
    }

    /// The random faults of a link do not depend on the other links.
    #[test]
    fn a_link_s_faults_depend_on_no_other_link(seed: u64, drop in prop::collection::vec(1u64..30, 0..5)) {
        let rates = Rates { loss: 0.2, ..Rates::default() };
        let mut links = vec![LinkFaults { from: Place::Host(0), to: Place::Switch(0), rates, down: vec![], drop: vec![] }];
        let alone = run(Topology::Star, 4, 30, 64, &Faults { seed, links: links.clone(), ..Faults::default() }, 1);
        links.push(LinkFaults { from: Place::Host(2), drop, rates: Rates::default(), ..links[0].clone() });
        let both = run(Topology::Star, 4, 30, 64, &Faults { seed, links, ..Faults::default() }, 1);
        prop_assert_eq!(&alone.came[1], &both.came[1]);
    }
}

#[test]
fn no_faults_are_no_faults() {
    let plain = run(Topology::Star, 4, 50, 4, &Faults::default(), 1);
    // A failure that never happens, so that every link has an injector.
    let never = NodeFailure { node: Place::Switch(0), at: Time::from_ps(u64::MAX) };
    let faults = run(Topology::Star, 4, 50, 4, &Faults { nodes: vec![never], ..Faults::default() }, 1);
    assert_eq!((plain.came, plain.end), (faults.came, faults.end));
    assert!(plain.statistics.faults.is_empty());
    assert_eq!(faults.statistics.faults.len(), 8);
}
