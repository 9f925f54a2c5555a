//! Switches, checked by hand: arrival times of packets, and the reasons for their waits.

use crate::switch_support::{Net, Received, SPIN, Send, at, ps, run, send};
use nicety_fabric::{
    Delivery, FatTree, LinkSpec, NetworkSpec, Port, PortStatistics, Routing, RoutingTable, Switch,
    SwitchSpec, Terminal, Topology, Torus, link,
};
use nicety_kernel::{Config, World};
use nicety_types::{Duration, Level, NodeId, Path, Recorder, Resource, Stage};

/// Serialisation time of 4 KiB in ps.
const PACKET: u64 = 81_920;
/// The time of a packet's head over two links and a switch, in ps.
const WAY: u64 = 33_400 + 50_000 + 33_400;

fn totals(path: &Path) -> Vec<(Stage, Duration)> {
    path.stages().collect()
}

fn when(received: &[Received]) -> Vec<(u32, u64)> {
    received.iter().map(|r| (r.source, r.when.ps())).collect()
}

fn small_buffers(switch: u32, card: u32) -> NetworkSpec {
    let mut spec = SPIN;
    spec.switch.buffer = switch;
    spec.link.buffer = card;
    spec
}

/// Returns the packets of a message: `packets` packets of 4 KiB, all ready at `ps`.
fn message(to: u32, packets: u64, ps: u64) -> Vec<Send> {
    (0..packets).map(|k| Send { message: 7, offset: k * 4096, ..send(to, 4096, ps) }).collect()
}

#[test]
fn a_free_switch_costs_its_latency_only() {
    let (received, statistics) = run(&SPIN, &[&[send(1, 8, 0)], &[]]);
    assert_eq!(when(&received), [(0, 160 + WAY)]);
    assert_eq!(totals(&received[0].path), [(Stage::LINK, ps(66_960)), (Stage::SWITCH, ps(50_000))]);
    let port = |statistics: PortStatistics| {
        let s = statistics;
        (s.received_packets, s.received_bytes, s.sent_packets, s.sent_bytes, s.peak_buffer)
    };
    let switch = &statistics.switches[0];
    assert_eq!(switch.node, NodeId(2));
    assert_eq!((port(switch.ports[0]), port(switch.ports[1])), ((1, 8, 0, 0, 1), (0, 0, 1, 8, 0)));
    assert_eq!((switch.ports[1].busy, switch.ports[1].queued), (ps(160), ps(0)));
    assert_eq!((port(statistics.hosts[0]), port(statistics.hosts[1])), ((0, 0, 1, 8, 0), (1, 8, 0, 0, 1)));
}

#[test]
fn headers_are_on_the_wire_and_empty_packets_pass() {
    let mut spec = SPIN;
    spec.link.header = 64;
    let (received, statistics) = run(&spec, &[&[send(1, 0, 0)], &[]]);
    assert_eq!(when(&received), [(0, 64 * 20 + WAY)]);
    assert_eq!(statistics.switches[0].ports[1].sent_bytes, 64);
    let (received, _) = run(&SPIN, &[&[send(1, 0, 0)], &[]]);
    assert_eq!(when(&received), [(0, WAY)]);
}

#[test]
fn a_message_of_many_packets_never_queues_for_itself() {
    let (received, statistics) = run(&SPIN, &[&message(1, 16, 0), &[]]);
    let last = received.last().unwrap();
    assert_eq!(last.when, at(16 * PACKET + WAY));
    assert_eq!(totals(&last.path), [(Stage::LINK, ps(16 * PACKET + 66_800)), (Stage::SWITCH, ps(50_000))]);
    assert_eq!(statistics.switches[0].ports[1].queued, ps(0));
    // A packet occupies a slot from its head's arrival until its last byte has left: for 50 + 81.92 ns. The next head
    // arrives before this time is over.
    assert_eq!(statistics.switches[0].ports[0].peak_buffer, 2);
}

