//! Tests clusters on networks with faults. With reliable transport, no message may be lost, duplicated or damaged, for
//! any topology and number of shards. After a permanent failure, the run's error must name the failed part.

use nicety::spin::Report;
use nicety::{
    Cluster, ClusterConfig, Error, FaultStatistics, Faults, Host, LinkFaults, NodeFailure, Outage, Place,
    Rates, Run, Topology, cards, faults,
};
use nicety_portals::{EventKind, List, Md, MdOptions, Me, MeOptions, PutRequest, Source};
use nicety_types::{Duration, NodeId, Time};
use proptest::prelude::*;

const PT: u32 = 1;
/// Bytes of buffer for each message at its target.
const ROOM: u64 = 10_000;

/// A message: its source and target, its length, and the sender's delay before the send.
#[derive(Clone, Copy, Debug)]
struct Message {
    from: u32,
    to: u32,
    len: u64,
    pause_ns: u64,
}

#[derive(Clone, Debug)]
struct Scenario {
    topology: Topology,
    nodes: u32,
    messages: Vec<Message>,
    faults: Faults,
    overrides: Vec<String>,
}

fn cluster(
    nodes: u32,
    topology: Topology,
    overrides: &[String],
    faults: &Faults,
    shards: usize,
) -> Result<Cluster, Error> {
    let card = cards::load("spin-discrete", overrides)?;
    let faults = faults.clone();
    Cluster::new(ClusterConfig { topology, shards, faults, ..ClusterConfig::new(nodes, card) })
}

fn content(from: u32, number: u64, len: u64) -> Vec<u8> {
    (0..len)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 7) as u8 ^ (from as u8) ^ (number as u8) << 3)
        .collect()
}

/// The program of a rank: it sends its messages, and checks that messages arrive in order.
async fn exchange(host: Host, messages: Vec<Message>) -> Result<(), Error> {
    let rank = host.rank();
    let portals = host.portals()?;
    let events = portals.eq_alloc(1024)?;
    portals.pt_alloc(Some(PT), Some(events))?;
    let between = |from: u32, to: u32| {
        messages.iter().filter(move |m| m.from == from && m.to == to).copied().collect::<Vec<_>>()
    };
    let mut memories = Vec::new();
    for from in (0..host.ranks()).filter(|&from| from != rank) {
        let memory = host.alloc((between(from, rank).len() as u64).max(1) * ROOM)?;
        let me = Me {
            start: memory.address(),
            length: memory.len(),
            match_bits: from.into(),
            source: Source::Rank(NodeId(from)),
            options: MeOptions::OP_PUT | MeOptions::EVENT_LINK_DISABLE,
            ..Me::default()
        };
        let appending = portals.me_append(PT, me, List::Priority).await?;
        portals.appended(appending).await?;
        memories.push((from, memory, 0));
    }
    host.barrier().await;
    let mut counts = vec![0; host.ranks() as usize];
    for message in messages.iter().filter(|m| m.from == rank) {
        let number = counts[message.to as usize];
        counts[message.to as usize] += 1;
        host.compute(Duration::from_ns(message.pause_ns)).await;
        let buffer = host.alloc(message.len)?;
        buffer.write(0, &content(rank, number, message.len));
        let options = MdOptions::EVENT_SEND_DISABLE;
        let md =
            portals.md_bind(Md { start: buffer.address(), length: message.len, options, ..Md::default() })?;
        let put = PutRequest {
            remote_offset: number * ROOM,
            hdr_data: number,
            ..PutRequest::new(md, message.len, NodeId(message.to), PT, rank.into())
        };
        portals.put(&put).await?;
    }
    let incoming = messages.iter().filter(|m| m.to == rank).count();
    for _ in 0..incoming {
        let event = portals.eq_wait(events, |e| e.kind == EventKind::Put, || "a message".to_string()).await?;
        let from = event.initiator.0;
        let (_, memory, next) = memories.iter_mut().find(|(rank, ..)| *rank == from).unwrap();
        let expected = between(from, rank)[*next as usize];
        assert_eq!((event.hdr_data, event.rlength, event.mlength), (*next, expected.len, expected.len));
        assert!(memory.read(*next * ROOM, expected.len) == content(from, *next, expected.len));
        *next += 1;
    }
    Ok(())
}

