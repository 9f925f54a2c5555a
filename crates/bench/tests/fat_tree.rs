//! Fat trees of sPIN cards: the worked example of the documentation, exact to the picosecond, and an all-to-all.

use nicety::{Cluster, ClusterConfig, Environment, Error, Host, Run, Topology, cards};
use nicety_bench::{Report, Request, run};
use nicety_portals::{List, Md, MdOptions, Me, MeOptions, PutRequest};
use nicety_types::{NodeId, Time};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

fn latency(topology: &str, size: u64) -> Result<Report, Error> {
    let request = serde_json::json!({
        "benchmark": "latency",
        "nics": ["spin-discrete"],
        "modes": ["rdma"],
        "sizes": [size],
        "iterations": 3,
        "topology": topology,
    });
    let environment =
        Environment { log: Arc::new(|line| panic!("nothing prints: {line}")), ..Environment::default() };
    run(&Request::from_json(&request.to_string())?, &environment)
}

#[test]
fn every_switch_adds_its_latency_and_a_link_s() {
    let ns = |ps: u64| ps as f64 / 1e3;
    // In ns: post 65, bus 250, first link 0.160 + 33.4. Each of S switches and its link: 50 + 33.4. Matching 30, deposit
    // 0.125 + 250, notice 65. In a tree of switches with two ports, the hosts are at the ends of a chain of switches.
    for (topology, switches, short) in
        [("fat-tree:36", 1, 777.085), ("fat-tree:2:2", 3, 943.885), ("fat-tree:2:3", 5, 1110.685)]
    {
        let report = latency(topology, 8).unwrap();
        assert_eq!(report.manifest.topology, topology);
        assert_eq!(report.rows[0].latency_ns, Some(short));
        let stages: Vec<_> =
            report.rows[0].stages.as_ref().unwrap().iter().map(|s| (s.stage, s.ns)).collect();
        assert_eq!(
            stages[2..4],
            [("link", ns(33_560 + switches * 33_400)), ("switch", ns(switches * 50_000))]
        );
        // The packets of a long message stream through all switches. On a pair, the message takes 2040.018 ns.
        let long = latency(topology, 65_536).unwrap().rows[0].latency_ns.unwrap();
        assert_eq!(long, ns(2_040_018 + switches * 83_400));
    }
}

#[test]
fn a_tree_that_is_too_small_says_what_to_write() {
    let card = cards::load("spin-discrete", &[]).unwrap();
    let topology = "fat-tree:4:2".parse::<Topology>().unwrap();
    let refused = Cluster::new(ClusterConfig { topology, ..ClusterConfig::new(9, card) }).err().unwrap();
    assert!(refused.to_string().contains("holds 8 nodes, not 9"), "{refused}");
    let wrong = latency("fat-tree:35", 8).unwrap_err().to_string();
    assert!(wrong.contains("write fat-tree:34 or fat-tree:36"), "{wrong}");
}

const PT: u32 = 1;

/// Every rank sends a message to every other rank at the same time, and checks the received messages.
async fn exchange(host: Host, size: u64) -> Result<Time, Error> {
    let (rank, ranks) = (host.rank(), host.ranks());
    let byte = |from: u32, to: u32| (from * 31 + to + 1) as u8;
    let portals = host.portals()?;
    let counter = portals.ct_alloc()?;
    portals.pt_alloc(Some(PT), None)?;
    let options = MeOptions::OP_PUT
        | MeOptions::EVENT_COMM_DISABLE
        | MeOptions::EVENT_LINK_DISABLE
        | MeOptions::EVENT_CT_COMM;
    let mut arriving = Vec::new();
    for peer in (0..ranks).filter(|&peer| peer != rank) {
        let buffer = host.alloc(size)?;
        let (start, match_bits, ct) = (buffer.address(), peer.into(), Some(counter));
        let me = Me { start, length: size, match_bits, options, ct, ..Me::default() };
        let appending = portals.me_append(PT, me, List::Priority).await?;
        portals.appended(appending).await?;
        arriving.push((peer, buffer));
    }
    host.barrier().await;
    for peer in (0..ranks).filter(|&peer| peer != rank) {
        let buffer = host.alloc(size)?;
        buffer.write(0, &vec![byte(rank, peer); size as usize]);
        let options = MdOptions::EVENT_SEND_DISABLE;
        let md = portals.md_bind(Md { start: buffer.address(), length: size, options, ..Md::default() })?;
        portals.put(&PutRequest::new(md, size, NodeId(peer), PT, rank.into())).await?;
    }
    portals.ct_wait(counter, u64::from(ranks) - 1).await?;
    for (peer, buffer) in arriving {
        if buffer.read(0, size).iter().any(|&found| found != byte(peer, rank)) {
            return Err(Error::Program(format!("rank {rank} has wrong bytes from rank {peer}")));
        }
    }
    Ok(host.now())
}

fn exchange_all(topology: &str, nodes: u32, shards: usize, overrides: &[&str]) -> (Run, Vec<Time>) {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.into()).collect();
    let card = cards::load("spin-discrete", &overrides).unwrap();
    let topology = topology.parse::<Topology>().unwrap();
    let mut cluster =
        Cluster::new(ClusterConfig { topology, shards, ..ClusterConfig::new(nodes, card) }).unwrap();
    let ends = Rc::new(RefCell::new(vec![Time::ZERO; nodes as usize]));
    for rank in 0..nodes {
        let ends = ends.clone();
        cluster.program(rank, |host| async move {
            let end = exchange(host, 9000).await?;
            ends.borrow_mut()[rank as usize] = end;
            Ok(())
        });
    }
    let run = cluster.run().unwrap();
    let ends = ends.borrow().clone();
    (run, ends)
}

#[test]
fn all_to_all_is_the_same_in_any_number_of_shards() {
    for topology in ["fat-tree:4", "fat-tree:4:hash", "fat-tree:6:2"] {
        for overrides in [&[][..], &["switch.buffer=1", "buffer.packets=1"]] {
            let one = exchange_all(topology, 9, 1, overrides);
            for port in &one.0.network.hosts {
                // A message of 9000 B has 3 packets.
                assert_eq!((port.received_packets, port.sent_packets), (24, 24));
            }
            for shards in [2, 9] {
                assert_eq!(exchange_all(topology, 9, shards, overrides), one, "{shards} shards, {topology}");
            }
        }
    }
}
