//! A star of sPIN cards: the worked example of the documentation, exact to the picosecond, and invalid topologies.

use nicety::{Cluster, ClusterConfig, Environment, Error, Host, Run, Topology, cards};
use nicety_bench::{Benchmark, Report, Request, run};
use nicety_portals::{List, Md, MdOptions, Me, MeOptions, PutRequest};
use nicety_types::{NodeId, Time};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

fn latency(topology: &str, sizes: &[u64], overrides: &[&str]) -> Result<Report, Error> {
    let request = serde_json::json!({
        "benchmark": "latency",
        "nics": ["spin-discrete"],
        "modes": ["rdma"],
        "sizes": sizes,
        "iterations": 3,
        "overrides": overrides,
        "topology": topology,
    });
    let request = Request::from_json(&request.to_string())?;
    assert_eq!(request.benchmark, Benchmark::Latency);
    let environment =
        Environment { log: Arc::new(|line| panic!("nothing prints: {line}")), ..Environment::default() };
    run(&request, &environment)
}

fn measured(topology: &str, size: u64) -> (f64, Vec<(&'static str, f64)>) {
    let report = latency(topology, &[size], &[]).unwrap();
    assert_eq!(report.manifest.topology, topology);
    let row = &report.rows[0];
    let stages = row.stages.as_ref().unwrap().iter().map(|s| (s.stage, s.ns)).collect();
    (row.latency_ns.unwrap(), stages)
}

#[test]
fn a_switch_adds_its_latency_and_a_link_s_and_no_serialisation() {
    let (ns, stages) = measured("star", 8);
    // In ns: post 65, bus 250, first link 0.160 + 33.4, switch 50, second link 33.4, matching 30, deposit 0.125 + 250,
    // notice 65.
    assert_eq!(ns, 777.085);
    assert_eq!(
        stages,
        [
            ("post", 65.0),
            ("bus", 250.0),
            ("link", 66.96),
            ("switch", 50.0),
            ("match", 30.0),
            ("deposit", 250.125),
            ("notice", 65.0)
        ]
    );
    for size in [0, 8, 4096, 4097, 65_536, 1 << 20] {
        let added_ps = ((measured("star", size).0 - measured("pair", size).0) * 1e3).round();
        assert_eq!(added_ps, 83_400.0, "{size} B");
    }
}

#[test]
fn a_message_of_many_packets_streams_through_a_switch() {
    let (ns, stages) = measured("star", 65_536);
    // In ns: post 65, bus 250, first link 1310.72 + 33.4, switch 50, second link 33.4, matching 2, deposit 63.898 + 250,
    // notice 65. The first link is the slowest part, so the other parts count only for the last packet.
    assert_eq!(ns, 2123.418);
    assert_eq!(
        stages,
        [
            ("post", 65.0),
            ("bus", 250.0),
            ("link", 1377.52),
            ("switch", 50.0),
            ("match", 2.0),
            ("deposit", 313.898),
            ("notice", 65.0)
        ]
    );
}

#[test]
fn a_small_buffer_costs_time_and_loses_nothing() {
    // The switch has room for one packet. A packet's place is free after 50 + 81.92 ns. Its credit returns after 33.4 ns, and
    // the head of the next packet arrives after another 33.4 ns. So a packet takes 198.72 ns instead of 81.92 ns.
    let report = latency("star", &[65_536], &["switch.buffer=1"]).unwrap();
    let slow = report.rows[0].latency_ns.unwrap();
    assert_eq!(slow, 2123.418 + 15.0 * (198.72 - 81.92));
    assert!(report.rows[0].verified);
}

fn star(nodes: u32, shards: usize, overrides: &[&str]) -> Result<Cluster, Error> {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.into()).collect();
    let card = cards::load("spin-discrete", &overrides)?;
    let topology = "star".parse::<Topology>()?;
    Cluster::new(ClusterConfig { topology, shards, ..ClusterConfig::new(nodes, card) })
}

const PT: u32 = 1;

/// Every rank sends a message to every other rank at the same time, and checks the received messages. Returns the time at the
/// end.
async fn exchange(host: Host, size: u64) -> Result<Time, Error> {
    let (rank, ranks) = (host.rank(), host.ranks());
    let byte = |from: u32, to: u32| (from * 31 + to + 1) as u8;
    let peers = || (0..ranks).filter(move |&peer| peer != rank);
    let portals = host.portals()?;
    let counter = portals.ct_alloc()?;
    portals.pt_alloc(Some(PT), None)?;
    let options = MeOptions::OP_PUT
        | MeOptions::EVENT_COMM_DISABLE
        | MeOptions::EVENT_LINK_DISABLE
        | MeOptions::EVENT_CT_COMM;
    let mut arriving = Vec::new();
    for peer in peers() {
        let buffer = host.alloc(size)?;
        let me = Me {
            start: buffer.address(),
            length: size,
            match_bits: peer.into(),
            options,
            ct: Some(counter),
            ..Me::default()
        };
        let appending = portals.me_append(PT, me, List::Priority).await?;
        portals.appended(appending).await?;
        arriving.push((peer, buffer));
    }
    host.barrier().await;
    for peer in peers() {
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

fn exchange_all(nodes: u32, shards: usize, size: u64, overrides: &[&str]) -> (Run, Vec<Time>) {
    let mut cluster = star(nodes, shards, overrides).unwrap();
    let ends = Rc::new(RefCell::new(vec![Time::ZERO; nodes as usize]));
    for rank in 0..nodes {
        let ends = ends.clone();
        cluster.program(rank, |host| async move {
            let end = exchange(host, size).await?;
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
    for overrides in [&[][..], &["switch.buffer=1", "buffer.packets=1"], &["link.header=64 B"]] {
        let one = exchange_all(7, 1, 9000, overrides);
        let switch = &one.0.network.switches[0];
        assert_eq!(switch.node, NodeId(7));
        // A message of 9000 B has 3 packets. Each port receives the packets of 6 messages, and sends those of 6 messages.
        for port in &switch.ports {
            assert_eq!((port.received_packets, port.sent_packets), (18, 18));
        }
        for shards in [2, 3, 8, 20] {
            assert_eq!(exchange_all(7, shards, 9000, overrides), one, "{shards} shards, {overrides:?}");
        }
    }
}

#[test]
fn impossible_combinations_name_a_remedy() {
    let refused = |nodes, overrides: &[&str]| match star(nodes, 1, overrides) {
        Err(Error::Input(text)) => text,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("{nodes} nodes were joined"),
    };
    assert_eq!(refused(1, &[]), "a star has 2 nodes at least, not 1; write nodes = 2 or more");
    assert_eq!(
        refused(37, &[]),
        "a star of 37 nodes needs a switch of 37 ports, but switch.ports is 36; write nodes = 36 or fewer, or set \
         switch.ports=37, or topology fat-tree"
    );
    assert!(star(37, 1, &["switch.ports=37"]).is_ok());
    assert!(star(36, 1, &[]).is_ok());
    let wrong = latency("stra", &[8], &[]).unwrap_err();
    assert_eq!(
        wrong,
        Error::Input(
            "no topology 'stra'; there are: pair, star, fat-tree, torus, ring, alone; did you mean star?"
                .into()
        )
    );
    assert!(matches!(refused(2, &["switch.buffer=0"]), text if text.contains("switch.buffer")));
}
