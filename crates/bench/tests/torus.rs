//! Cards with one port on a torus: the worked example of the documentation, exact to the picosecond; messages between all hosts;
//! failures; recordings.

use nicety::{
    Cluster, ClusterConfig, Environment, Error, Faults, Host, NodeFailure, Place, Rates, Run, cards,
};
use nicety_bench::{Request, run};
use nicety_types::{Level, Resource, Time};
use std::sync::Arc;

fn latency_ns(card: &str, mode: &str, topology: &str) -> f64 {
    let request = serde_json::json!({
        "benchmark": "latency",
        "nics": [card],
        "modes": [mode],
        "sizes": [8],
        "iterations": 3,
        "topology": topology,
    });
    let environment =
        Environment { log: Arc::new(|line| panic!("nothing prints: {line}")), ..Environment::default() };
    run(&Request::from_json(&request.to_string()).unwrap(), &environment).unwrap().rows[0].latency_ns.unwrap()
}

#[test]
fn a_neighbour_is_two_routers_further_than_on_a_pair() {
    for (card, mode) in [("spin-discrete", "rdma"), ("qnix", "auto"), ("nfp-4000", "auto")] {
        let spec = cards::load(card, &[]).unwrap();
        let router_ps = spec.spec.node().switch.latency.ps() as f64;
        let added_ps = (latency_ns(card, mode, "torus:2") - latency_ns(card, mode, "pair")) * 1e3;
        // The control program of a qnix polls its interfaces in turn, so the wait of a packet may
        // differ by up to one polling round.
        if card == "spin-discrete" {
            assert_eq!(added_ps.round(), 2.0 * router_ps + 2.0, "{card}");
        } else {
            assert!(added_ps > router_ps && added_ps < 4.0 * router_ps + 1e6, "{card}: {added_ps}");
        }
    }
    // In ns: post 65, bus 250, links 0.160 + 0.001 + 33.4 + 0.001, two routers 2 x 50, matching 30, deposit 0.125 + 250,
    // notice 65.
    assert_eq!(latency_ns("spin-discrete", "rdma", "torus:2"), 793.687);
}

/// Each rank sends to every other rank, and checks the received messages.
async fn exchange(host: Host, size: u64) -> Result<(), Error> {
    let (rank, ranks) = (host.rank(), host.ranks());
    let byte = |from: u32, to: u32| (from * 31 + to + 1) as u8;
    let peers: Vec<u32> = (1..ranks).map(|step| (rank + step) % ranks).collect();
    let mut posted = Vec::new();
    for &peer in &peers {
        let buffer = host.alloc(size)?;
        posted.push((peer, host.post_recv(&buffer, Some(peer), Some(3)).await?, buffer));
    }
    host.barrier().await;
    for &peer in &peers {
        let buffer = host.alloc(size)?;
        buffer.write(0, &vec![byte(rank, peer); size as usize]);
        host.send(&buffer, peer, 3).await?;
    }
    for (peer, pending, buffer) in posted {
        let received = host.received(pending).await?;
        assert_eq!((received.source, received.length), (peer, size));
        assert!(buffer.read(0, size).iter().all(|&found| found == byte(peer, rank)));
    }
    Ok(())
}

fn cluster(config: ClusterConfig, topology: &str, size: u64) -> Result<Run, Error> {
    let nodes = config.nodes;
    let mut cluster = Cluster::new(ClusterConfig { topology: topology.parse()?, ..config })?;
    for rank in 0..nodes {
        cluster.program(rank, move |host| exchange(host, size));
    }
    cluster.run()
}

#[test]
fn all_hosts_reach_all_others_with_every_card() {
    for card in ["spin-discrete", "spin-integrated", "qnix", "nfp-4000"] {
        for (topology, nodes) in [("torus:2x2x2", 8), ("torus:5", 5), ("torus:3x2", 6), ("torus", 4)] {
            let config = || ClusterConfig::new(nodes, cards::load(card, &[]).unwrap());
            let one = cluster(config(), topology, 9000)
                .unwrap_or_else(|error| panic!("{card} {topology}: {error}"));
            let other = cluster(ClusterConfig { shards: 3, ..config() }, topology, 9000).unwrap();
            assert_eq!(one, other, "{card} {topology}");
        }
    }
}

