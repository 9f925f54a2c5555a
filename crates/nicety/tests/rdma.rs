//! Tests hosts with RDMA, through the public functions.

use nicety::apenet::{self, EventKind, Notify, Refusal};
use nicety::{Cluster, ClusterConfig, Error, FailureKind, Host, Run, Topology, cards, faults};

fn run<F>(ranks: u32, shards: usize, overrides: &[&str], program: impl Fn(Host) -> F) -> Result<Run, Error>
where
    F: Future<Output = Result<(), Error>> + 'static,
{
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let topology = if ranks > 2 { Topology::Star } else { Topology::Pair };
    let card = cards::load("apenet-v5", &overrides)?;
    run_on(ClusterConfig { topology, shards, ..ClusterConfig::new(ranks, card) }, program)
}

fn run_on<F>(config: ClusterConfig, program: impl Fn(Host) -> F) -> Result<Run, Error>
where
    F: Future<Output = Result<(), Error>> + 'static,
{
    let ranks = config.nodes;
    let mut cluster = Cluster::new(config)?;
    for rank in 0..ranks {
        cluster.program(rank, &program);
    }
    cluster.run()
}

/// Returns hosts with different cards. `overrides` has an item for each host.
fn mixed(overrides: &[&[&str]]) -> ClusterConfig {
    let card = |own: &&[&str]| {
        let own: Vec<String> = own.iter().map(|text| text.to_string()).collect();
        cards::load("apenet-v5", &own).unwrap()
    };
    ClusterConfig::of(overrides.iter().map(card).collect())
}

fn bytes(len: u64, seed: u64) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + seed * 31 + i / 251) as u8).collect()
}

/// Puts, gets and sends between two hosts, in host memory and in GPU memory.
async fn exchange(host: Host) -> Result<(), Error> {
    let (rdma, gpu, other) = (host.rdma()?, host.gpu()?, 1 - host.rank());
    // Both hosts make the same allocations, so their addresses are equal.
    let (out, into, streaming) = (gpu.alloc(70_000)?, host.alloc(70_000)?, host.alloc(5000)?);
    out.write(0, &bytes(70_000, host.rank().into()));
    for buffer in [&out, &into, &streaming] {
        rdma.register(buffer).await?;
    }
    rdma.post_streaming(&streaming).await?;
    host.barrier().await;
    let put = rdma.put(&out.slice(0, 30_000)?, other, into.address(), 5).await?;
    assert_eq!(rdma.wait(put).await?.kind, EventKind::Sent(put));
    let event = rdma.received().await?;
    assert_eq!((event.peer.node.0, event.bytes, event.data), (other, 30_000, 5));
    assert!(into.read(0, 30_000) == bytes(30_000, other.into()));
    let get = rdma.get(&into, other, out.address()).await?;
    assert_eq!(rdma.wait(get).await?.kind, EventKind::Fetched(get));
    assert!(into.read(0, 70_000) == bytes(70_000, other.into()));
    let send = rdma.send(&out.slice(0, 5000)?, other, 6).await?;
    rdma.wait(send).await?;
    let event = rdma.received().await?;
    assert_eq!((event.address, event.streaming, event.data), (streaming.address(), true, 6));
    assert!(streaming.read(0, 5000) == bytes(5000, other.into()));
    // No streaming buffer is left, so another send is refused. A put outside a region is refused, too.
    let send = rdma.send(&out.slice(0, 8)?, other, 0).await?;
    rdma.wait(send).await?;
    let kinds = [rdma.event().await?.kind, rdma.event().await?.kind];
    assert!(kinds.contains(&EventKind::Refused(send, Refusal::NoBuffer)), "{kinds:?}");
    assert!(kinds.contains(&EventKind::Rejected(Refusal::NoBuffer)), "{kinds:?}");
    assert_eq!(rdma.poll().await?, None);
    Ok(())
}

#[test]
fn puts_gets_and_sends_between_hosts_in_any_number_of_shards() {
    let [one, two] = [1, 2].map(|shards| run(2, shards, &[], exchange).unwrap());
    assert_eq!(one, two);
    for node in &one.nodes {
        let counted = node.of::<apenet::Report>();
        assert_eq!((counted.card.puts, counted.card.gets, counted.card.refused), (1, 1, 1));
        assert!(counted.transmit_busy_ps > 0 && counted.receive_busy_ps > 0 && counted.processor_busy_ps > 0);
    }
    let raised = run(2, 1, &["events.notify=interrupt"], exchange).unwrap();
    assert!(raised.end > one.end && raised.nodes[0].of::<apenet::Report>().kernel.interrupts > 0);
}

