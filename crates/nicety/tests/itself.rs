//! Tests messages of a host to itself, which stay on its card or in its library.

use nicety::{Buffer, Cluster, ClusterConfig, Error, Host, Run, Topology, cards};
use nicety_portals::{
    AckRequest, Atomic, AtomicOp, AtomicRequest, CtHandle, Datatype, GetRequest, List, Md, MdHandle,
    MdOptions, Me, MeOptions, PutRequest,
};
use nicety_types::{Level, NodeId, Stage, Time};

const PT: u32 = 1;

fn run<F>(card: &str, overrides: &[&str], ranks: u32, program: impl Fn(Host) -> F) -> Result<Run, Error>
where
    F: Future<Output = Result<(), Error>> + 'static,
{
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let topology = match ranks {
        1 => Topology::Alone,
        2 => Topology::Pair,
        _ => Topology::Star,
    };
    let card = cards::load(card, &overrides)?;
    let config = ClusterConfig { topology, recording: Level::Everything, ..ClusterConfig::new(ranks, card) };
    let mut cluster = Cluster::new(config)?;
    for rank in 0..ranks {
        cluster.program(rank, &program);
    }
    cluster.run()
}

fn bytes(len: u64) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + 3) as u8).collect()
}

/// A match entry with a counter, and a memory descriptor of other memory that counts replies.
struct Ready {
    into: Buffer,
    count: CtHandle,
    from: Buffer,
    md: MdHandle,
    answers: CtHandle,
}

async fn ready(host: &Host, len: u64) -> Result<Ready, Error> {
    let (into, from) = (host.alloc(len.max(1))?, host.alloc(len.max(1))?);
    from.write(0, &bytes(len));
    let portals = host.portals()?;
    portals.pt_alloc(Some(PT), None)?;
    let count = portals.ct_alloc()?;
    let options = MeOptions::OP_PUT | MeOptions::OP_GET | MeOptions::EVENT_CT_COMM;
    let me = Me { start: into.address(), length: len, options, ct: Some(count), ..Me::default() };
    let appending = portals.me_append(PT, me, List::Priority).await?;
    portals.appended(appending).await?;
    let options = MdOptions::EVENT_SEND_DISABLE | MdOptions::EVENT_CT_REPLY | MdOptions::EVENT_CT_ACK;
    let answers = portals.ct_alloc()?;
    let md =
        portals.md_bind(Md { start: from.address(), length: len, options, ct: Some(answers), eq: None })?;
    host.barrier().await;
    Ok(Ready { into, count, from, md, answers })
}

/// The host puts `len` bytes to itself and checks them. Returns the time from the post to the notice.
async fn put(host: &Host, len: u64) -> Result<u64, Error> {
    let Ready { into, count, md, .. } = ready(host, len).await?;
    let start: Time = host.now();
    let portals = host.portals()?;
    portals.put(&PutRequest::new(md, len, NodeId(host.rank()), PT, 0)).await?;
    portals.ct_wait(count, 1).await?;
    assert_eq!(into.read(0, len), bytes(len));
    Ok(host.now().since(start).ps())
}

// The path has post, bus, match, deposit and event, and notice. It is the path of a put to another host without the
// link.
#[test]
fn a_put_to_itself_takes_what_is_not_the_link() {
    for (len, picoseconds) in [
        // Post 65 ns, bus 250 ns and 8 x 15.6 ps, match 30 ns. Deposit and event 8 x 15.6 ps and 250 ns, notice 65 ns.
        (8, 65_000 + 250_000 + 125 + 30_000 + 250_125 + 65_000),
        // 64 KiB are 16 packets of 63 897.6 ps each. The first packet crosses the bus and is matched. Then all packets
        // return over the bus at their arrival rate, and each time is rounded up.
        (65_536, 65_000 + 250_000 + 63_898 + 30_000 + 16 * 63_898 + 250_000 + 65_000),
        (0, 65_000 + 250_000 + 30_000 + 250_000 + 65_000),
    ] {
        for ranks in [1, 2, 3] {
            let ran = run("spin-discrete", &[], ranks, |host| async move {
                assert_eq!(put(&host, len).await?, picoseconds, "{len} bytes, {} ranks", host.ranks());
                Ok(())
            })
            .unwrap();
            for host in &ran.network.hosts {
                assert_eq!((host.sent_packets, host.received_packets), (0, 0), "nothing on the link");
            }
            let stages: Vec<Stage> = ran.recording.breakdown().1.iter().map(|total| total.stage).collect();
            assert!(
                stages.contains(&nicety_nic_processors::stages::MATCH) && !stages.contains(&Stage::LINK),
                "{stages:?}"
            );
        }
    }
}