fn run(scenario: &Scenario, shards: usize) -> Result<Run, Error> {
    let Scenario { topology, nodes, messages, faults, overrides } = scenario;
    let mut cluster = cluster(*nodes, *topology, overrides, faults, shards)?;
    for rank in 0..*nodes {
        let messages = messages.clone();
        cluster.program(rank, |host| exchange(host, messages));
    }
    cluster.run()
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let shape = prop_oneof![
        Just(("pair", 2)),
        (2u32..6).prop_map(|nodes| ("star", nodes)),
        (3u32..9).prop_map(|nodes| ("fat-tree:4", nodes)),
        (2u32..7).prop_map(|nodes| ("torus", nodes)),
    ];
    let rate = || prop_oneof![2 => Just(0.0), 3 => 0.0..0.08f64, 1 => 0.0..0.3f64];
    let rates = (rate(), rate(), rate(), rate(), 0u64..10_000_000, prop_oneof![Just(0.0), 1.0..6.0f64]);
    let rates = rates.prop_map(|(loss, corruption, duplication, reordering, delay, burst)| Rates {
        loss,
        corruption,
        duplication,
        reordering,
        delay: Duration::from_ps(delay),
        burst,
    });
    let message = (any::<u32>(), any::<u32>(), prop_oneof![Just(0), Just(8), 1..ROOM], 0u64..5000);
    let card = (prop_oneof![1u32..4, Just(64)], 1u64..40, 1u32..5, prop_oneof![Just(512), Just(4096)]);
    // A host, an interval in which the host's link is down, and the numbers of packets that this link loses.
    let script = (0u32..2, prop::option::of((0u64..60, 1u64..60)), prop::collection::vec(1u64..40, 0..6));
    (shape, rates, any::<u64>(), prop::collection::vec(message, 1..12), card, script).prop_map(
        |((name, nodes), rates, seed, messages, (window, timeout, buffer, packet), (host, down, drop))| {
            let message = |(from, step, len, pause_ns): (u32, u32, u64, u64)| {
                let from = from % nodes;
                Message { from, to: (from + 1 + step % (nodes - 1)) % nodes, len, pause_ns }
            };
            let outage = |(from, length)| Outage {
                from: Time::ZERO + Duration::from_us(20 + from),
                until: Some(Time::ZERO + Duration::from_us(20 + from + length)),
            };
            // In the fat tree of four-port switches, each leaf switch has two hosts, in the order of ranks.
            let switch = match name {
                // Ranks 0 and 1 are neighbours in every torus.
                "pair" | "torus" => Place::Host(1 - host),
                _ => Place::Switch(0),
            };
            let (from, down) = (Place::Host(host), down.map(outage).into_iter().collect());
            let links = vec![LinkFaults { from, to: switch, rates, down, drop }];
            Scenario {
                topology: name.parse().unwrap(),
                nodes,
                messages: messages.into_iter().map(message).collect(),
                faults: Faults { seed, rates, links, nodes: vec![] },
                overrides: vec![
                    "transport.reliable=true".into(),
                    "transport.retries=100000".into(),
                    format!("transport.window={window}"),
                    format!("transport.timeout={timeout} us"),
                    format!("switch.buffer={buffer}"),
                    format!("buffer.packets={buffer}"),
                    format!("packet.payload={packet} B"),
                    "barrier.latency=10 us".into(),
                ],
            }
        },
    )
}

proptest! {
    #[test]
    fn no_schedule_of_faults_loses_doubles_or_damages_anything(scenario in scenario(), shards in 2usize..5) {
        let one = run(&scenario, 1).unwrap();
        for (node, rank) in one.nodes.iter().zip(0..) {
            let incoming = scenario.messages.iter().filter(|m| m.to == rank);
            prop_assert_eq!(node.of::<Report>().portals.matched, incoming.clone().count() as u64, "each message once");
            prop_assert_eq!(node.of::<Report>().portals.dropped_total(), 0);
            prop_assert_eq!(node.memory.written, incoming.map(|m| m.len).sum::<u64>(), "every byte once");
        }
        prop_assert_eq!(run(&scenario, shards).unwrap(), one);
    }
}

fn reliable() -> Vec<String> {
    vec!["transport.reliable=true".into(), "transport.timeout=10 us".into()]
}

fn one_message(topology: &str, nodes: u32, overrides: Vec<String>, faults: Faults) -> Result<Run, Error> {
    let messages = vec![Message { from: 0, to: 1, len: 5000, pause_ns: 0 }];
    run(&Scenario { topology: topology.parse().unwrap(), nodes, messages, faults, overrides }, 1)
}