#[test]
fn events_of_one_sender_keep_its_order() {
    // The first put misses the TLB at every page. The empty puts have no bytes.
    let ran = run(2, 1, &["tlb.entries=1"], async |host| {
        let (rdma, buffer) = (host.rdma()?, host.alloc(50_000)?);
        rdma.register(&buffer).await?;
        host.barrier().await;
        if host.rank() == 0 {
            for (len, data) in [(50_000, 0), (0, 1), (3, 2), (0, 3)] {
                rdma.put(&buffer.slice(0, len)?, 1, buffer.address(), data).await?;
            }
            return Ok(());
        }
        for data in 0..4 {
            assert_eq!(rdma.received().await?.data, data);
        }
        Ok(())
    });
    assert!(ran.is_ok(), "{ran:?}");
}

#[test]
fn messages_may_be_in_the_memory_of_a_graphics_processor() {
    let ran = run(2, 1, &[], async |host| {
        let gpu = host.gpu()?;
        for (at, len) in [0, 8, 4096, 4097, 100_000].into_iter().enumerate() {
            for (from_gpu, to_gpu) in [(true, false), (false, true), (true, true)] {
                let buffer = |on_gpu: bool| if on_gpu { gpu.alloc(len) } else { host.alloc(len) };
                if host.rank() == 0 {
                    let from = buffer(from_gpu)?;
                    from.write(0, &bytes(len, at as u64));
                    host.send(&from, 1, 3).await?;
                } else {
                    let into = buffer(to_gpu)?;
                    let received = host.recv(&into, None, None).await?;
                    assert_eq!((received.source, received.length), (0, len));
                    assert!(into.read(0, len) == bytes(len, at as u64), "{len} bytes, {from_gpu}, {to_gpu}");
                }
            }
        }
        Ok(())
    });
    assert!(ran.is_ok(), "{ran:?}");
}

#[test]
fn many_hosts_send_to_one_and_none_is_lost() {
    let few = ["messages.window=2", "messages.eager=64 B", "events.entries=256", "buffer.packets=1"];
    let ran = run(6, 3, &few, async |host| {
        let ranks = host.ranks();
        if host.rank() > 0 {
            for tag in 0..20 {
                let len = [8, 64, 65, 0][tag as usize % 4];
                let from = host.alloc(len)?;
                from.write(0, &bytes(len, u64::from(host.rank() * 100) + tag));
                host.send(&from, 0, tag).await?;
            }
            return Ok(());
        }
        for tag in 0..20 {
            for rank in (1..ranks).rev() {
                let into = host.alloc(65)?;
                let received = host.recv(&into, Some(rank), Some(tag)).await?;
                assert!(into.read(0, received.length) == bytes(received.length, u64::from(rank * 100) + tag));
            }
        }
        Ok(())
    });
    let counted = ran.unwrap().nodes[0].of::<apenet::Report>();
    assert_eq!((counted.card.events_lost, counted.card.refused), (0, 0));
}

#[test]
fn a_mistake_says_what_to_write() {
    let ran = run(2, 1, &[], async |host| {
        let (rdma, buffer) = (host.rdma()?, host.alloc(100)?);
        let error = rdma.put(&buffer, 1, 0, 0).await.unwrap_err();
        assert!(matches!(error, Error::Input(_)) && error.to_string().contains("use send"), "{error}");
        let error = rdma.put(&buffer, 2, 64, 0).await.unwrap_err();
        assert!(error.to_string().contains("no rank 2"), "{error}");
        let error = rdma.put(&buffer, 1, 64, 0).await.unwrap_err();
        assert!(error.to_string().contains("register them first"), "{error}");
        assert!(rdma.process(u32::MAX).is_err() && rdma.process(7)?.number() == 7);
        assert!(host.gpu()?.alloc(1 << 40).unwrap_err().to_string().contains("raise gpu.memory"));
        rdma.set_notify(Notify::Interrupt);
        assert_eq!(rdma.notify(), Notify::Interrupt);
        let region = rdma.register(&buffer).await?;
        let error = rdma.process(7)?.deregister(region).await.unwrap_err();
        assert!(error.to_string().contains("has no region"), "{error}");
        Ok(())
    });
    assert!(ran.is_ok(), "{ran:?}");
    let card = cards::load("qnix", &[]).unwrap();
    let cluster = Cluster::new(ClusterConfig::new(1, card)).unwrap();
    let error = cluster.host(0).gpu().err().unwrap().to_string();
    assert!(error.contains("for example apenet-v5"), "{error}");
    let error = cluster.host(0).rdma().err().unwrap().to_string();
    assert!(error.contains("has no RDMA") && error.contains("apenet-v5"), "{error}");
}

