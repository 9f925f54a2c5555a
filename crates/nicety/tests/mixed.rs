//! Tests clusters of hosts with different cards.

use nicety::cards::{self, Card};
use nicety::{Cluster, ClusterConfig, Duration, Error, Run, Time, Topology, spin};
use std::cell::RefCell;
use std::rc::Rc;

fn card(name: &str, overrides: &[&str]) -> Card {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    cards::load(name, &overrides).unwrap()
}

/// Rank 0 sends `bytes` bytes to rank 1, which sends the same number of bytes back. Returns the time in picoseconds at
/// which each rank had received its message, and the run.
fn ping_pong(bytes: u64, config: ClusterConfig) -> ([u64; 2], Run) {
    let nodes = config.nodes;
    let mut cluster = Cluster::new(config).unwrap();
    for rank in 2..nodes {
        cluster.program(rank, async |host: nicety::Host| {
            host.barrier().await;
            Ok(())
        });
    }
    let times = Rc::new(RefCell::new([0; 2]));
    for rank in 0..2 {
        let times = times.clone();
        cluster.program(rank, async move |host: nicety::Host| {
            let (out, back) = (host.alloc(bytes)?, host.alloc(bytes)?);
            out.write(0, &[7; 8]);
            let posted = host.post_recv(&back, Some(1 - rank), Some(1)).await?;
            host.barrier().await;
            let start = host.now();
            if rank == 0 {
                host.send(&out, 1, 1).await?;
            }
            host.received(posted).await?;
            assert_eq!(back.read(0, 8), [7; 8]);
            times.borrow_mut()[rank as usize] = host.now().since(start).ps();
            if rank == 1 {
                host.send(&out, 0, 1).await?;
            }
            Ok(())
        });
    }
    let run = cluster.run().unwrap();
    let times = *times.borrow();
    (times, run)
}

#[test]
fn a_discrete_and_an_integrated_card_each_take_their_own_times() {
    let config = ClusterConfig::of(vec![card("spin-discrete", &[]), card("spin-integrated", &[])]);
    let ([both, one], run) = ping_pong(8, config);
    // The first message takes post, discrete bus, link, match, deposit and event over the integrated bus (8 B x 6.7
    // ps/B), and notice.
    assert_eq!(one, 65_000 + 250_000 + 160 + 33_400 + 30_000 + 54 + 50_000 + 65_000);
    // The message back crosses the integrated bus, and is deposited over the discrete bus (8 B x 15.6 ps/B).
    assert_eq!(both - one, 65_000 + 50_000 + 160 + 33_400 + 30_000 + 125 + 250_000 + 65_000);
    assert_eq!(
        run.nodes.iter().map(|node| &*node.nic).collect::<Vec<_>>(),
        ["spin-discrete", "spin-integrated"]
    );
}

#[test]
fn each_direction_of_a_cable_is_as_its_sender_has_it() {
    let slow = card("spin-discrete", &["link.gap=40 ps/B", "link.latency=10 ns", "link.header=12 B"]);
    let ([both, one], run) = ping_pong(8, ClusterConfig::of(vec![slow, card("spin-discrete", &[])]));
    let around = 65_000 + 250_000 + 30_000 + 125 + 250_000 + 65_000;
    assert_eq!(one, around + (8 + 12) * 40 + 10_000);
    assert_eq!(both - one, around + 8 * 20 + 33_400);
    let hosts = &run.network.hosts;
    assert_eq!((hosts[0].sent_bytes, hosts[1].received_bytes), (20, 20));
    assert_eq!((hosts[1].sent_bytes, hosts[0].received_bytes), (8, 8));
}

#[test]
fn a_cable_to_a_switch_is_as_its_host_has_it() {
    let slow = || card("spin-discrete", &["link.gap=40 ps/B"]);
    let fast = || card("spin-discrete", &[]);
    for cards in [vec![slow(), fast(), fast()], vec![fast(), slow(), fast()]] {
        for topology in ["star", "fat-tree:4"] {
            let topology: Topology = topology.parse().unwrap();
            let config = ClusterConfig { topology, ..ClusterConfig::of(cards.clone()) };
            let ([both, one], _) = ping_pong(8, config);
            // The switch cuts through. In one direction, bytes reach the switch slowly; in the other direction, they
            // leave it slowly.
            let way = 65_000 + 250_000 + 33_400 + 50_000 + 320 + 33_400 + 30_000 + 125 + 250_000 + 65_000;
            assert_eq!((one, both - one), (way, way), "{topology}");
        }
    }
}

#[test]
fn no_card_is_sent_longer_packets_than_it_takes() {
    let small = || card("spin-discrete", &["packet.payload=1024 B"]);
    let large = || card("spin-discrete", &[]);
    for (cards, packets) in [
        (vec![large(), large()], 2),
        (vec![large(), small()], 8),
        (vec![small(), large()], 8),
        (vec![small()], 8),
    ] {
        let config = ClusterConfig { nodes: 2, topology: Topology::Pair, ..ClusterConfig::of(cards) };
        let (_, run) = ping_pong(8192, config);
        let sent: Vec<_> = run.network.hosts.iter().map(|host| host.sent_packets).collect();
        // Each card also sends an acknowledgement, because the message is longer than messages.eager.
        assert_eq!(sent, [packets + 1; 2]);
    }
    let qnix = vec![card("qnix", &[]), card("qnix", &["packet.payload=512 B"])];
    let (_, run) = ping_pong(8192, ClusterConfig::of(qnix));
    assert!(run.network.hosts.iter().all(|host| host.sent_packets >= 16), "{:?}", run.network.hosts);
}