#[test]
fn of_two_at_one_instant_the_smaller_link_is_first_and_the_other_waits_a_packet() {
    let (received, statistics) = run(&SPIN, &[&[send(2, 4096, 0)], &[send(2, 4096, 0)], &[]]);
    assert_eq!(when(&received), [(0, PACKET + WAY), (1, 2 * PACKET + WAY)]);
    assert_eq!(received[0].path.total(Stage::SWITCH_QUEUED), ps(0));
    assert_eq!(
        totals(&received[1].path),
        [(Stage::LINK, ps(PACKET + 66_800)), (Stage::SWITCH, ps(50_000)), (Stage::SWITCH_QUEUED, ps(PACKET))]
    );
    let out = statistics.switches[0].ports[2];
    assert_eq!((out.sent_packets, out.sent_bytes), (2, 8192));
    assert_eq!((out.busy, out.queued), (ps(2 * PACKET), ps(PACKET)));
}

#[test]
fn the_first_head_goes_first() {
    let (received, _) = run(&SPIN, &[&[send(2, 4096, 1)], &[send(2, 4096, 0)], &[]]);
    assert_eq!(when(&received), [(1, PACKET + WAY), (0, 2 * PACKET + WAY)]);
    assert_eq!(received[1].path.total(Stage::SWITCH_QUEUED), ps(PACKET - 1));
}

#[test]
fn waiting_for_another_message_between_two_packets_is_queueing() {
    // Node 1's packet arrives between the two packets of node 0.
    let other = send(2, 4096, 10);
    let (received, _) = run(&SPIN, &[&message(2, 2, 0), &[other], &[]]);
    assert_eq!(when(&received), [(0, PACKET + WAY), (1, 2 * PACKET + WAY), (0, 3 * PACKET + WAY)]);
    assert_eq!(received[2].path.total(Stage::SWITCH_QUEUED), ps(PACKET));
    assert_eq!(received[2].path.total(Stage::LINK), ps(2 * PACKET + 66_800));
}

#[test]
fn a_packet_whose_bytes_come_slowly_holds_the_output() {
    let slow = Send { tail: at(500_000), ..send(2, 4096, 0) };
    let (received, statistics) = run(&SPIN, &[&[slow], &[send(2, 8, 100_000)], &[]]);
    // The last byte of host 0's packet is ready at the card's link at 500 ns. The switch forwards the packet's bytes as
    // they arrive.
    assert_eq!(when(&received), [(0, 500_000 + WAY), (1, 500_160 + WAY)]);
    assert_eq!(
        totals(&received[0].path),
        [(Stage::BUS, ps(500_000)), (Stage::LINK, ps(66_800)), (Stage::SWITCH, ps(50_000))]
    );
    assert_eq!(received[1].path.total(Stage::SWITCH_QUEUED), ps(400_000));
    assert_eq!(statistics.switches[0].ports[2].busy, ps(500_000 + 160));
}

#[test]
fn bytes_that_come_as_the_link_takes_them_are_the_link_s_time() {
    // Node 0's packet occupies the output for 418.08 ns. The last byte of the slow packet arrives 81.92 ns later. This
    // is exactly the time that the slow packet's bytes take on the link.
    let slow = Send { tail: at(500_000), ..send(2, 4096, 0) };
    let (received, _) = run(&SPIN, &[&[send(2, 20_904, 0)], &[slow], &[]]);
    assert_eq!(when(&received), [(0, 418_080 + WAY), (1, 500_000 + WAY)]);
    assert_eq!(
        totals(&received[1].path),
        [
            (Stage::LINK, ps(PACKET + 66_800)),
            (Stage::SWITCH, ps(50_000)),
            (Stage::SWITCH_QUEUED, ps(418_080))
        ]
    );
}

#[test]
fn the_use_of_each_output_is_recorded() {
    let mut net = Net::star(3, 1, &SPIN);
    net.sends(0, &[send(2, 4096, 0), send(1, 8, 1)]);
    net.sends(1, &[send(2, 8, 0)]);
    let recorder = Recorder::new(Level::Everything, 100);
    net.network.record(|node| if node == NodeId(3) { recorder.clone() } else { Recorder::off() });
    net.run();
    let slices = recorder.take().slices;
    let rows: Vec<_> = slices
        .iter()
        .map(|slice| (slice.resource, slice.start.ps(), slice.end.ps(), slice.message.unwrap().source.0))
        .collect();
    // The heads have passed the switch 83.4 ns after their start. Node 0's second head is one packet time later.
    let through = 33_400 + 50_000;
    assert_eq!(
        rows,
        [
            (Resource::SWITCH_PORT.numbered(2), through, through + PACKET, 0),
            (Resource::SWITCH_PORT.numbered(2), through + PACKET, through + PACKET + 160, 1),
            (Resource::SWITCH_PORT.numbered(1), through + PACKET, through + PACKET + 160, 0),
        ]
    );
}

