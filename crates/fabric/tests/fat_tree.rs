//! Fat trees, checked by hand: path lengths, the uplinks that packets take, the switches that are built, and impossible
//! trees.

use crate::switch_support::{Net, Received, SPIN, Send, at, ps, send};
use nicety_fabric::{FatTree, NetworkStatistics, SwitchSpec, Topology, UpRouting};
use nicety_kernel::{Config, World};
use nicety_types::{NodeId, Stage};

const LINK: u64 = 33_400;
const SWITCH: u64 = 50_000;
/// Serialisation time of 4 KiB in ps.
const PACKET: u64 = 81_920;

fn tree(text: &str) -> Topology {
    text.parse().unwrap()
}

fn run(topology: &str, hosts: u32, sends: &[(u32, Send)]) -> (Vec<Received>, NetworkStatistics) {
    let mut net = Net::joined(tree(topology), hosts, 1, &SPIN);
    for host in 0..hosts {
        let mine: Vec<Send> = sends.iter().filter(|(from, _)| *from == host).map(|(_, s)| *s).collect();
        net.sends(host, &mine);
    }
    let (_, received, statistics) = net.run();
    (received, statistics)
}

/// Number of switches at each level.
fn levels(statistics: &NetworkStatistics) -> Vec<usize> {
    let top = statistics.switches.iter().map(|s| s.level).max().unwrap();
    (0..=top).map(|l| statistics.switches.iter().filter(|s| s.level == l).count()).collect()
}

#[test]
fn a_path_leads_through_one_three_or_five_switches() {
    // A leaf has two hosts, a pod four hosts, and the tree sixteen hosts. The 8 bytes take 160 ps on the wire, only
    // once.
    for (to, switches) in [(1, 1), (2, 3), (3, 3), (4, 5), (15, 5)] {
        let way = switches * SWITCH + (switches + 1) * LINK;
        assert_eq!([116_800, 283_600, 450_400][switches as usize / 2], way);
        for (bytes, serialisation) in [(8, 160), (4096, PACKET)] {
            let (received, _) = run("fat-tree:4:3", 16, &[(0, send(to, bytes, 0))]);
            assert_eq!(received[0].when, at(serialisation + way), "to {to}, {bytes} B");
            let path = &received[0].path;
            assert_eq!(path.total(Stage::SWITCH), ps(switches * SWITCH));
            assert_eq!(path.total(Stage::LINK), ps(serialisation + (switches + 1) * LINK));
            assert_eq!(path.stages().count(), 2);
        }
    }
    // With 36 ports, a leaf has 18 hosts and a pod has 324 hosts.
    for (from, to, switches) in [(0, 17, 1), (17, 18, 3), (0, 323, 3), (323, 324, 5), (0, 1023, 5)] {
        let (received, _) = run("fat-tree:36", 1024, &[(from, send(to, 8, 0))]);
        assert_eq!(received[0].when, at(160 + switches * SWITCH + (switches + 1) * LINK));
    }
}

#[test]
fn there_are_no_more_levels_than_the_hosts_need_and_no_switch_without_a_path() {
    let built = |topology: &str, hosts| levels(&run(topology, hosts, &[]).1);
    assert_eq!(built("fat-tree:36", 2), [1]);
    assert_eq!(built("fat-tree:36", 36), [1]);
    assert_eq!(built("fat-tree:36", 37), [3, 18]);
    assert_eq!(built("fat-tree:36", 648), [36, 18]);
    assert_eq!(built("fat-tree:36", 649), [37, 54, 324]);
    assert_eq!(built("fat-tree:36", 1024), [57, 72, 324]);
    assert_eq!(built("fat-tree", 1024), [57, 72, 324]);
    assert_eq!(built("fat-tree:4", 16), [8, 8, 4]);
    assert_eq!(built("fat-tree:4", 17), [9, 10, 12, 8]);
    // The tree has more levels than needed. The hosts are in the first pod, or at the first leaf, of a larger tree.
    assert_eq!(built("fat-tree:36:2", 36), [2, 18]);
    assert_eq!(built("fat-tree:36:3", 18), [1]);
    assert_eq!(built("fat-tree:36:3", 324), [18, 18]);
    assert_eq!(built("fat-tree:36:3", 325), [19, 36, 324]);
    assert_eq!(built("fat-tree:36:9", 324), [18, 18]);
    assert_eq!(built("fat-tree:2:2", 2), [2, 1]);
    assert_eq!(built("fat-tree:2:32", 2).len(), 32);
}