#[test]
fn a_message_waits_for_its_receive_as_both_cards_can_have_it() {
    // These messages use rendezvous, because the receiver's buffers are shorter than the sender's messages.eager.
    let long = || card("spin-discrete", &["messages.eager=512 KiB", "messages.buffer=1 MiB"]);
    let usual = || card("spin-discrete", &[]);
    for cards in [[long(), usual()], [usual(), long()]] {
        let mut cluster = Cluster::new(ClusterConfig::of(cards.to_vec())).unwrap();
        for rank in 0..2 {
            cluster.program(rank, async move |host: nicety::Host| {
                let buffer = host.alloc(300_000)?;
                if rank == 0 {
                    buffer.write(0, &[7; 300_000]);
                    host.send(&buffer, 1, 1).await?;
                    assert!(host.now() > Time::from_ps(100_000_000), "it waits at its sender");
                } else {
                    host.compute(Duration::from_us(100)).await;
                    host.recv(&buffer, Some(0), Some(1)).await?;
                    assert_eq!(buffer.read(0, 300_000), [7; 300_000]);
                }
                Ok(())
            });
        }
        cluster.run().unwrap();
    }
}

#[test]
fn the_same_cards_by_rank_are_one_for_all() {
    let one = ClusterConfig::new(2, card("spin-discrete", &[]));
    let each = ClusterConfig::of(vec![card("spin-discrete", &[]), card("spin-discrete", &[])]);
    assert_eq!(ping_pong(5000, one).1, ping_pong(5000, each).1);
}

#[test]
fn cards_that_do_not_understand_each_other_are_refused() {
    let refusal = |cards| Cluster::new(ClusterConfig::of(cards)).err().unwrap();
    let cases = [
        (
            vec![card("spin-discrete", &[]), card("nfp-4000", &[])],
            "rank 0 has card spin-discrete, which sends Portals 4 packets, and rank 1 has nfp-4000, which sends \
             Ethernet frames of up to 1500 B, in messages of up to 1073741824 B: they cannot communicate",
        ),
        (
            vec![card("qnix", &[]), card("qnix", &[]), card("spin-discrete", &[])],
            "rank 0 has card qnix, which sends QNIX packets, and rank 2 has spin-discrete",
        ),
        (
            vec![card("spin-discrete", &[]), card("spin-discrete", &["transport.reliable=true"])],
            "rank 1 has spin-discrete, which sends Portals 4 packets with reliable transport",
        ),
    ];
    for (cards, expected) in cases {
        match refusal(cards) {
            Error::Input(text) => assert!(text.contains(expected), "{text}"),
            other => panic!("{other:?}"),
        }
    }
    let three = vec![card("spin-discrete", &[]); 3];
    let error =
        Cluster::new(ClusterConfig { nodes: 4, topology: Topology::Star, ..ClusterConfig::of(three) });
    let error = error.err().unwrap().to_string();
    assert_eq!(error, "3 cards for 4 hosts; name one for each rank, or one for all");
}

#[test]
fn errors_say_which_card_a_rank_has_where_cards_differ() {
    let fail = |cards: Vec<Card>| {
        let mut cluster = Cluster::new(ClusterConfig::of(cards)).unwrap();
        cluster.program(1, async |host: nicety::Host| {
            host.channels()?;
            Ok(())
        });
        let failed = cluster.run().unwrap_err().to_string();
        let mut cluster =
            Cluster::new(ClusterConfig::of(vec![card("spin-integrated", &[]), card("spin-discrete", &[])]))
                .unwrap();
        cluster.program(1, async |host: nicety::Host| {
            let buffer = host.alloc(8)?;
            host.recv(&buffer, None, None).await.map(drop)
        });
        (failed, cluster.run().unwrap_err().to_string())
    };
    let (failed, deadlock) = fail(vec![card("spin-discrete", &[]), card("spin-integrated", &[])]);
    assert!(
        failed.starts_with("rank 1 (spin-integrated): a card of design portals has no processes"),
        "{failed}"
    );
    assert!(deadlock.contains("rank 1 (spin-discrete)"), "{deadlock}");
    let (failed, _) = fail(vec![card("spin-discrete", &[]), card("spin-discrete", &[])]);
    assert!(failed.starts_with("rank 1: "), "{failed}");
}

#[test]
fn handles_of_a_design_work_on_every_card_of_it() {
    let config = ClusterConfig::of(vec![card("spin-discrete", &[]), card("spin-integrated", &[])]);
    let (_, run) = ping_pong(8, config);
    assert!(run.nodes.iter().all(|node| node.of::<spin::Report>().portals.matched == 1));
}
