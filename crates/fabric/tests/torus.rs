//! Tori: names and sizes, paths, latencies by hand, loads of links, and the deadlock that the dateline prevents.

use crate::switch_support::{Net, SPIN, Send, at, ps, send};
use nicety_fabric::{
    Faults, LinkFaults, Medium, NetworkSpec, NodeFailure, Outage, Place, Rates, RouterSpec, Topology, Torus,
    TorusShape,
};
use nicety_kernel::RunError;
use nicety_types::{Gap, Stage};
use std::collections::HashMap;

fn torus(text: &str) -> Torus {
    match text.parse() {
        Ok(Topology::Torus(torus)) => torus,
        other => panic!("{text}: {other:?}"),
    }
}

fn shape(text: &str) -> TorusShape {
    let hosts = text[6..].split('x').map(|size| size.parse::<usize>().unwrap()).product();
    torus(text).shape(hosts).unwrap()
}

/// Returns the torus with this name and all its hosts.
fn net(text: &str, spec: &NetworkSpec) -> Net {
    Net::joined(Topology::Torus(torus(text)), shape(text).hosts(), 1, spec)
}

#[test]
fn texts_are_read_and_written() {
    for text in ["torus", "torus:4x4x4", "torus:8", "torus:3x1", "torus:1x2x3", "torus:4294967295"] {
        assert_eq!(torus(text).to_string(), text);
    }
    assert_eq!(torus("torus").shape(8), torus("torus:2x2x2").shape(8));
    let error = |text: &str| text.parse::<Topology>().unwrap_err().to_string();
    for (text, why) in [
        ("torus:", "sizes are whole numbers; write torus:XxYxZ, as in torus:4x4x4"),
        ("torus:4x", "sizes are whole numbers"),
        ("torus:+4", "sizes are whole numbers"),
        ("torus:4x4.5", "sizes are whole numbers"),
        ("torus:4X4", "sizes are whole numbers"),
        ("torus:0x4", "a dimension has 1 node at least"),
        ("torus:2x2x2x2", "a torus has 1 to 3 dimensions"),
        ("torus:65536x65536", "more than 2^32 nodes"),
        ("thorus:4x4x4", "did you mean torus?"),
    ] {
        assert!(error(text).contains(why), "{text}: {}", error(text));
    }
    assert!(error(&format!("torus:{}", "1x".repeat(100_000))).len() < 300);
}

#[test]
fn sizes_and_hosts_have_to_fit() {
    let refused = |text: &str, hosts| {
        let topology: Topology = text.parse().unwrap();
        topology.check(hosts, &SPIN.switch).unwrap_err().to_string()
    };
    assert_eq!(
        refused("torus:4x4x4", 8),
        "torus:4x4x4 has 64 nodes, not 8; write nodes = 64, or topology torus:2x2x2"
    );
    assert_eq!(refused("torus:1", 6), "torus:1 has 1 node, not 6; write nodes = 1, or topology torus:3x2x1");
    assert_eq!(refused("torus", 0), "a torus has 1 node at least, not 0; write nodes = 1 or more");
    // A router has 7 ports. A torus does not use the switches, so their 36 ports do not matter.
    assert!("torus".parse::<Topology>().unwrap().check(4096, &SPIN.switch).is_ok());
}

#[test]
fn ranks_are_in_the_order_of_x_then_y_then_z() {
    let shape = shape("torus:4x3x2");
    assert_eq!((shape.sizes(), shape.hosts(), shape.to_string()), ([4, 3, 2], 24, "4x3x2".to_owned()));
    assert_eq!(
        [0, 3, 4, 12, 23].map(|rank| shape.coordinates(rank)),
        [[0, 0, 0], [3, 0, 0], [0, 1, 0], [0, 0, 1], [3, 2, 1]]
    );
    for rank in 0..24 {
        assert_eq!(shape.rank(shape.coordinates(rank)), rank);
    }
    assert_eq!(shape.neighbour(3, 0, true), 0);
    assert_eq!(shape.neighbour(0, 1, false), 8);
    // In ring z of size 2, both directions lead to the same neighbour.
    assert_eq!([true, false].map(|plus| shape.neighbour(5, 2, plus)), [17, 17]);
}