#[test]
fn a_line_before_one_output_does_not_block_another() {
    let mine = [send(2, 4096, 0), send(3, 4096, 1)];
    let (received, _) = run(&SPIN, &[&mine, &[send(2, 65_536, 0)], &[], &[]]);
    // Node 0's packets are first at both outputs.
    assert_eq!(when(&received), [(0, PACKET + WAY), (1, 17 * PACKET + WAY), (0, 2 * PACKET + WAY)]);
    // Node 0's packet to node 2 is now behind a long packet. Its packet to node 3 overtakes it.
    let mine = [send(2, 4096, 2), send(3, 4096, 3)];
    let (received, _) = run(&SPIN, &[&mine, &[send(2, 65_536, 0)], &[], &[]]);
    assert_eq!(when(&received), [(1, 16 * PACKET + WAY), (0, 17 * PACKET + WAY), (0, 2 + 2 * PACKET + WAY)]);
}

#[test]
fn an_input_whose_buffer_is_full_takes_nothing() {
    // Node 0's only slot holds a packet that waits for node 1's packet, which is 16 times as long.
    let mine = [send(2, 4096, 2), send(3, 4096, 3)];
    let (received, statistics) = run(&small_buffers(1, 256), &[&mine, &[send(2, 65_536, 0)], &[], &[]]);
    let left = 33_400 + 50_000 + 17 * PACKET;
    // The credit crosses the link. Then the packet starts.
    assert_eq!(received[2].when, at(left + 33_400 + PACKET + WAY));
    assert_eq!(received[2].path.total(Stage::LINK_QUEUED), ps(left + 33_400 - 3));
    assert_eq!(statistics.hosts[0].queued, ps(left + 33_400 - 3));
    assert_eq!(statistics.switches[0].ports[0].peak_buffer, 1);
}

#[test]
fn a_slot_s_round_trip_sets_the_pace_of_a_small_buffer() {
    let (received, statistics) = run(&small_buffers(1, 256), &[&message(1, 5, 0), &[]]);
    // The period of a slot: the switch latency, the packet's bytes, the credit's latency, and the latency of the next
    // head.
    let period = 50_000 + PACKET + 33_400 + 33_400;
    let times: Vec<_> = (0..5).map(|k| (0, k * period + PACKET + WAY)).collect();
    assert_eq!(when(&received), times);
    // The link was free again after each packet. Only from this time on did the next packet wait for the credit.
    assert_eq!(
        totals(&received[4].path),
        [
            (Stage::LINK, ps(5 * PACKET + 66_800)),
            (Stage::LINK_QUEUED, ps(4 * (period - PACKET))),
            (Stage::SWITCH, ps(50_000))
        ]
    );
    assert_eq!(statistics.switches[0].ports[0].peak_buffer, 1);
}

#[test]
fn a_packet_waits_in_the_switch_for_a_credit_of_the_receiver() {
    let spec = small_buffers(32, 1);
    let mut net = Net::star(3, 1, &spec);
    net.sends(0, &message(2, 2, 0));
    net.sends(1, &[send(2, 4096, 10)]);
    net.serves(2, ps(1_000_000));
    let (_, received, statistics) = net.run();
    // The period: the whole packet arrives at the card, is served for 1 us, and its credit returns. Then the output
    // starts the next packet.
    let period = PACKET + 33_400 + 1_000_000 + 33_400;
    let first = PACKET + WAY;
    assert_eq!(when(&received), [(0, first), (1, first + period), (0, first + 2 * period)]);
    assert_eq!(received[1].path.total(Stage::SWITCH_QUEUED), ps(period - 10));
    let out = statistics.switches[0].ports[2];
    assert_eq!(out.queued, ps(period - 10 + 2 * period - PACKET));
    assert_eq!(out.busy, ps(3 * PACKET));
    assert_eq!(statistics.hosts[2].peak_buffer, 1);
}