#[test]
fn a_node_that_fails_is_named_with_what_it_did_not_get() {
    let nodes = vec![NodeFailure { node: Place::Host(1), at: Time::ZERO + Duration::from_us(20) }];
    let faults = Faults { nodes, ..Faults::default() };
    let error = one_message("star", 3, reliable(), faults.clone()).unwrap_err();
    assert!(matches!(error, Error::Undelivered(_)) && error.exit_status() == 1);
    let text = error.to_string();
    assert!(
        text.starts_with("hosts.1 is down from 20 us on; 1 message was not delivered\n    message "),
        "{text}"
    );
    assert!(text.contains(" of rank 0 to rank 1: 5000 B not acknowledged, given up at "), "{text}");
    assert!(text.contains("so that there was a deadlock at ") && text.contains("rank 1"), "{text}");
    // Without reliable transport, the error names the lost packets.
    let text = one_message("star", 3, vec![], faults).unwrap_err().to_string();
    assert!(
        text.starts_with(
            "hosts.1 is down from 20 us on; 2 packets were not delivered and not retransmitted: "
        ),
        "{text}"
    );
    assert!(text.contains(", bytes 4096 to 4999, lost on switch.0 -> hosts.1 at "), "{text}");
}

#[test]
fn a_link_that_comes_back_costs_time_and_one_that_does_not_ends_the_run() {
    let down = |text: &str| faults::parse(text).unwrap();
    let run = one_message("pair", 2, reliable(), down("fail=hosts.0<->hosts.1@0us..60us")).unwrap();
    // The barrier ends at 20 us. The packet is lost at 20 us, 30 us and 50 us. The transmission at 90 us arrives.
    assert_eq!(run.nodes[0].of::<Report>().transport.timeouts, 3);
    assert!(run.end > Time::ZERO + Duration::from_us(90));
    let error =
        one_message("pair", 2, reliable(), down("fail=hosts.0->hosts.1@0us")).unwrap_err().to_string();
    assert!(
        error.starts_with("the link hosts.0 -> hosts.1 is down from 0 ns on; 1 message was not delivered"),
        "{error}"
    );
}

#[test]
fn a_deadlock_on_a_network_that_loses_packets_says_so() {
    let lossy = faults::parse("loss=1").unwrap();
    let error = one_message("pair", 2, vec![], lossy).unwrap_err();
    assert!(matches!(error, Error::Deadlock(_)));
    let text = error.to_string();
    assert!(text.contains("note: of the packets, the network lost 2; "), "{text}");
    assert!(text.contains("transport.reliable=true\n    message "), "{text}");
    assert!(text.contains("lost on hosts.0 -> hosts.1 at "), "{text}");
    // With reliable transport on a network that delivers no packet, the error names the cause.
    let lossy = faults::parse("loss=1").unwrap();
    let text = one_message("pair", 2, reliable(), lossy).unwrap_err().to_string();
    let head = "the network lost too many packets in a row (transport.retries is the limit): ";
    assert!(text.starts_with(head) && text.contains(" lost by chance; 1 message was"), "{text}");
}

/// The error does not blame an outage for other losses.
#[test]
fn the_cause_that_is_named_is_that_of_the_lost_packets() {
    let fails = |overrides: Vec<String>, faults: &str, messages: u64| {
        let messages = (0..messages).map(|_| Message { from: 0, to: 1, len: 8, pause_ns: 5000 }).collect();
        let (topology, faults) = ("pair".parse().unwrap(), faults::parse(faults).unwrap());
        run(&Scenario { topology, nodes: 2, messages, faults, overrides }, 1).unwrap_err().to_string()
    };
    let retries = |retries: u32| [reliable(), vec![format!("transport.retries={retries}")]].concat();
    // The outage loses the first message, but its retransmission arrives. Then random losses take all transmissions of
    // another message.
    let text = fails(retries(2), "loss=0.4,seed=3,fail=hosts.0->hosts.1@0us..26us", 40);
    let outage = "the link hosts.0 -> hosts.1 is down";
    assert!(text.starts_with("the network lost too many packets in a row"), "{text}");
    assert!(text.contains(" lost by chance; ") && !text.contains(outage), "{text}");
    // If outage and random losses both contributed, the error has both, with their numbers of packets.
    let text = fails(retries(3), "loss=0.95,seed=3,fail=hosts.0->hosts.1@0us..26us", 1);
    assert!(
        text.contains(" lost by chance, 1 since the link hosts.0 -> hosts.1 is down from 0 ns to 26 us; "),
        "{text}"
    );
    // Reliable transport treats damaged packets as lost.
    let text = fails(retries(2), "corrupt=1", 1);
    assert!(text.starts_with("the network damaged too many packets in a row"), "{text}");
    assert!(text.contains(": 3 damaged; 1 message was not delivered"), "{text}");
}