#[test]
fn packets_go_round_x_then_y_then_z_and_change_the_channel_at_the_dateline() {
    let shape = shape("torus:5x5x5");
    let from = shape.rank([3, 1, 0]);
    let hops: Vec<_> = shape.path(from, shape.rank([0, 4, 1])).collect();
    let way: Vec<_> =
        hops.iter().map(|hop| (shape.coordinates(hop.to), hop.dimension, hop.plus, hop.channel)).collect();
    assert_eq!(
        way,
        [
            ([4, 1, 0], 0, true, 0),
            ([0, 1, 0], 0, true, 0),
            ([0, 0, 0], 1, false, 0),
            ([0, 4, 0], 1, false, 0),
            ([0, 4, 1], 2, true, 1),
        ]
    );
    assert_eq!(hops.len() as u32, shape.hops(from, shape.rank([0, 4, 1])));
    // After the wrap-around link, the packet is on channel 1.
    let channels: Vec<u8> = shape.path(4, 1).map(|hop| hop.channel).collect();
    assert_eq!(channels, [0, 1]);
}

/// Returns the number of pairs that use each link. The key has the rank at the link's start, the dimension, and the
/// direction.
fn loads(shape: TorusShape) -> HashMap<(u32, usize, bool), u32> {
    let mut loads = HashMap::new();
    for rank in 0..shape.hosts() {
        for dimension in (0..3).filter(|&d| shape.sizes()[d] > 1) {
            loads.extend([true, false].map(|plus| ((rank, dimension, plus), 0)));
        }
    }
    let hosts = shape.hosts();
    for hop in (0..hosts * hosts).flat_map(|pair| shape.path(pair / hosts, pair % hosts)) {
        *loads.get_mut(&(hop.from, hop.dimension, hop.plus)).unwrap() += 1;
    }
    loads
}

#[test]
fn uniform_traffic_loads_all_links_of_a_dimension_alike() {
    for text in [
        "torus:4x4x4",
        "torus:2x2x2",
        "torus:6x6x6",
        "torus:2x6x3",
        "torus:8x4",
        "torus:6x2",
        "torus:5x3x4",
        "torus:7",
        "torus:4",
        "torus:8",
    ] {
        let shape = shape(text);
        let loads = loads(shape);
        for dimension in 0..3 {
            let of: Vec<u32> =
                loads.iter().filter(|(link, _)| link.1 == dimension).map(|(_, &load)| load).collect();
            let size = u64::from(shape.sizes()[dimension]);
            // A pair makes as many hops in this dimension, on average, as a pair in one ring. Each host has 2 links in
            // this dimension.
            let hops: u64 = (0..size).map(|distance| distance.min(size - distance)).sum();
            let expected = u64::from(shape.hosts()) * hops / size / 2;
            assert!(
                of.iter().all(|&load| u64::from(load) == expected),
                "{text} {dimension}: {of:?}, not {expected}"
            );
        }
    }
}

#[test]
fn uniform_traffic_on_odd_tori_loads_links_alike_but_for_one_pair() {
    // In a ring of six, no rule is better. An odd number of sources cannot be split in halves between the two ways of
    // three links.
    for text in ["torus:6", "torus:6x3", "torus:3x2", "torus:6x5x3", "torus:3x5x10", "torus:3x2x6"] {
        let shape = shape(text);
        let loads = loads(shape);
        for (dimension, &size) in shape.sizes().iter().enumerate().filter(|(_, size)| **size > 1) {
            let of = || loads.iter().filter(|(link, _)| link.1 == dimension).map(|(_, &load)| load);
            let others_are_odd = shape.hosts() / size % 2 == 1;
            let differ = of().max().unwrap() - of().min().unwrap();
            assert_eq!(differ, u32::from(size % 4 == 2 && others_are_odd), "{text} {dimension}");
        }
    }
}