#[test]
fn ports_are_numbered_from_the_links_down_to_the_links_up() {
    // One leaf has two hosts and the other has one host. Two switches (planes) are above the leaves.
    let (_, statistics) = run("fat-tree:4:2", 3, &[(0, send(2, 8, 0)), (2, send(1, 8, 0))]);
    assert_eq!(levels(&statistics), [2, 2]);
    let mut used = Vec::new();
    for switch in &statistics.switches {
        for (number, port) in switch.ports.iter().enumerate() {
            if port.sent_packets > 0 {
                used.push(switch.port_name(number));
            }
        }
    }
    // The packet to host 2 takes uplink 2 mod 2 = 0, which is port 2 of a leaf with two hosts. Then it goes down to
    // leaf 1 and to its host. The packet to host 1 takes uplink 1 mod 2 = 1, which is port 2 of a leaf with one host.
    assert_eq!(used, ["0/0/1", "0/0/2", "0/1/0", "0/1/2", "1/0/1", "1/1/0"]);
    let nodes: Vec<NodeId> = statistics.switches.iter().map(|s| s.node).collect();
    assert_eq!(nodes, [3, 4, 5, 6].map(NodeId));
    let indices: Vec<u32> = statistics.switches.iter().map(|s| s.index).collect();
    assert_eq!(indices, [0, 1, 0, 1]);
}

/// Returns packets from each host to the host with a rank higher by `by`, all at the same instant.
fn shift(hosts: u32, by: u32) -> Vec<(u32, Send)> {
    let message = |host: u32| {
        (0..4).map(move |k| (host, Send { offset: k * 4096, ..send((host + by) % hosts, 4096, 0) }))
    };
    (0..hosts).flat_map(message).collect()
}

#[test]
fn with_d_mod_k_a_shift_in_a_full_tree_has_no_queueing() {
    for (topology, hosts) in
        [("fat-tree:4:2", 8), ("fat-tree:4:3", 16), ("fat-tree:6:3", 54), ("fat-tree:36", 648)]
    {
        for by in [1, 2, 3, hosts / 2, hosts / 2 + 1, hosts - 1] {
            let (received, _) = run(topology, hosts, &shift(hosts, by));
            assert_eq!(received.len(), 4 * hosts as usize);
            for packet in &received {
                assert_eq!(packet.path.total(Stage::SWITCH_QUEUED), ps(0), "{topology} by {by}: {packet:?}");
            }
        }
    }
    // A hash sends some of these flows over the same links.
    let (received, _) = run("fat-tree:6:3:hash", 54, &shift(54, 27));
    assert!(received.iter().any(|packet| packet.path.total(Stage::SWITCH_QUEUED) > ps(0)));
}

#[test]
fn paths_up_are_balanced() {
    // Host 0 sends to all hosts of other leaves. A leaf has 8 ports: 4 to its hosts, and 4 uplinks. The tree has 32
    // hosts.
    let to_all: Vec<(u32, Send)> = (4..32).map(|to| (0, send(to, 8, 0))).collect();
    let count = |topology: &str, sends: &[(u32, Send)]| {
        let (_, statistics) = run(topology, 32, sends);
        statistics.switches[0].ports[4..].iter().map(|p| p.sent_packets).collect::<Vec<u64>>()
    };
    assert_eq!(count("fat-tree:8:2", &to_all), [7, 7, 7, 7]);
    // Each host of the leaf sends to all hosts of other leaves, by a hash: 112 flows. An uplink has 28 flows on
    // average, with a standard deviation of 4.6.
    let from_all: Vec<(u32, Send)> =
        (0..4).flat_map(|from| (4..32).map(move |to| (from, send(to, 8, u64::from(from))))).collect();
    let spread = count("fat-tree:8:2:hash", &from_all);
    assert_eq!(spread.iter().sum::<u64>(), 112);
    assert!(spread.iter().all(|&n| (14..=42).contains(&n)), "{spread:?}");
    // All packets of a flow take one path, unless the messages of the flow are spread.
    let one: Vec<(u32, Send)> = (0..200).map(|k| (0, send(31, 8, k * 1_000_000))).collect();
    for (topology, ways) in [("fat-tree:8:2", 1), ("fat-tree:8:2:hash", 1), ("fat-tree:8:2:hash-message", 4)]
    {
        let used = count(topology, &one);
        assert_eq!(used.iter().filter(|&&n| n > 0).count(), ways, "{topology}: {used:?}");
        assert!(ways == 1 || used.iter().all(|&n| (30..=70).contains(&n)), "{used:?}");
    }
}