#[test]
fn messages_may_pass_each_other_where_a_topology_lets_them() {
    let topology = "fat-tree:4:2:hash-message".parse().unwrap();
    let card = cards::load("apenet-v5", &[]).unwrap();
    let ran = run_on(ClusterConfig { topology, ..ClusterConfig::new(8, card) }, async |host| {
        let (rdma, buffer) = (host.rdma()?, host.alloc(1 << 15)?);
        rdma.register(&buffer).await?;
        host.barrier().await;
        // Two hosts at one switch send to two hosts at another switch, over both paths between the switches.
        let (rank, puts) = (host.rank(), 40);
        if rank < 2 {
            for data in 0..puts {
                let len = if data % 3 == 0 { 8 } else { 1 << 15 };
                rdma.put(&buffer.slice(0, len)?, 7 - rank, buffer.address(), data).await?;
            }
        } else if rank > 5 {
            let mut came = Vec::new();
            for _ in 0..puts {
                came.push(rdma.received().await?.data);
            }
            assert!(!came.is_sorted(), "none has passed another");
            came.sort_unstable();
            assert!(came.into_iter().eq(0..puts));
        }
        Ok(())
    });
    let counted = ran.unwrap().nodes[7].of::<apenet::Report>().card;
    assert_eq!((counted.abandoned, counted.unusable), (0, 0));
}

#[test]
fn a_longer_message_than_a_receivers_own_largest_is_received() {
    let ran = run_on(mixed(&[&[], &["limits.message=4 KiB"]]), async |host| {
        let (rdma, buffer) = (host.rdma()?, host.alloc(10_000)?);
        rdma.register(&buffer).await?;
        host.barrier().await;
        if host.rank() == 0 {
            rdma.put(&buffer, 1, buffer.address(), 0).await?;
        } else {
            assert_eq!(rdma.received().await?.bytes, 10_000);
        }
        Ok(())
    });
    assert!(ran.is_ok(), "{ran:?}");
}

#[test]
fn a_receive_that_fails_gives_its_place_and_its_sender_back() {
    // The receiver's card has room for the library's buffers, but not for the buffer of the receive.
    let few = ["limits.pages=100", "messages.window=1"];
    let ran = run_on(mixed(&[&few[1..], &few]), async |host| {
        let (long, short) = (host.alloc(1 << 20)?, host.alloc(8)?);
        for tag in 0..3 {
            if host.rank() == 0 {
                host.send(&long, 1, tag).await?;
                host.send(&short, 1, tag).await?;
            } else {
                let error = host.recv(&long, None, None).await.unwrap_err();
                assert!(error.to_string().contains("raise limits.pages"), "{error}");
                assert_eq!(host.recv(&short, None, None).await?.length, 8);
            }
        }
        Ok(())
    });
    assert_eq!(ran.unwrap().nodes[1].of::<apenet::Report>().card.unusable, 0);
}

#[test]
fn a_message_of_send_that_is_refused_fails_the_run() {
    let ran = run_on(mixed(&[&[], &["limits.pages=1"]]), async |host| {
        let buffer = host.alloc(8)?;
        if host.rank() == 1 {
            host.rdma()?.register(&buffer).await?;
        } else {
            host.compute(nicety_types::Duration::from_us(100)).await;
            host.send(&buffer, 1, 0).await?;
        }
        Ok(())
    });
    let error = ran.unwrap_err().to_string();
    assert!(
        error.contains("rank 0: send refused: no streaming buffer, by rank 1; no call has reported it"),
        "{error}"
    );
}

/// On a network with faults, rank 0 puts 8 bytes `puts` times, and rank 1 waits for `waits` of these puts.
fn lossy(lines: &str, puts: u64, waits: u64, overrides: &[&str]) -> Result<Run, Error> {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let card = cards::load("apenet-v5", &overrides)?;
    let faults = faults::parse(lines)?;
    run_on(ClusterConfig { faults, ..ClusterConfig::new(2, card) }, move |host| async move {
        let (rdma, buffer) = (host.rdma()?, host.alloc(8192)?);
        rdma.register(&buffer).await?;
        host.barrier().await;
        for _ in 0..if host.rank() == 0 { puts } else { 0 } {
            rdma.put(&buffer, 1, buffer.address(), 0).await?;
        }
        for _ in 0..if host.rank() == 1 { waits } else { 0 } {
            rdma.received().await?;
        }
        Ok(())
    })
}