#[test]
fn ties_are_even_in_transposed_and_shifted_traffic() {
    // Of the sources with a destination half a ring away, half go each way, in every pattern.
    for text in ["torus:4x4", "torus:8x8", "torus:4x4x4"] {
        let shape = shape(text);
        let [size, _, depth] = shape.sizes();
        let transposed = |[x, y, z]: [u32; 3]| if depth == 1 { [y, x, z] } else { [y, z, x] };
        let shifted = |[x, y, z]: [u32; 3]| [(x + size / 2) % size, y, z];
        let across = |[x, y, z]: [u32; 3]| [(x + size / 2) % size, (y + size / 2) % size, z];
        for to in [&transposed as &dyn Fn([u32; 3]) -> [u32; 3], &shifted, &across] {
            let mut ways = [0, 0];
            for rank in 0..shape.hosts() {
                let place = shape.coordinates(rank);
                let first = shape.path(rank, shape.rank(to(place))).next();
                if let Some(hop) = first.filter(|_| (place[0] + size / 2) % size == to(place)[0]) {
                    ways[usize::from(hop.plus)] += 1;
                }
            }
            assert!(ways[0] > 0 && ways[0] == ways[1], "{text}: {ways:?}");
        }
    }
}

/// The time in ps of a packet of 8 bytes over `hops` links between routers. It takes 20 ps per byte, 50 ns per router
/// and 33.4 ns per link. The links between card and router at both ends take 1 ps each.
const fn time_over(hops: u64) -> u64 {
    160 + 2 + 50_000 * (hops + 1) + 33_400 * hops
}

#[test]
fn a_packet_takes_the_latency_of_its_hops_and_its_bytes_once() {
    // The destinations: the source itself, neighbours, hosts over the wrap-around link, hosts half a ring away, and
    // hosts at other places in all dimensions.
    for (to, hops) in
        [(0, 0), (1, 1), (3, 1), (2, 2), (4, 1), (12, 1), (16, 1), (48, 1), (21, 3), (63, 3), (42, 6)]
    {
        let mut net = net("torus:4x4x4", &SPIN);
        net.sends(0, &[send(to, 8, 0)]);
        let (_, received, statistics) = net.run();
        assert_eq!((received[0].by, received[0].when), (to, at(time_over(hops))), "to {to}");
        let path = &received[0].path;
        assert_eq!(path.total(Stage::SWITCH), ps(50_000 * (hops + 1)));
        assert_eq!(path.total(Stage::LINK), ps(160 + 2 + 33_400 * hops));
        let passed: u64 =
            statistics.switches.iter().flat_map(|s| &s.ports).map(|port| port.sent_packets).sum();
        assert_eq!(passed, hops + 1);
        assert!(net.network.is_idle());
    }
}

#[test]
fn a_router_has_its_own_latency_buffer_and_gap_where_the_card_says_so() {
    let router = RouterSpec {
        latency: ps(70_000),
        buffer: 1,
        entry: 1,
        gap: Some(Gap::new(10, 1)),
        axes: [Medium::LINK; 3],
    };
    let mut net = net("torus:3", &NetworkSpec { router: Some(router), ..SPIN });
    net.sends(0, &[send(1, 1000, 0)]);
    let (_, received, _) = net.run();
    // The card's bytes arrive at the router twice as fast as the link takes them.
    assert_eq!(received[0].when, at(1 + 70_000 + 33_400 + 70_000 + 1 + 20_000));
}