// Every operation with a target also works if the target is the host itself, with and without reliable transport.
#[test]
fn every_operation_can_be_on_itself() {
    for overrides in [&[][..], &["transport.reliable=true"]] {
        let ran = run("spin-discrete", overrides, 1, async |host| {
            let Ready { into, count, from, md, answers } = ready(&host, 64).await?;
            let portals = host.portals()?;
            let done = portals.ct_alloc()?;
            let me = NodeId(host.rank());
            let put = PutRequest { ack: AckRequest::Counting, ..PutRequest::new(md, 16, me, PT, 0) };
            let request =
                AtomicRequest { put, atomic: Atomic::new(AtomicOp::Sum, Datatype::Uint64).unwrap() };
            portals.post(&request.into()).await?;
            portals.ct_wait(count, 1).await?;
            assert_eq!(into.read(0, 16), bytes(16), "0 and so much");
            // A get returns the received bytes, after a put that they trigger.
            portals.triggered_put(put, count, 2).await?;
            into.write(16, &[9; 8]);
            let options = MdOptions::EVENT_CT_REPLY;
            let (start, length) = (from.address() + 32, 8);
            let back = portals.md_bind(Md { start, length, options, ct: Some(done), eq: None })?;
            portals.get(&GetRequest { remote_offset: 16, ..GetRequest::new(back, 8, me, PT, 0) }).await?;
            portals.ct_wait(done, 1).await?;
            portals.ct_wait(count, 3).await?;
            assert_eq!(from.read(32, 8), [9; 8]);
            assert_eq!(into.read(0, 16), bytes(16));
            // The counter counts the acknowledgements of the atomic and of the put.
            portals.ct_wait(answers, 2).await?;
            Ok(())
        });
        assert!(ran.is_ok(), "{ran:?}");
    }
}

// On every card, a host can send itself messages by `send` and `recv`.
#[test]
fn a_host_sends_itself_messages_on_every_card() {
    for card in ["spin-discrete", "spin-integrated", "qnix", "nfp-4000", "apenet-v5", "niagara2-niu"] {
        for ranks in [1, 2] {
            let ran = run(card, &[], ranks, async |host| {
                for len in [0, 8, 5000, 70_000] {
                    let (from, into) = (host.alloc(len)?, host.alloc(len)?);
                    from.write(0, &bytes(len));
                    let pending = host.post_recv(&into, Some(host.rank()), Some(4)).await?;
                    host.barrier().await;
                    host.send(&from, host.rank(), 4).await?;
                    let received = host.received(pending).await?;
                    assert_eq!((received.source, received.tag, received.length), (host.rank(), 4, len));
                    assert_eq!(into.read(0, len), bytes(len));
                }
                Ok(())
            });
            let ran = ran.unwrap_or_else(|error| panic!("{card}, {ranks}: {error}"));
            for host in &ran.network.hosts {
                assert_eq!((host.sent_packets, host.received_packets), (0, 0), "{card}: nothing on the link");
            }
        }
    }
}

// A card with too few microengines for messages between ranks still delivers messages of its host to itself.
#[test]
fn messages_to_itself_need_no_microengine() {
    let overrides = ["hpu.cores=3", "hpu.island=3"];
    let ran = run("nfp-4000", &overrides, 2, async |host| {
        let (from, into) = (host.alloc(100)?, host.alloc(100)?);
        from.write(0, &bytes(100));
        let pending = host.post_recv(&into, Some(host.rank()), None).await?;
        host.send(&from, host.rank(), 4).await?;
        host.received(pending).await?;
        assert_eq!(into.read(0, 100), bytes(100));
        for result in [
            host.send(&from, 1 - host.rank(), 4).await.err(),
            host.post_recv(&into, None, None).await.err(),
            host.post_recv(&into, Some(1 - host.rank()), None).await.err(),
        ] {
            let text = result.expect("it needs the other rank").to_string();
            assert!(text.contains("messages between hosts do not fit the card"), "{text}");
        }
        Ok(())
    });
    assert!(ran.is_ok(), "{ran:?}");
}

// The packets of a stream of messages wait for buffer slots. No packet is lost or overtakes another packet.
#[test]
fn places_on_the_way_are_bounded() {
    let overrides = ["buffer.packets=2", "send.queue=1"];
    let ran = run("spin-discrete", &overrides, 1, async |host| {
        let Ready { into, count, md, .. } = ready(&host, 40_000).await?;
        for _ in 0..50 {
            let portals = host.portals()?;
            portals.put(&PutRequest::new(md, 40_000, NodeId(0), PT, 0)).await?;
        }
        let portals = host.portals()?;
        portals.ct_wait(count, 50).await?;
        assert_eq!(into.read(0, 40_000), bytes(40_000));
        Ok(())
    });
    let packets = ran.unwrap().recording.packets;
    assert_eq!(packets.len(), 500);
    let in_buffer =
        |at: Time| packets.iter().filter(|p| p.arrived <= Some(at) && p.settled > Some(at)).count();
    let most = packets.iter().filter_map(|p| p.arrived).map(in_buffer).max();
    assert_eq!(most, Some(2));
    assert!(packets.is_sorted_by_key(|packet| packet.arrived));
}