#[test]
fn one_s_own_message_is_no_queue_but_the_credit_after_it_is() {
    let mut net = Net::star(2, 1, &small_buffers(32, 1));
    net.sends(0, &message(1, 3, 0));
    net.serves(1, ps(1_000_000));
    let (_, received, _) = net.run();
    let period = PACKET + 33_400 + 1_000_000 + 33_400;
    assert_eq!(received[2].when, at(PACKET + WAY + 2 * period));
    // The output was free again one packet time after each start. Only from this time on did the next packet wait for
    // the credit.
    assert_eq!(
        totals(&received[2].path),
        [
            (Stage::LINK, ps(3 * PACKET + 66_800)),
            (Stage::SWITCH, ps(50_000)),
            (Stage::SWITCH_QUEUED, ps(2 * (period - PACKET)))
        ]
    );
}

#[test]
fn a_slot_is_free_at_the_instant_at_which_its_last_byte_has_left() {
    // The first packet's head arrives at 33.4 ns, and its last byte leaves at 33.4 + 50 + 81.92 ns. The second head
    // arrives at this time, or 1 ps before.
    for (begin, slots) in [(131_920, 1), (131_919, 2)] {
        let (_, statistics) = run(&SPIN, &[&[send(1, 4096, 0), send(1, 8, begin)], &[]]);
        assert_eq!(statistics.switches[0].ports[0].peak_buffer, slots);
    }
}

#[test]
fn both_directions_of_a_link_are_independent() {
    let (received, _) = run(&SPIN, &[&message(1, 4, 0), &message(0, 4, 0)]);
    for by in [0, 1] {
        let last = received.iter().rfind(|r| r.by == by).unwrap();
        assert_eq!(last.when, at(4 * PACKET + WAY));
        assert_eq!(last.path.total(Stage::SWITCH_QUEUED), ps(0));
    }
}

#[test]
fn a_packet_may_leave_by_the_port_it_came_by() {
    let (received, _) = run(&SPIN, &[&[send(0, 8, 0)], &[]]);
    assert_eq!(when(&received), [(0, 160 + WAY)]);
}

#[test]
fn incast_serves_all_senders_alike() {
    const SENDERS: u32 = 7;
    const PACKETS: u64 = 40;
    for (switch, card) in [(1, 1), (2, 256), (8, 2), (32, 256)] {
        let mut net = Net::star(SENDERS + 1, 1, &small_buffers(switch, card));
        for host in 0..SENDERS {
            // The start times differ, and their order differs from the order of the links.
            let begin = u64::from((host * 3) % SENDERS) * 1_000;
            let sends: Vec<Send> = (0..PACKETS)
                .map(|k| Send { message: 1, offset: k * 4096, ..send(SENDERS, 4096, begin) })
                .collect();
            net.sends(host, &sends);
        }
        net.serves(SENDERS, ps(20_000));
        let (_, received, statistics) = net.run();
        let mut taken = [0u64; SENDERS as usize];
        for packet in &received {
            let from = &mut taken[packet.source as usize];
            assert_eq!(packet.offset, *from * 4096, "packets of a sender stay in order");
            *from += 1;
            // Senders take turns, one packet each. The first sender may be ahead by the packets that it could send
            // before the buffers were full.
            let (most, least) = (taken.iter().max().unwrap(), taken.iter().min().unwrap());
            assert!(most - least <= 2, "{taken:?} with buffers of {switch} and {card}");
        }
        for port in &statistics.switches[0].ports[..SENDERS as usize] {
            assert_eq!(port.received_packets, PACKETS);
            assert_eq!(port.peak_buffer, switch.min(PACKETS as u32), "the buffers are full");
        }
        assert!(statistics.hosts[SENDERS as usize].peak_buffer <= card);
    }
}