#[test]
fn texts_are_read_and_written() {
    for text in [
        "fat-tree",
        "fat-tree:36",
        "fat-tree:36:3",
        "fat-tree:hash",
        "fat-tree:4:hash",
        "fat-tree:4:1:hash-message",
    ] {
        assert_eq!(tree(text).to_string(), text);
    }
    assert_eq!(tree("fat-tree:36:3:d-mod-k").to_string(), "fat-tree:36:3");
    assert_eq!(tree("fat-tree:36"), Topology::FatTree(FatTree::new(36, None).unwrap()));
    let hashed = FatTree::new(8, Some(2)).unwrap().routed(UpRouting::Hash);
    assert_eq!((tree("fat-tree:8:2:hash"), hashed.up()), (Topology::FatTree(hashed), UpRouting::Hash));
    let error = |text: &str| text.parse::<Topology>().unwrap_err().to_string();
    for (text, why) in [
        ("fat-tree:", "after the last colon is empty"),
        ("fat-tree::3", "after the last colon is empty"),
        ("fat-tree:36:", "after the last colon is empty"),
        ("fat-tree:x", "unknown routing; write fat-tree:PORTS"),
        ("fat-tree:36:3:hsh", "unknown routing"),
        ("fat-tree:36:3:hash:hash", "there is more text after the routing"),
        ("fat-tree:36:3:3", "unknown routing"),
        ("fat-tree:3.5", "the number of ports is a whole number"),
        ("fat-tree:-4", "the number of ports is a whole number"),
        ("fat-tree:+4", "the number of ports is a whole number"),
        ("fat-tree:36:99999999999", "the number of levels is a whole number"),
        ("fat-tree:0", "2 ports at least, not 0"),
        ("fat-tree:1", "2 ports at least, not 1"),
        ("fat-tree:35", "an even number of ports, half of them up, not 35; write fat-tree:34 or fat-tree:36"),
        ("fat-tree:5000", "4096 ports at most, not 5000"),
        ("fat-tree:36:0", "1 to 32 levels, not 0; write fat-tree:36 for"),
        ("fat-tree:36:33", "1 to 32 levels, not 33"),
        (
            "fattree:36",
            "no topology 'fattree:36'; there are: pair, star, fat-tree, torus, ring, alone; did you mean fat-tree?",
        ),
        ("pair:2", "did you mean pair?"),
    ] {
        assert!(error(text).contains(why), "{text}: {}", error(text));
    }
    assert!(error(&format!("fat-tree:{}", "x".repeat(100_000))).len() < 300);
}

#[test]
fn impossible_trees_get_a_suggestion() {
    let refused = |text: &str, hosts, ports| {
        let spec = SwitchSpec { ports, ..SPIN.switch };
        tree(text).check(hosts, &spec).unwrap_err().to_string()
    };
    assert_eq!(
        refused("fat-tree:36", 1, 36),
        "a fat tree has 2 nodes at least, not 1; write nodes = 2 or more"
    );
    assert_eq!(
        refused("fat-tree:36:2", 1024, 36),
        "a fat tree of 36-port switches with 2 levels holds 648 nodes, not 1024; write nodes = 648 or fewer, or \
         topology fat-tree:36:3, or topology fat-tree:36 for as many levels as the nodes need"
    );
    assert!(refused("fat-tree:4:1", 5, 36).contains("with 1 level holds 4 nodes"));
    assert_eq!(
        refused("fat-tree:2", 3, 36),
        "a fat tree of 2-port switches holds 2 nodes at most, not 3; write a tree of larger switches, as in fat-tree:36"
    );
    assert_eq!(
        refused("fat-tree:64", 100, 37),
        "fat-tree:64 is made of switches with 64 ports, but switch.ports is 37; write topology fat-tree:36, or set \
         switch.ports=64"
    );
    assert!(refused("fat-tree", 100, 37).contains("an even number of ports"));
    for (text, hosts) in
        [("fat-tree:36", 1 << 30), ("fat-tree:4:3", 16), ("fat-tree:36:3", 11_664), ("fat-tree:2:5", 2)]
    {
        assert_eq!(tree(text).check(hosts, &SPIN.switch), Ok(()));
    }
    let mut world = World::new(Config::default());
    let hosts: Vec<NodeId> = (0..9).map(|_| world.add_node()).collect();
    assert!(tree("fat-tree:4:2").build(&mut world, &hosts, &SPIN).is_err());
    assert_eq!(world.nodes(), 9, "a topology that cannot be leaves the world alone");
}

#[test]
#[should_panic(expected = "a switch has no route to node 9, where a packet of node 0 is for")]
fn a_destination_that_is_not_there_is_named() {
    run("fat-tree:4:2", 8, &[(0, send(9, 8, 0))]);
}
