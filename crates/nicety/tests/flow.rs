//! Tests clusters with switches without credits. If the cards do not retransmit, lost packets end the run with an error
//! that names these packets. With reliable transport, the run continues. Ports that pause each other in a circle are a
//! deadlock.

use nicety::report::RunReport;
use nicety::spin::Report;
use nicety::{Cluster, ClusterConfig, Error, Host, Place, Run, cards, flow};

/// The number of messages from each other rank to rank 0.
const MESSAGES: u64 = 6;

/// Every rank except rank 0 sends messages of `bytes` bytes to rank 0, which waits for all of them.
async fn incast(host: Host, bytes: u64) -> Result<(), Error> {
    let content = |rank: u32| vec![rank as u8; bytes as usize];
    if host.rank() > 0 {
        let buffer = host.alloc(bytes)?;
        buffer.write(0, &content(host.rank()));
        host.barrier().await;
        for tag in 0..MESSAGES {
            host.send(&buffer, 0, tag).await?;
        }
        return Ok(());
    }
    let mut posted = Vec::new();
    for rank in 1..host.ranks() {
        for tag in 0..MESSAGES {
            let buffer = host.alloc(bytes)?;
            let receive = host.post_recv(&buffer, Some(rank), Some(tag)).await?;
            posted.push((rank, buffer, receive));
        }
    }
    host.barrier().await;
    for (rank, buffer, receive) in posted {
        assert_eq!(host.received(receive).await?.length, bytes);
        assert!(buffer.read(0, bytes) == content(rank));
    }
    Ok(())
}

struct Shape<'s> {
    card: &'s str,
    nodes: u32,
    topology: &'s str,
    flow: &'s str,
    overrides: &'s [&'s str],
}

fn cluster(shape: &Shape<'_>, shards: usize) -> Result<Cluster, Error> {
    let overrides: Vec<String> = shape.overrides.iter().map(|&text| text.to_owned()).collect();
    Cluster::new(ClusterConfig {
        topology: shape.topology.parse()?,
        flow_control: flow::parse(shape.flow)?,
        shards,
        ..ClusterConfig::new(shape.nodes, cards::load(shape.card, &overrides)?)
    })
}

fn run(shape: &Shape<'_>, bytes: u64, shards: usize) -> Result<Run, Error> {
    let mut cluster = cluster(shape, shards)?;
    (0..shape.nodes).for_each(|rank| cluster.program(rank, |host| incast(host, bytes)));
    cluster.run()
}

const RELIABLE: &[&str] = &["transport.reliable=true", "transport.timeout=20 us", "transport.retries=100"];

#[test]
fn a_card_without_recovery_ends_the_run_and_names_switch_port_and_packets() {
    let (pages, frames) = ("none,buffer=12Ki", "none,buffer=2Ki");
    for (card, flow) in
        [("spin-discrete", pages), ("apenet-v5", pages), ("qnix", pages), ("nfp-4000", frames)]
    {
        let shape = Shape { card, nodes: 6, topology: "star", flow, overrides: &[] };
        let error = run(&shape, 4_000, 1).unwrap_err();
        assert!(matches!(error, Error::Undelivered(_)) && error.exit_status() == 1, "{card}: {error}");
        let text = error.to_string();
        assert!(text.contains(" packets were not delivered and not retransmitted ("), "{card}: {text}");
        assert!(
            text.contains(" dropped by switch.0, with no room before its port 0 to hosts.0"),
            "{card}: {text}"
        );
        assert!(text.contains("dropped by switch.0 at "), "{card}: {text}");
    }
}

#[test]
fn reliable_transport_makes_up_for_drops_and_they_are_counted() {
    let shape = Shape {
        card: "spin-discrete",
        nodes: 6,
        topology: "star",
        flow: "none,buffer=32Ki,per=shared,alpha=1/2",
        overrides: RELIABLE,
    };
    let one = run(&shape, 4_000, 1).unwrap();
    assert_eq!(run(&shape, 4_000, 3).unwrap(), one);
    let dropped: u64 = one.network.queues.iter().map(|queue| queue.dropped_packets).sum();
    assert!(dropped > 0);
    let retransmitted: u64 = one.nodes.iter().map(|node| node.of::<Report>().transport.retransmitted).sum();
    assert!(retransmitted >= dropped, "{retransmitted} {dropped}");
    let report = RunReport::of(&one);
    assert_eq!(report.ports.len(), 12);
    let port = &report.ports[6];
    assert_eq!((port.at.as_str(), port.port, port.peer.as_str()), ("switch.0", 0, "hosts.0"));
    assert_eq!((port.dropped_packets, port.reason.as_str()), (dropped, "queue full"));
    assert_eq!(one.network.queues[6].at, Place::Switch(0));
    // With credits, the network has no counters of ports.
    let credits = run(&Shape { flow: "credits", ..shape }, 4_000, 1).unwrap();
    assert!(credits.network.queues.is_empty() && RunReport::of(&credits).ports.is_empty());
}