#[test]
fn incast_uses_the_whole_link() {
    let mut net = Net::star(5, 1, &SPIN);
    for host in 0..4 {
        net.sends(host, &message(4, 25, 0));
    }
    let (_, received, statistics) = net.run();
    assert_eq!(received.last().unwrap().when, at(100 * PACKET + WAY));
    assert_eq!(statistics.switches[0].ports[4].busy, ps(100 * PACKET));
}

/// Two switches with two hosts each.
fn two_switches(shards: usize) -> Net {
    let mut world = World::new(Config { shards, ..Config::default() });
    let nodes: Vec<NodeId> = (0..6).map(|_| world.add_node()).collect();
    let card = |node| Terminal { node, buffer: 256, delivery: Delivery::Whole };
    let switch = |node| Terminal { node, buffer: 32, delivery: Delivery::Head };
    let (mut ports, mut ends) = (Vec::new(), [Vec::new(), Vec::new()]);
    for host in 0..4 {
        let (port, end) = link(&mut world, card(nodes[host]), switch(nodes[4 + host / 2]), SPIN.link);
        ports.push(Port::new(port));
        ends[host / 2].push(end);
    }
    let (left, right) = link(&mut world, switch(nodes[4]), switch(nodes[5]), SPIN.link);
    let [mut of_left, mut of_right] = ends;
    of_left.push(left);
    of_right.push(right);
    let table = |routes: [usize; 4]| {
        Box::new(RoutingTable::new(nodes.iter().copied().zip(routes))) as Box<dyn Routing>
    };
    Switch::install(&SPIN.switch, of_left, table([0, 1, 2, 2]));
    Switch::install(&SPIN.switch, of_right, table([2, 2, 0, 1]));
    // The switches work even if their handles are dropped.
    let (_, network) = Topology::Pair.build(&mut world, &nodes[..2], &SPIN).unwrap();
    Net::new(world, ports, network)
}

#[test]
fn switches_stream_to_switches() {
    for shards in [1, 2, 6] {
        let mut net = two_switches(shards);
        net.sends(0, &message(2, 16, 0));
        net.sends(1, &[send(3, 4096, 0), send(0, 8, 1)]);
        let (_, received, _) = net.run();
        let last = received.iter().rfind(|r| r.by == 2).unwrap();
        // The path has three links and two switches. Node 1's packet goes before node 0's last packet.
        assert_eq!(last.when, at(17 * PACKET + WAY + 50_000 + 33_400));
        assert_eq!(last.path.total(Stage::SWITCH), ps(100_000));
        assert_eq!(last.path.total(Stage::SWITCH_QUEUED), ps(PACKET));
        let near = received.iter().find(|r| r.by == 0).unwrap();
        assert_eq!(near.when, at(PACKET + 160 + WAY));
    }
}

#[test]
fn topologies_have_names() {
    for topology in [
        Topology::Pair,
        Topology::Star,
        Topology::FatTree(FatTree::default()),
        Topology::Torus(Torus::default()),
    ] {
        assert!(Topology::NAMES.contains(&topology.to_string().as_str()));
        assert_eq!(topology.to_string().parse::<Topology>().as_ref(), Ok(&topology));
    }
    assert_eq!(Topology::default(), Topology::Pair);
    let error = |text: &str| text.parse::<Topology>().unwrap_err().to_string();
    assert_eq!(
        error("Star"),
        "no topology 'Star'; there are: pair, star, fat-tree, torus, ring, alone; did you mean star?"
    );
    assert_eq!(
        error("piar"),
        "no topology 'piar'; there are: pair, star, fat-tree, torus, ring, alone; did you mean pair?"
    );
    assert_eq!(error("mesh"), "no topology 'mesh'; there are: pair, star, fat-tree, torus, ring, alone");
    let long = "s".repeat(100_000);
    assert!(error(&long).ends_with("there are: pair, star, fat-tree, torus, ring, alone"));
}