#[test]
fn an_axis_has_its_own_medium() {
    // Packets have 1000 bytes. The card's link takes 20 ps per byte and 33.4 ns, and a link along y takes 10 ps per
    // byte and 5 ns.
    let medium = Medium { latency: Some(ps(5_000)), gap: Some(Gap::new(10, 1)), bit_errors: None };
    let router = RouterSpec {
        latency: ps(50_000),
        buffer: 4,
        entry: 4,
        gap: None,
        axes: [Medium::LINK, medium, Medium::LINK],
    };
    let spec = NetworkSpec { router: Some(router), ..SPIN };
    let inside = 1 + 50_000 + 50_000 + 1 + 20_000;
    for (to, link) in [(1, 33_400), (3, 5_000)] {
        let mut net = net("torus:3x3", &spec);
        net.sends(0, &[send(to, 1000, 0)]);
        let (_, received, _) = net.run();
        assert_eq!(received[0].when, at(inside + link), "to {to}");
    }
    // A slow axis, with 40 ps per byte, limits the rate of a stream of ten packets through it.
    let slow = Medium { gap: Some(Gap::new(40, 1)), ..Medium::LINK };
    let router = RouterSpec { axes: [Medium::LINK, Medium::LINK, slow], ..router };
    for (to, gap) in [(1, 20), (9, 40)] {
        let mut net = net("torus:3x3x3", &NetworkSpec { router: Some(router), ..SPIN });
        net.sends(0, &(0..10).map(|k| Send { message: k, ..send(to, 4096, 0) }).collect::<Vec<_>>());
        let (_, received, _) = net.run();
        let took = received[9].when.ps() - received[0].when.ps();
        assert_eq!(took, 9 * 4096 * gap, "to {to}");
    }
}

#[test]
fn ports_have_names_of_their_directions_and_only_links_that_there_are() {
    let mut net = net("torus:3x1x2", &SPIN);
    net.sends(0, &[send(3, 8, 0), send(1, 8, 0), send(2, 8, 0)]);
    let (_, _, statistics) = net.run();
    assert_eq!(statistics.switches.len(), 6);
    let router = &statistics.switches[0];
    let names: Vec<_> = (0..router.ports.len()).map(|port| router.port_name(port)).collect();
    assert_eq!(names, ["0/local", "0/x+", "0/x-", "0/z+", "0/z-"]);
    let sent: Vec<_> = router.ports.iter().map(|port| port.sent_packets).collect();
    assert_eq!((sent[0], sent[1], sent[2], sent[3] + sent[4]), (0, 1, 1, 1));
    assert_eq!(statistics.switches[3].ports[0].sent_packets, 1);
}

/// Each host of a ring of six sends packets to the two hosts at a distance of two, with one slot in every buffer.
fn ring(torus: Torus) -> (Result<(), RunError>, usize, bool) {
    let router = RouterSpec { latency: ps(50_000), buffer: 1, entry: 1, gap: None, axes: [Medium::LINK; 3] };
    let mut net = Net::joined(Topology::Torus(torus), 6, 1, &NetworkSpec { router: Some(router), ..SPIN });
    for host in 0..6 {
        let to = |k: u64| if k.is_multiple_of(2) { (host + 2) % 6 } else { (host + 4) % 6 };
        net.sends(host, &(0..20).map(|k| Send { message: k, ..send(to(k), 4096, 0) }).collect::<Vec<_>>());
    }
    let (outcome, log) = net.try_run();
    (outcome.map(drop), log.len(), net.network.is_idle())
}

#[test]
fn a_ring_locks_up_without_the_dateline_and_never_with_it() {
    let torus = Torus::new(&[6]).unwrap();
    let cycle = torus.without_dateline().shape(6).unwrap().dependency_cycle().unwrap();
    assert_eq!(
        cycle.to_string(),
        "hosts.0 x- channel 0 -> hosts.5 x- channel 0 -> hosts.4 x- channel 0 -> hosts.3 x- channel 0 -> hosts.2 x- \
         channel 0 -> hosts.1 x- channel 0 -> hosts.0 x- channel 0"
    );
    let (outcome, received, idle) = ring(torus.without_dateline());
    assert!(
        matches!(outcome, Err(RunError::Deadlock { ref waiting, .. }) if waiting.len() == 6),
        "{outcome:?}"
    );
    assert!(received < 6 * 20 && !idle);

    assert_eq!(torus.shape(6).unwrap().dependency_cycle(), None);
    let (outcome, received, idle) = ring(torus);
    assert_eq!((outcome.is_ok(), received, idle), (true, 6 * 20, true));
}