#[test]
fn links_with_a_protocol_of_their_own_make_up_for_faults_and_bit_errors() {
    let set =
        ["link.retries=200", "link.retry_timeout=500 ns", "link.bit_error_rate=1e-6", "link.stuffing=16 B"];
    let overrides: Vec<String> =
        set.into_iter().chain(["link.stuffing_every=256 B"]).map(str::to_owned).collect();
    let rates = Rates { loss: 0.05, corruption: 0.05, duplication: 0.1, ..Rates::default() };
    let faults = Faults { rates, ..Faults::default() };
    for card in ["spin-discrete", "qnix", "nfp-4000"] {
        let card = cards::load(card, &overrides).unwrap();
        let config = || ClusterConfig { faults: faults.clone(), ..ClusterConfig::new(6, card.clone()) };
        let one = cluster(config(), "torus:3x2", 9000).unwrap();
        assert_eq!(one, cluster(ClusterConfig { shards: 3, ..config() }, "torus:3x2", 9000).unwrap());
        let resent: u64 = one.network.faults.iter().map(|link| link.resent).sum();
        let in_ports: u64 =
            one.network.switches.iter().flat_map(|s| &s.ports).map(|port| port.resent_packets).sum();
        assert!(resent > 10 && resent == in_ports, "{resent}, {in_ports}");
    }
    let refused =
        |set: &str| cards::load("spin-discrete", &[set.to_owned()]).map(drop).unwrap_err().to_string();
    assert!(
        refused("link.bit_error_rate=1e-6").contains("link: missing retries, retry_timeout"),
        "{}",
        refused("link.bit_error_rate=1e-6")
    );
    let overrides = ["link.retries=1".to_owned(), "link.retry_timeout=50 ns".to_owned()];
    let error = cards::load("spin-discrete", &overrides).map(drop).unwrap_err().to_string();
    assert!(error.contains("an answer takes twice the link's latency"), "{error}");
}

#[test]
fn a_link_that_gives_up_names_the_packet() {
    let overrides = ["link.retries=3".to_owned(), "link.retry_timeout=500 ns".to_owned()];
    let rates = Rates { corruption: 1.0, ..Rates::default() };
    let card = cards::load("spin-discrete", &overrides).unwrap();
    let config =
        ClusterConfig { faults: Faults { rates, ..Faults::default() }, ..ClusterConfig::new(2, card) };
    let error = cluster(config, "torus:2", 8).unwrap_err();
    assert!(matches!(error, Error::Deadlock(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("damaged each time that the link sent it"), "{text}");
}

#[test]
fn a_failed_router_is_named_with_what_it_did_not_forward() {
    // In a ring of five hosts, host 0 reaches host 2 through host 1.
    let nodes = vec![NodeFailure { node: Place::Host(1), at: Time::ZERO }];
    let faults = Faults { nodes, ..Faults::default() };
    let card = cards::load("spin-discrete", &[]).unwrap();
    let config =
        ClusterConfig { faults, topology: "torus:5".parse().unwrap(), ..ClusterConfig::new(5, card) };
    let mut cluster = Cluster::new(config).unwrap();
    cluster.program(0, |host| async move { host.send(&host.alloc(8)?, 2, 7).await });
    let error = cluster.run().unwrap_err();
    assert!(matches!(error, Error::Undelivered(_)) && error.exit_status() == 1, "{error}");
    let text = error.to_string();
    assert!(text.contains("hosts.1 is down from 0 ns on; 1 packet was not delivered"), "{text}");
    assert!(
        text.contains("message 0 of rank 0 to rank 2, bytes 0 to 7, lost on hosts.0 -> hosts.1 at"),
        "{text}"
    );
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let card = cards::load("spin-discrete", &[]).unwrap();
    let error = cluster(ClusterConfig::new(8, card), "torus:4x4x4", 8).unwrap_err();
    assert!(matches!(error, Error::Input(_)) && error.exit_status() == 2);
    assert_eq!(
        error.to_string(),
        "torus:4x4x4 has 64 nodes, not 8; write nodes = 64, or topology torus:2x2x2"
    );
}

#[test]
fn a_single_host_has_a_torus_of_its_own() {
    let card = cards::load("spin-discrete", &[]).unwrap();
    let topology = "torus:1x1x1".parse().unwrap();
    let mut cluster = Cluster::new(ClusterConfig { topology, ..ClusterConfig::new(1, card) }).unwrap();
    cluster.program(0, |host| async move {
        let (from, into) = (host.alloc(100)?, host.alloc(100)?);
        from.write(0, &[7; 100]);
        let posted = host.post_recv(&into, Some(0), Some(1)).await?;
        host.send(&from, 0, 1).await?;
        host.received(posted).await?;
        assert_eq!(into.read(0, 100)[..], [7; 100]);
        Ok(())
    });
    cluster.run().unwrap();
}

#[test]
fn a_router_is_recorded_on_its_host() {
    let card = || cards::load("spin-discrete", &[]).unwrap();
    let recorded = |shards| {
        let config = ClusterConfig { recording: Level::Everything, shards, ..ClusterConfig::new(4, card()) };
        cluster(config, "torus:4", 5000).unwrap()
    };
    let run = recorded(1);
    assert_eq!(run.recording, recorded(3).recording);
    let of = |resource: Resource| {
        run.recording.resources.iter().filter(move |usage| usage.slice.resource.is_a(resource))
    };
    assert_eq!(of(Resource::SWITCH_PORT).count(), 0);
    for rank in 0..4 {
        // The router sends a packet to each of two neighbours, and forwards packets in transit to its host.
        let mut ports: Vec<u32> = of(Resource::ROUTER_PORT)
            .filter(|usage| usage.node.0 == rank)
            .filter_map(|usage| usage.slice.resource.number())
            .collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports, [0, 1, 2], "rank {rank}");
    }
    // Every packet that a card receives was sent by port 0 of its router.
    let local: u64 = run.network.switches.iter().map(|router| router.ports[0].sent_packets).sum();
    assert_eq!(local, run.network.hosts.iter().map(|port| port.received_packets).sum::<u64>());
}