#[test]
fn a_lost_packet_fails_the_run_though_no_program_waits_for_it() {
    for faults in ["loss=1", "corrupt=1"] {
        let error = lossy(faults, 1, 0, &[]).unwrap_err();
        assert!(matches!(error, Error::Undelivered(_)), "{error}");
        assert!(error.to_string().contains("cards of this design never retransmit"), "{error}");
    }
    let errors = ["link.bit_error_rate=1e-3", "link.retries=1"];
    let error = lossy("", 1, 0, &errors).unwrap_err().to_string();
    assert!(error.contains("damaged each time that the link sent them"), "{error}");
    // With enough retries, the same link loses no packet.
    lossy("", 3, 3, &["link.bit_error_rate=1e-6"]).unwrap();
    // The user may allow such losses.
    let card = cards::load("apenet-v5", &[]).unwrap();
    let allowed = "lost".parse().unwrap();
    let config =
        ClusterConfig { faults: faults::parse("loss=1").unwrap(), allowed, ..ClusterConfig::new(2, card) };
    let ran = run_on(config, async |host| {
        let (rdma, buffer) = (host.rdma()?, host.alloc(64)?);
        rdma.register(&buffer).await?;
        rdma.put(&buffer, 1 - host.rank(), buffer.address(), 0).await?;
        Ok(())
    });
    let failures = ran.unwrap().failures();
    let [lost] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!((lost.kind, lost.rank, lost.times), (FailureKind::Lost, 0, 2));
    let text = "packets were lost, and nothing retransmits them: 2 lost by chance; the first: message 1 of rank 0 to rank 1, \
                bytes 0 to 63, lost on hosts.0 -> hosts.1 at ";
    assert!(lost.text.starts_with(text), "{}", lost.text);
}

#[test]
fn damaged_packets_are_told_as_such() {
    let card = cards::load("apenet-v5", &["link.retries=0".to_owned()]).unwrap();
    let config = ClusterConfig {
        faults: faults::parse("corrupt=1").unwrap(),
        allowed: "lost,refused".parse().unwrap(),
        ..ClusterConfig::new(2, card)
    };
    let ran = run_on(config, async |host| {
        let (rdma, buffer) = (host.rdma()?, host.alloc(64)?);
        rdma.register(&buffer).await?;
        if host.rank() == 1 {
            rdma.put(&buffer, 0, buffer.address(), 0).await?;
        }
        Ok(())
    });
    let failures = ran.unwrap().failures();
    let [lost] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!((lost.kind, lost.rank, lost.times), (FailureKind::Lost, 1, 1));
    assert!(lost.text.contains("on hosts.1 -> hosts.0"), "{}", lost.text);
}

#[test]
fn a_last_message_that_misses_a_packet_leaves_a_hint() {
    // In the first case, one of the two packets of the last put arrives. In the second case, none arrives.
    for (drop, says) in [
        ("4", "at rank 1, 4096 of the 8192 bytes of a message have arrived from rank 0"),
        ("3,4", "message 2 of rank 0 to rank 1, bytes 4096 to 8191, lost on hosts.0 -> hosts.1"),
    ] {
        let error = lossy_named(drop).to_string();
        assert!(error.contains(says), "{error}");
    }
}

fn lossy_named(drop: &str) -> Error {
    let faults = format!("[[link]]\nname = \"hosts.0 -> hosts.1\"\ndrop = [{drop}]");
    lossy(&faults, 2, 2, &["link.retries=0"]).unwrap_err()
}

/// Returns the text of the deadlock of a program on two hosts.
fn deadlock<F>(overrides: &[&str], program: impl Fn(Host) -> F) -> String
where
    F: Future<Output = Result<(), Error>> + 'static,
{
    match run(2, 1, overrides, program).unwrap_err() {
        Error::Deadlock(text) => text,
        error => panic!("{error}"),
    }
}