/// Sends messages of eight bytes without reliable transport. Rank 1 receives the messages that arrive.
fn poured(faults: &str, messages: u64) -> Result<Run, Error> {
    let faults = faults::parse(faults).unwrap();
    let mut cluster = cluster(2, Topology::Pair, &[], &faults, 1)?;
    let messages = (0..messages).map(|_| Message { from: 0, to: 1, len: 8, pause_ns: 0 }).collect();
    cluster.program(0, |host| exchange(host, messages));
    cluster.program(1, |host| exchange(host, vec![]));
    cluster.run()
}

#[test]
fn without_transport_every_cause_is_told_with_how_much() {
    let text = poured("loss=0.5,seed=2,fail=hosts.0->hosts.1@0us..21us", 10).unwrap_err().to_string();
    assert!(
        text.contains(" packets were not delivered and not retransmitted (transport.reliable is false): "),
        "{text}"
    );
    let outage = " since the link hosts.0 -> hosts.1 is down from 0 ns to 21 us";
    assert!(text.contains(" lost by chance") && text.contains(outage), "{text}");
    let text = poured("fail=hosts.0->hosts.1@0us..21us", 10).unwrap_err().to_string();
    assert!(text.starts_with("the link hosts.0 -> hosts.1 is down from 0 ns to 21 us; "), "{text}");
}

/// A failed link is reported even after many random losses.
#[test]
fn a_failure_behind_many_losses_ends_the_run() {
    let error = poured("loss=0.9,fail=hosts.0->hosts.1@30us", 400).unwrap_err();
    assert!(matches!(error, Error::Undelivered(_)), "{error}");
    assert!(
        error.to_string().contains(" since the link hosts.0 -> hosts.1 is down from 30 us on"),
        "{error}"
    );
}

#[test]
fn faults_are_those_of_links_that_exist() {
    let wrong = |text: &str| {
        let faults = faults::parse(text).unwrap();
        match cluster(3, "star".parse().unwrap(), &[], &faults, 1) {
            Err(Error::Input(text)) => text,
            _ => panic!("{text} was taken"),
        }
    };
    assert_eq!(
        wrong("fail=hosts.0->hosts.1@1us"),
        "faults: no link hosts.0 -> hosts.1; hosts.0 has links to switch.0"
    );
    assert_eq!(
        wrong("fail=hosts.3@1us"),
        "faults: there is no hosts.3; there are hosts.0 to hosts.2, and switch.0"
    );
}

#[test]
fn faults_of_one_link_are_counted_there() {
    let text =
        "seed = 3\n[[link]]\nname = 'switch.0 -> hosts.1'\nloss = 0.3\ncorrupt = 0.1\nduplicate = 0.2\n";
    let faults = faults::parse(text).unwrap();
    let messages: Vec<Message> =
        (0..40).map(|_| Message { from: 0, to: 1, len: 5000, pause_ns: 0 }).collect();
    let overrides = reliable();
    let scenario = Scenario { topology: Topology::Star, nodes: 3, messages, faults, overrides };
    let run = run(&scenario, 1).unwrap();
    let [FaultStatistics { from, to, packets, lost, corrupted, duplicated, reordered, .. }] =
        run.network.faults.as_slice()
    else {
        panic!("{:?}", run.network.faults)
    };
    assert_eq!((*from, *to, *reordered), (Place::Switch(0), Place::Host(1), 0));
    assert!(*packets > 80 && *lost > 10 && *corrupted > 2 && *duplicated > 5, "{:?}", run.network.faults);
    let [sender, receiver] = [0, 1].map(|rank: usize| run.nodes[rank].of::<Report>().transport);
    assert!(sender.retransmitted >= *lost + *corrupted && receiver.corrupted == *corrupted);
    assert!(receiver.acknowledgements > 0 && receiver.refusals > 0);
    assert_eq!(run.nodes[2].of::<Report>().transport, Default::default());
}