#[test]
fn tcp_sends_again_what_a_switch_has_dropped() {
    // The CPUs sustain line rate.
    let fast = &["threads.cycles_per_instruction=1"];
    let shape =
        Shape { card: "niagara2-niu", nodes: 6, topology: "star", flow: "none,buffer=8Ki", overrides: fast };
    let run = run(&shape, 20_000, 1).unwrap();
    let dropped: u64 = run.network.queues.iter().map(|queue| queue.dropped_packets).sum();
    assert!(dropped > 0);
}

#[test]
fn a_message_that_transport_gives_up_says_what_dropped_its_packets() {
    // The buffer has room for one long packet. Acknowledgements that arrive together with it are dropped, too.
    let few = &["transport.reliable=true", "transport.timeout=2 us", "transport.retries=1"];
    let shape =
        Shape { card: "spin-discrete", nodes: 8, topology: "star", flow: "none,buffer=5Ki", overrides: few };
    let text = run(&shape, 4_000, 1).unwrap_err().to_string();
    assert!(
        text.starts_with("the network lost too many packets in a row (transport.retries is the limit)"),
        "{text}"
    );
    assert!(text.contains("dropped by switch.0, with no room before its port 0 to hosts.0; "), "{text}");
}

#[test]
fn with_pauses_every_card_gets_everything() {
    let cards = [
        ("spin-discrete", 40_000, 16),
        ("apenet-v5", 4_000, 16),
        ("qnix", 4_000, 16),
        ("nfp-4000", 4_000, 6),
    ];
    for (card, bytes, ki) in cards {
        for flow in [format!("pfc,buffer={ki}Ki"), "pfc,buffer=1Mi,per=shared,alpha=1/512".to_owned()] {
            let shape = Shape { card, nodes: 6, topology: "star", flow: &flow, overrides: &[] };
            let run = run(&shape, bytes, 1).unwrap_or_else(|error| panic!("{card}, {flow}: {error}"));
            assert!(run.network.queues.iter().all(|queue| queue.dropped_packets == 0));
            let pauses: u64 = run.network.queues.iter().map(|queue| queue.pauses_sent).sum();
            assert!(pauses > 1, "{card}, {flow}");
        }
    }
}

/// Each rank posts a message to the opposite rank. If `waits` is true, it then waits for the message of that rank.
async fn opposite(host: Host, waits: bool) -> Result<(), Error> {
    let (bytes, peer) = (400_000, (host.rank() + host.ranks() / 2) % host.ranks());
    let (out, back) = (host.alloc(bytes)?, host.alloc(bytes)?);
    let posted = host.post_recv(&back, Some(peer), Some(1)).await?;
    host.barrier().await;
    host.send(&out, peer, 1).await?;
    if waits {
        host.received(posted).await?;
    }
    Ok(())
}

#[test]
fn a_ring_of_pauses_is_a_deadlock_that_names_its_ports() {
    let shape = Shape {
        card: "spin-discrete",
        nodes: 4,
        topology: "ring:4",
        flow: "pfc,buffer=24Ki",
        overrides: &[],
    };
    for waits in [true, false] {
        let mut cluster = cluster(&shape, 2).unwrap();
        (0..4).for_each(|rank| cluster.program(rank, |host| opposite(host, waits)));
        let error = cluster.run().unwrap_err();
        assert!(matches!(error, Error::Deadlock(_)) && error.exit_status() == 1, "{error}");
        let text = error.to_string();
        assert!(text.contains("note: ports pause one another in a cycle"), "{text}");
        for (at, peer) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
            assert!(text.contains(&format!("switch.{at} port 1 (paused by switch.{peer}) -> ")), "{text}");
        }
    }
}

#[test]
fn impossible_settings_are_refused_before_the_run() {
    let refused = |topology, flow| {
        let nodes = if topology == "pair" { 2 } else { 4 };
        let shape = Shape { card: "spin-discrete", nodes, topology, flow, overrides: &[] };
        match cluster(&shape, 1) {
            Err(Error::Input(text)) => text,
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("{topology} with {flow} was built"),
        }
    };
    assert!(refused("pair", "none").contains("this topology has no switches; write topology star"));
    assert!(refused("torus:2x2", "pfc").contains("this topology has no switches"));
    assert!(refused("star", "none,buffer=1Ki").contains("no room for a packet of 4096 B; write buffer=4096"));
    assert!(refused("star", "pfc,buffer=8Ki").contains("in addition to a headroom of "));
    assert!(refused("star", "pfc,buffer=1Mi,xoff=2Mi").contains("xoff=2097152 is above the buffer"));
}
