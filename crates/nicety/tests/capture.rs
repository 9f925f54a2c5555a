//! Tests that captures contain the packets of links, in files that other tools can read.

use nicety::{Capture, Cluster, ClusterConfig, Error, Faults, Host, Rates, Run, Topology, cards};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// A packet from a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Packet {
    link: String,
    ns: u64,
    comment: String,
    bytes: Vec<u8>,
    length: u32,
}

/// The contents of a capture file.
#[derive(Debug, Default)]
struct Read {
    /// The name, the description and the link type of each link.
    links: Vec<(String, String, DataLink)>,
    packets: Vec<Packet>,
    /// For each link, the number of its packets, and the number of packets that are not in the file.
    statistics: Vec<(u64, u64)>,
}

/// A file of one test, which is removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("nicety-capture-{}-{name}.pcapng", std::process::id())))
    }

    fn read(&self) -> Read {
        read(&self.0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn read(path: &Path) -> Read {
    let bytes = std::fs::read(path).unwrap();
    let (mut reader, mut read) = (PcapNgReader::new(&*bytes).unwrap(), Read::default());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(link) => {
                assert!(link.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                let text = |of: fn(&InterfaceDescriptionOption<'_>) -> Option<String>| {
                    link.options.iter().find_map(of).unwrap()
                };
                let name = text(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                });
                let description = text(|option| match option {
                    InterfaceDescriptionOption::IfDescription(text) => Some(text.to_string()),
                    _ => None,
                });
                read.links.push((name, description, link.linktype));
            }
            Block::EnhancedPacket(packet) => {
                let [EnhancedPacketOption::Comment(comment)] = &packet.options[..] else {
                    panic!("{packet:?}")
                };
                read.packets.push(Packet {
                    link: read.links[packet.interface_id as usize].0.clone(),
                    ns: packet.timestamp.as_nanos() as u64,
                    comment: comment.to_string(),
                    bytes: packet.data.to_vec(),
                    length: packet.original_len,
                });
            }
            Block::InterfaceStatistics(link) => {
                assert_eq!(link.interface_id as usize, read.statistics.len());
                let [
                    InterfaceStatisticsOption::IsbIfRecv(had),
                    InterfaceStatisticsOption::IsbIfDrop(left_out),
                ] = link.options[..]
                else {
                    panic!("{link:?}")
                };
                read.statistics.push((had, left_out));
            }
            other => panic!("{other:?}"),
        }
    }
    read
}

fn cluster(card: &str, nodes: u32, config: impl FnOnce(ClusterConfig) -> ClusterConfig) -> Cluster {
    let card = cards::load(card, &[]).unwrap();
    let topology = if nodes > 2 { Topology::Star } else { Topology::Pair };
    Cluster::new(config(ClusterConfig { topology, ..ClusterConfig::new(nodes, card) })).unwrap()
}

/// Rank 0 sends to rank 1, which answers.
async fn ping_pong(host: Host) -> Result<(), Error> {
    let (buffer, peer) = (host.alloc(8)?, 1 - host.rank());
    for turn in 0..2 {
        if turn == host.rank() {
            buffer.write(0, if turn == 0 { b"a packet" } else { b"answered" });
            host.send(&buffer, peer, 7).await?;
        } else {
            host.recv(&buffer, Some(peer), Some(7)).await?;
        }
    }
    Ok(())
}

fn run_ping_pong(card: &str, capture: &Capture) -> Result<Run, Error> {
    let mut cluster = cluster(card, 2, |config| ClusterConfig { capture: Some(capture.clone()), ..config });
    (0..2).for_each(|rank| cluster.program(rank, ping_pong));
    cluster.run()
}

/// Splits a packet with nicety's header. Returns the header, the bytes after it, and the numbers in the header.
fn split(bytes: &[u8]) -> (Vec<u8>, Vec<u8>, [u64; 7]) {
    let number =
        |at: usize, len: usize| bytes[at..at + len].iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
    assert_eq!((bytes[0], number(5, 3)), (1, 0));
    let numbers =
        [(1, 1), (4, 1), (8, 4), (12, 4), (16, 8), (24, 8), (32, 8)].map(|(at, len)| number(at, len));
    let (header, payload) = bytes[40..].split_at(number(2, 2) as usize);
    (header.to_vec(), payload.to_vec(), numbers)
}