#[test]
fn a_deadlock_says_what_was_refused_and_which_events_no_call_takes() {
    // Rank 0 puts to unregistered memory, and sends without a streaming buffer at the receiver. The receiver waits for
    // a put.
    let text = deadlock(&[], async |host| {
        let (rdma, buffer) = (host.rdma()?, host.alloc(100)?);
        rdma.process(5)?;
        if host.rank() == 1 {
            rdma.received().await?;
        }
        rdma.register(&buffer).await?;
        rdma.put(&buffer, 1, buffer.address(), 0).await?;
        rdma.send(&buffer, 1, 0).await?;
        Ok(())
    });
    for note in [
        "at rank 1, 2 messages were refused; the first was a send of 100 bytes of rank 0 for process 0: no \
         streaming buffer is free there",
        "at rank 1, process 0 has events that no call has taken: 2 rejected",
        "at rank 1, process 0 waits for an event but has registered no memory: the card refuses puts to it",
        "at rank 0, process 0 has events that no call has taken: 2 refused",
        "the card of rank 0 refused 1 RDMA: no streaming buffer, by rank 1",
    ] {
        assert!(text.contains(note), "{note}\n{text}");
    }
    // The text has no hints about other causes.
    for other in ["sent", "found no room", "send and recv waits", "process 5 waits", "has no reply"] {
        assert!(!text.contains(other), "{other}: {text}");
    }
}

#[test]
fn a_deadlock_tells_a_single_refusal_and_the_part_of_a_reply_that_has_come() {
    let text = deadlock(&[], async |host| {
        let (rdma, buffer) = (host.rdma()?, host.alloc(100)?);
        rdma.register(&buffer).await?;
        if host.rank() == 0 {
            rdma.send(&buffer, 1, 0).await?;
        }
        rdma.received().await?;
        Ok(())
    });
    let note = "at rank 1, 1 message was refused: a send of 100 bytes of rank 0 for process 0: no streaming buffer is free there";
    assert!(text.contains(note) && !text.contains("has registered no memory"), "{text}");
    // The last of the three packets of a get's reply is lost.
    let card = cards::load("apenet-v5", &["link.retries=0".to_owned()]).unwrap();
    let faults = faults::parse("[[link]]\nname = \"hosts.1 -> hosts.0\"\ndrop = [3]").unwrap();
    let ran = run_on(ClusterConfig { faults, ..ClusterConfig::new(2, card) }, async |host| {
        let (rdma, buffer) = (host.rdma()?, host.alloc(3 * 4096)?);
        rdma.register(&buffer).await?;
        host.barrier().await;
        if host.rank() == 0 {
            let get = rdma.get(&buffer, 1, buffer.address()).await?;
            rdma.wait(get).await?;
        }
        Ok(())
    });
    let text = ran.unwrap_err().to_string();
    let note = "at rank 0, 8192 of the 12288 bytes of the reply to a get have arrived from rank 1";
    assert!(text.contains(note) && !text.contains("has no reply"), "{text}");
}

#[test]
fn a_deadlock_says_which_events_were_lost_and_what_was_dropped() {
    let text = deadlock(&["events.user=2"], async |host| {
        let (rdma, buffer) = (host.rdma()?, host.alloc(8)?);
        rdma.register(&buffer).await?;
        host.barrier().await;
        if host.rank() == 0 {
            for _ in 0..4 {
                rdma.put(&buffer, 1, buffer.address(), 0).await?;
            }
            return Ok(());
        }
        host.compute(nicety_types::Duration::from_us(100)).await;
        // The lost events are reported once. Then the program waits for four messages.
        assert!(rdma.received().await.is_err());
        for _ in 0..4 {
            rdma.received().await?;
        }
        Ok(())
    });
    let note = "at rank 1, 2 events found no room in a queue; raise events.entries or events.user";
    assert!(text.contains(note), "{text}");
    let text = deadlock(&[], async |host| {
        let (rdma, buffer) = (host.rdma()?, host.alloc(8)?);
        rdma.register(&buffer).await?;
        rdma.set_flushed(true);
        host.barrier().await;
        let get = rdma.get(&buffer, 1 - host.rank(), buffer.address()).await?;
        rdma.wait(get).await?;
        Ok(())
    });
    for rank in [0, 1] {
        let dropped = format!("at rank {rank}, 1 packet was dropped, because the receive side is flushed");
        let no_reply = format!("at rank {rank}, a get of 8 bytes from rank {} has no reply", 1 - rank);
        assert!(text.contains(&dropped) && text.contains(&no_reply), "{text}");
    }
}

#[test]
fn a_deadlock_says_which_messages_of_send_no_receive_takes() {
    let text = deadlock(&[], async |host| {
        let buffer = host.alloc(10_000)?;
        if host.rank() == 0 {
            host.send(&buffer.slice(0, 70)?, 1, 3).await?;
            return host.send(&buffer, 1, 4).await;
        }
        host.recv(&buffer, None, Some(5)).await?;
        Ok(())
    });
    let note = "at rank 1, 2 messages wait for a recv, the first one of 70 bytes from rank 0, tag 3";
    assert!(text.contains(note), "{text}");
    assert!(text.contains("its message to rank 1 to be taken"), "{text}");
}