#[test]
fn topologies_know_how_many_hosts_they_join() {
    let refused = |topology: Topology, hosts| topology.check(hosts, &SPIN.switch).unwrap_err().to_string();
    assert_eq!(
        refused(Topology::Pair, 1),
        "a pair has 2 nodes, not 1; write nodes = 2, or topology alone for one"
    );
    assert_eq!(
        refused(Topology::Pair, 3),
        "a pair has 2 nodes, not 3; write nodes = 2, or topology star for up to 36, or topology fat-tree"
    );
    assert_eq!(refused(Topology::Star, 0), "a star has 2 nodes at least, not 0; write nodes = 2 or more");
    assert!(refused(Topology::Star, 37).contains("set switch.ports=37"));
    let error = Topology::Star.check(37, &SPIN.switch).unwrap_err();
    assert!(
        error
            .of_options(true)
            .ends_with("write --nodes 36 or fewer, or --set switch.ports=37, or --topology fat-tree")
    );
    assert!(error.of_options(false).ends_with("; write --set switch.ports=37, or --topology fat-tree"));
    assert_eq!(
        Topology::Star.check(0, &SPIN.switch).unwrap_err().of_options(false),
        "a star has 2 nodes at least, not 0"
    );
    for (topology, hosts) in [(Topology::Pair, 2), (Topology::Star, 2), (Topology::Star, 36)] {
        assert_eq!(topology.check(hosts, &SPIN.switch), Ok(()));
    }
    let mut world = World::new(Config::default());
    let hosts = [world.add_node()];
    assert!(Topology::Star.build(&mut world, &hosts, &SPIN).is_err());
    assert_eq!(world.nodes(), 1, "a topology that cannot be leaves the world alone");
}

#[test]
fn a_pair_has_no_switch() {
    let mut world = World::new(Config::default());
    let hosts = [world.add_node(), world.add_node()];
    let (ports, network) = Topology::Pair.build(&mut world, &hosts, &SPIN).unwrap();
    let mut net = Net::new(world, ports, network);
    net.sends(0, &message(1, 2, 0));
    net.serves(1, ps(100_000));
    let (_, received, statistics) = net.run();
    assert_eq!(when(&received), [(0, PACKET + 33_400), (0, 2 * PACKET + 33_400)]);
    assert!(statistics.switches.is_empty());
    assert_eq!((statistics.hosts[0].sent_packets, statistics.hosts[1].received_packets), (2, 2));
    assert_eq!(statistics.hosts[0].queued, ps(PACKET));
    assert_eq!(net.ports[0].busy(), ps(2 * PACKET));
    assert_eq!((net.ports[0].packets(), net.ports[1].packets()), ((2, 0), (0, 2)));
    assert_eq!(net.ports[1].statistics(), statistics.hosts[1]);
}

fn broken(spec: LinkSpec, switch: SwitchSpec, hosts: usize) {
    let mut world = World::new(Config::default());
    let node = world.add_node();
    let mut ends = Vec::new();
    for _ in 0..hosts {
        let host = world.add_node();
        let card = Terminal { node: host, buffer: spec.buffer, delivery: Delivery::Whole };
        let at = Terminal { node, buffer: switch.buffer, delivery: Delivery::Head };
        ends.push(link(&mut world, card, at, spec).1);
    }
    Switch::install(&switch, ends, Box::new(RoutingTable::default()));
}

#[test]
#[should_panic(expected = "a link takes time")]
fn a_link_without_latency_is_refused() {
    broken(LinkSpec { latency: Duration::ZERO, ..SPIN.link }, SPIN.switch, 1);
}

#[test]
#[should_panic(expected = "never carries a packet")]
fn a_link_without_a_buffer_is_refused() {
    broken(SPIN.link, SwitchSpec { buffer: 0, ..SPIN.switch }, 1);
}

#[test]
#[should_panic(expected = "3 links on a switch of 2 ports")]
fn a_switch_has_no_more_links_than_ports() {
    broken(SPIN.link, SwitchSpec { ports: 2, ..SPIN.switch }, 3);
}

#[test]
#[should_panic(expected = "a switch has a link")]
fn a_switch_without_links_is_refused() {
    broken(SPIN.link, SPIN.switch, 0);
}

#[test]
#[should_panic(expected = "a switch has no route to node 9, where a packet of node 0 is for")]
fn a_destination_that_is_not_there_is_named() {
    let mut net = Net::star(2, 1, &SPIN);
    net.sends(0, &[send(9, 8, 0)]);
    net.run();
}