#[test]
fn a_ping_pong_has_the_times_worked_by_hand() {
    let file = Scratch::new("ping-pong");
    run_ping_pong("spin-discrete", &Capture::to(&file.0).labelled("twice")).unwrap();
    let found = file.read();
    let description = "twice; 2 hosts with spin-discrete, topology pair, seed 1".to_owned();
    let link = |name: &str| (name.to_owned(), description.clone(), DataLink::USER0);
    assert_eq!(found.links, [link("hosts.0 -> hosts.1"), link("hosts.1 -> hosts.0")]);
    assert_eq!(found.statistics, [(1, 0), (1, 0)]);
    // The first packet follows the post and the bus. The second follows half a round trip, and another post and bus.
    let times = found.packets.iter().map(|p| (p.ns, p.comment.as_str())).collect::<Vec<_>>();
    assert_eq!(times, [(315, "315000 ps"), (1008, "1008685 ps")]);
    let (header, payload, numbers) = split(&found.packets[0].bytes);
    assert_eq!((payload.as_slice(), numbers), (&b"a packet"[..], [0, 0, 0, 1, 0, 0, 8]));
    assert_eq!(found.packets[0].length as usize, 40 + header.len() + 8);
    let (other, payload, numbers) = split(&found.packets[1].bytes);
    assert_eq!((payload.as_slice(), numbers), (&b"answered"[..], [0, 0, 1, 0, 1, 0, 8]));
    // The fields are the same as in a Portals put, but the source differs.
    assert_eq!(header.len(), other.len());
    assert!(header.len() > 20 && header != other);
}

#[test]
fn runs_go_into_one_file_and_a_new_capture_makes_it_anew() {
    let file = Scratch::new("several");
    let capture = Capture::to(&file.0);
    run_ping_pong("spin-discrete", &capture).unwrap();
    let first = std::fs::read(&file.0).unwrap();
    run_ping_pong("qnix", &capture.labelled("on another card")).unwrap();
    assert!(std::fs::read(&file.0).unwrap().starts_with(&first));
    let found = file.read();
    let names: Vec<&str> = found.links.iter().map(|link| link.0.as_str()).collect();
    let of = |run: &str| ["hosts.0 -> hosts.1", "hosts.1 -> hosts.0"].map(|link| format!("{link}{run}"));
    assert_eq!(names, [of(""), of(", run 2")].concat());
    assert_eq!(found.links[2].1, "on another card; 2 hosts with qnix, topology pair, seed 1");
    assert_eq!(found.statistics.len(), 4);
    run_ping_pong("spin-discrete", &Capture::to(&file.0)).unwrap();
    assert_eq!(std::fs::read(&file.0).unwrap(), first);
}

#[test]
fn every_card_can_be_captured_and_ports_of_ethernet_have_its_frames() {
    for card in ["spin-integrated", "nfp-4000", "apenet-v5", "niagara2-niu"] {
        let file = Scratch::new(card);
        run_ping_pong(card, &Capture::to(&file.0)).unwrap();
        let found = file.read();
        let sent = |packet: &&Packet| packet.bytes.windows(8).any(|bytes| bytes == b"a packet");
        let packet = found.packets.iter().find(sent).unwrap();
        if !["nfp-4000", "niagara2-niu"].contains(&card) {
            assert_eq!(found.links[0].2, DataLink::USER0, "{card}");
            continue;
        }
        assert_eq!(found.links[0].2, DataLink::ETHERNET);
        // A frame begins with the destination's MAC address, and has no frame check sequence.
        let queue = if card == "nfp-4000" { 255 } else { 0 };
        assert_eq!(packet.bytes[..12], [2, queue, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0]);
        assert_eq!(packet.bytes.len(), packet.length as usize);
        let length = u16::from_be_bytes([packet.bytes[12], packet.bytes[13]]);
        assert!(length >= 0x600 || usize::from(length) == packet.bytes.len() - 14, "{packet:?}");
    }
}

/// Returns the ports of an IPv4 TCP frame, behind its Ethernet header.
fn ports(frame: &[u8]) -> Option<(u16, u16)> {
    let half = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    (half(12) == 0x0800 && frame[23] == 6).then(|| (half(34), half(36)))
}