#[test]
fn flows_get_what_the_links_on_their_way_have() {
    // In a ring of 8, each host sends to the host `shift` places further. So `shift` flows share each link.
    const PACKETS: u64 = 200;
    for shift in 1..4u32 {
        let mut net = net("torus:8", &SPIN);
        for host in 0..8 {
            let packet = |k| Send { message: k, ..send((host + shift) % 8, 4096, 0) };
            net.sends(host, &(0..PACKETS).map(packet).collect::<Vec<_>>());
        }
        let (summary, ..) = net.run();
        let bytes = u64::from(shift) * PACKETS * 4096 * 20;
        let took = summary.end.ps();
        assert!((bytes..bytes + bytes / 50).contains(&took), "{shift}: {took} for {bytes}");
    }
}

/// Runs a torus of two hosts with these faults. Host 0 sends ten packets to host 1.
fn faulty(faults: &Faults) -> Result<Vec<(Place, Place, u64, u64)>, String> {
    let mut net = net("torus:2", &SPIN);
    let ports = std::mem::take(&mut net.ports);
    let mut ports: Vec<_> = ports.into_iter().map(|port| std::rc::Rc::into_inner(port).unwrap()).collect();
    let outcome = net.network.inject(faults, &mut ports).map_err(|error| error.to_string());
    net.ports = ports.into_iter().map(std::rc::Rc::new).collect();
    outcome?;
    net.sends(0, &(0..10).map(|k| Send { message: k, ..send(1, 64, k * 100_000) }).collect::<Vec<_>>());
    net.try_run().0.map_err(|error| error.to_string())?;
    Ok(net
        .network
        .statistics()
        .faults
        .iter()
        .map(|link| (link.from, link.to, link.packets, link.lost))
        .collect())
}

#[test]
fn faults_strike_links_between_routers_by_their_ends_and_never_a_card_s_own() {
    let (a, b) = (Place::Host(0), Place::Host(1));
    let link = |from, to| LinkFaults { from, to, rates: Rates::default(), down: vec![], drop: vec![2] };
    let links = |links| faulty(&Faults { links, ..Faults::default() });
    // An entry applies to both links between the two hosts. All packets take one of these links.
    assert_eq!(links(vec![link(a, b)]), Ok(vec![(a, b, 10, 1), (a, b, 0, 0)]));
    assert_eq!(
        links(vec![link(a, a)]).unwrap_err(),
        "no link hosts.0 -> hosts.0; hosts.0 has links to hosts.1"
    );
    let rates = Rates { loss: 1.0, ..Rates::default() };
    let all = faulty(&Faults { rates, ..Faults::default() }).unwrap();
    assert_eq!(all.len(), 4, "no link between card and router is among them: {all:?}");
    let down = |at| Outage { from: super::switch_support::at(at), until: None };
    let outage = LinkFaults { down: vec![down(550_000)], drop: vec![], ..link(a, b) };
    assert_eq!(links(vec![outage]).unwrap()[0], (a, b, 10, 5));
    let failed = |node| Faults { nodes: vec![NodeFailure { node, at: at(550_000) }], ..Faults::default() };
    assert_eq!(faulty(&failed(b)).unwrap().iter().map(|link| link.3).sum::<u64>(), 5);
    assert_eq!(
        faulty(&failed(Place::Switch(0))).unwrap_err(),
        "there is no switch.0; there are hosts.0 to hosts.1"
    );
}
