//! Hosts with RDMA, through the public interface.

use nicety::apenet::{self, EventKind, Notify, Refusal};
use nicety::{Cluster, ClusterConfig, Error, Host, Run, Topology, cards};

fn run<F>(ranks: u32, shards: usize, overrides: &[&str], program: impl Fn(Host) -> F) -> Result<Run, Error>
where
    F: Future<Output = Result<(), Error>> + 'static,
{
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let topology = if ranks > 2 { Topology::Star } else { Topology::Pair };
    let card = cards::load("apenet-v5", &overrides)?;
    let mut cluster = Cluster::new(ClusterConfig { topology, shards, ..ClusterConfig::new(ranks, card) })?;
    for rank in 0..ranks {
        cluster.program(rank, &program);
    }
    cluster.run()
}

fn bytes(len: u64, seed: u64) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + seed * 31 + i / 251) as u8).collect()
}

/// Puts, gets and sends between two hosts, in either memory.
async fn exchange(host: Host) -> Result<(), Error> {
    let (rdma, gpu, other) = (host.rdma()?, host.gpu()?, 1 - host.rank());
    // Both allocate alike, so that addresses are equal.
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
    // None is left; and a put outside.
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
    // The first put misses the TLB at every page, the empty ones have no bytes.
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
                from.write(0, &bytes(len, u64::from(host.rank() * 100 + tag)));
                host.send(&from, 0, tag).await?;
            }
            return Ok(());
        }
        for tag in 0..20 {
            for rank in (1..ranks).rev() {
                let into = host.alloc(65)?;
                let received = host.recv(&into, Some(rank), Some(tag)).await?;
                assert!(into.read(0, received.length) == bytes(received.length, u64::from(rank * 100 + tag)));
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