#[test]
fn connections_of_each_run_have_ports_of_their_own() {
    let file = Scratch::new("ports");
    let capture = Capture::to(&file.0);
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(run_ping_pong("niagara2-niu", &capture).unwrap().end);
    }
    assert!(runs.iter().all(|end| *end == runs[0]), "a capture changes no run");
    let found = file.read();
    let of_run = |run: usize| {
        let is_of = |link: &str| match link.split_once(", run ") {
            None => run == 0,
            Some((_, number)) => number == (run + 1).to_string(),
        };
        let packets = found.packets.iter().filter(|packet| is_of(&packet.link));
        let ports: std::collections::BTreeSet<u16> =
            packets.filter_map(|packet| ports(&packet.bytes)).map(|(a, b)| a.max(b)).collect();
        ports
    };
    let [first, second, third] = [0, 1, 2].map(of_run);
    assert!(!first.is_empty() && first.len() == second.len() && second.len() == third.len());
    assert!(first.is_disjoint(&second) && first.is_disjoint(&third) && second.is_disjoint(&third));
    let said = |run: usize| &found.links[2 * run].1;
    assert!(!said(0).contains("port"), "{}", said(0));
    assert!(said(1).contains(&format!("{} in this file", second.last().unwrap())), "{}", said(1));
}

#[test]
fn events_before_a_deadlock_are_in_the_file() {
    let file = Scratch::new("deadlock");
    let capture = Some(Capture::to(&file.0));
    let mut cluster = cluster("spin-discrete", 2, |config| ClusterConfig { capture, ..config });
    cluster.program(0, ping_pong);
    cluster.program(1, async |host| {
        let buffer = host.alloc(8)?;
        host.recv(&buffer, Some(0), Some(7)).await?;
        host.recv(&buffer, Some(0), Some(7)).await.map(drop)
    });
    assert!(matches!(cluster.run(), Err(Error::Deadlock(_))));
    assert_eq!(file.read().packets.len(), 1);
}

#[test]
fn a_file_that_cannot_be_written_fails_the_run() {
    let path = std::env::temp_dir().join("nicety-no-such-folder/x.pcapng");
    let Err(Error::Input(text)) = run_ping_pong("spin-discrete", &Capture::to(&path)) else { panic!() };
    assert_eq!(text, format!("{}: cannot write it (No such file or directory (os error 2))", path.display()));
}

#[test]
fn packets_beyond_the_memory_are_counted() {
    let file = Scratch::new("memory");
    let capture = Capture::to(&file.0).within(2 * 1000);
    for left_out in [16, 32] {
        let mut cluster =
            cluster("spin-discrete", 2, |config| ClusterConfig { capture: Some(capture.clone()), ..config });
        cluster.program(0, async |host| host.send(&host.alloc(64 << 10)?, 1, 7).await);
        cluster.program(1, async |host| host.recv(&host.alloc(64 << 10)?, Some(0), Some(7)).await.map(drop));
        let run = cluster.run().unwrap();
        assert_eq!(run.network.hosts[0].sent_packets, 16);
        assert_eq!(capture.left_out(), left_out);
    }
    let found = file.read();
    // Rank 1 sends only an acknowledgement, which fits into the memory for packets.
    assert_eq!(found.statistics, [(16, 16), (1, 0), (16, 16), (1, 0)]);
    assert_eq!(found.packets.len(), 2);
}

/// Sends random messages between the hosts of a star.
async fn exchange(host: Host, messages: Vec<(u32, u32, u64)>) -> Result<(), Error> {
    let receiver = host.clone();
    let (mine, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(|message| message.0 == host.rank());
    let receives = host.spawn(async move |_| {
        for (from, to, len) in others {
            if to == receiver.rank() {
                receiver.recv(&receiver.alloc(len)?, Some(from), Some(3)).await?;
            }
        }
        Ok(())
    });
    for (_, to, len) in mine {
        host.send(&host.alloc(len)?, to, 3).await?;
    }
    receives.join().await
}

fn star(messages: &[(u32, u32, u64)], faults: &Faults, shards: usize, file: &Scratch) -> Run {
    // Faults affect three packets in ten, sometimes many packets in a row.
    let reliable = ["transport.reliable=true", "transport.retries=100000"].map(str::to_owned);
    let card = cards::load("spin-discrete", &reliable).unwrap();
    let (topology, capture) = (Topology::Star, Some(Capture::to(&file.0)));
    let faults = faults.clone();
    let config = ClusterConfig { topology, shards, faults, capture, ..ClusterConfig::new(4, card) };
    let mut cluster = Cluster::new(config).unwrap();
    for rank in 0..4 {
        let messages = messages.to_vec();
        cluster.program(rank, |host| exchange(host, messages));
    }
    cluster.run().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12 * ProptestConfig::default().cases / 256))]

    #[test]
    fn a_file_has_all_packets_in_order_whatever_the_shards(
        messages in prop::collection::vec((0u32..4, 1u32..4, 1u64..20_000), 1..10),
        rates in (0.0..0.1, 0.0..0.1, 0.0..0.1),
        seed in any::<u64>(),
    ) {
        let messages: Vec<_> = messages.into_iter().map(|(from, by, len)| (from, (from + by) % 4, len)).collect();
        let (loss, corruption, duplication) = rates;
        let rates = Rates { loss, corruption, duplication, ..Rates::default() };
        let faults = Faults { seed, rates, ..Faults::default() };
        let file = Scratch::new("star");
        let run = star(&messages, &faults, 1, &file);
        let found = file.read();
        let ports = run.network.hosts.iter().chain(run.network.switches.iter().flat_map(|switch| &switch.ports));
        let sent: Vec<u64> = ports.map(|port| port.sent_packets).filter(|&sent| sent > 0).collect();
        prop_assert_eq!(found.statistics.iter().map(|&(had, _)| had).collect::<Vec<_>>(), sent);
        prop_assert_eq!(found.packets.len() as u64, found.statistics.iter().map(|s| s.0).sum::<u64>());
        prop_assert!(found.packets.is_sorted_by_key(|packet| packet.ns));
        let marked = |word: &str| found.packets.iter().filter(|packet| packet.comment.contains(word)).count() as u64;
        let faults_of = &run.network.faults;
        prop_assert_eq!(marked("lost"), faults_of.iter().map(|link| link.lost).sum::<u64>());
        prop_assert_eq!(marked("damaged"), faults_of.iter().map(|link| link.corrupted).sum::<u64>());
        prop_assert_eq!(marked("again"), faults_of.iter().map(|link| link.duplicated).sum::<u64>());
        let bytes = std::fs::read(&file.0).unwrap();
        star(&messages, &faults, 3, &file);
        prop_assert!(std::fs::read(&file.0).unwrap() == bytes, "the same file in three shards");
    }
}

#[test]
fn dropped_packets_are_there_with_where_they_were_dropped() {
    let file = Scratch::new("drops");
    let mut cluster = cluster("spin-discrete", 4, |config| {
        let flow_control = nicety::flow::parse("none,buffer=4Ki").unwrap();
        ClusterConfig { capture: Some(Capture::to(&file.0)), flow_control, ..config }
    });
    for rank in 1..4 {
        cluster.program(rank, |host| async move {
            let buffer = host.alloc(4000)?;
            host.send(&buffer, 0, 7).await
        });
    }
    let error = cluster.run().unwrap_err().to_string();
    assert!(error.starts_with("2 packets were not delivered"), "{error}");
    let found = file.read();
    // The interfaces of nodes that dropped packets follow those of links. A packet that was dropped after a link is
    // also on the interface of that link.
    assert_eq!(found.links.last().unwrap().0, "dropped by switch.0");
    assert_eq!(found.links.iter().filter(|link| link.0.starts_with("dropped by ")).count(), 1);
    let dropped: Vec<_> =
        found.packets.iter().filter(|packet| packet.link == "dropped by switch.0").collect();
    assert_eq!(dropped.len(), 2);
    for (packet, rank) in dropped.into_iter().zip([2, 3]) {
        let (_, payload, numbers) = split(&packet.bytes);
        assert_eq!((payload.len(), numbers), (4000, [32, 0, rank, 0, 0, 0, 4000]));
        // The time is that of post, bus, and the link to the switch.
        assert_eq!(packet.comment, "348400 ps, dropped: no room before port 0");
    }
}
