//! Tests clusters with cards with virtual network interfaces: `send` and `recv`, and processes of a host.

use nicety::qnix::{self, TransferMethod};
use nicety::{Cluster, ClusterConfig, Error, Host, Topology, cards};

fn cluster(nodes: u32, overrides: &[&str]) -> Cluster {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let card = cards::load("qnix", &overrides).unwrap();
    let topology = if nodes == 2 { Topology::Pair } else { Topology::Star };
    Cluster::new(ClusterConfig { topology, ..ClusterConfig::new(nodes, card) }).unwrap()
}

fn bytes(salt: u64, len: u64) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + salt * 13) as u8).collect()
}

#[test]
fn send_and_recv_work_with_receives_before_and_after() {
    let mut cluster = cluster(3, &[]);
    let sizes = [0, 8, 1024, 1025, 2000, 70_000, 2 << 20];
    for rank in 0..3_u32 {
        cluster.program(rank, async move |host: Host| {
            let (to, from) = ((rank + 1) % 3, (rank + 2) % 3);
            let mut posted = Vec::new();
            for (tag, &size) in (0..).zip(&sizes) {
                // Every second receive is posted before its message arrives.
                if tag % 2 == 0 {
                    let room = host.alloc(size)?;
                    posted.push((tag, host.post_recv(&room, Some(from), Some(tag)).await?, room));
                }
            }
            host.barrier().await;
            for (tag, &size) in (0..).zip(&sizes) {
                let buffer = host.alloc(size)?;
                buffer.write(0, &bytes(u64::from(rank * 10) + tag, size));
                host.send(&buffer, to, tag).await?;
                buffer.write(0, &vec![0; size as usize]);
            }
            for tag in [1, 3, 5] {
                let room = host.alloc(sizes[tag as usize])?;
                let pending = host.post_recv(&room, None, Some(tag)).await?;
                posted.push((tag, pending, room));
            }
            for (tag, pending, room) in posted {
                let received = host.received(pending).await?;
                assert_eq!((received.source, received.tag, received.length), (from, tag, room.len()));
                assert_eq!(room.read(0, room.len()), bytes(u64::from(from * 10) + tag, room.len()));
            }
            Ok(())
        });
    }
    let run = cluster.run().unwrap();
    assert!(
        run.nodes
            .iter()
            .map(|node| node.of::<qnix::Report>().interfaces)
            .all(|did| did.sends == 7 && did.strays == 0)
    );
}

#[test]
fn send_and_recv_refuse_invalid_arguments() {
    let mut refusing = cluster(2, &[]);
    refusing.program(0, async |host: Host| {
        let buffer = host.alloc(64)?;
        assert!(matches!(host.send(&buffer, 2, 0).await, Err(Error::Input(_))));
        assert!(matches!(host.post_recv(&buffer, Some(2), None).await, Err(Error::Input(_))));
        assert!(
            matches!(host.portals(), Err(Error::Input(text)) if text.contains("virtual network interfaces"))
        );
        let long = host.alloc((2 << 20) + 1)?;
        let error = host.send(&long, 1, 0).await.unwrap_err();
        assert!(
            matches!(&error, Error::Input(text) if text.contains("2097153 bytes; the maximum is 2097152")),
            "{error}"
        );
        host.send(&buffer, 1, 0).await
    });
    refusing.program(1, async |host: Host| {
        let short = host.alloc(60)?;
        host.recv(&short, None, None).await.map(|_| ())
    });
    let error = refusing.run().unwrap_err();
    assert!(
        error.to_string().contains("a message of 64 bytes from rank 0 arrived at a recv of 60 bytes"),
        "{error}"
    );

    let mut waiting = cluster(2, &[]);
    waiting.program(0, async |host: Host| host.recv(&host.alloc(8)?, Some(1), Some(5)).await.map(|_| ()));
    let error = waiting.run().unwrap_err();
    assert!(matches!(error, Error::Deadlock(_)));
    assert!(error.to_string().contains("a message from rank 1, tag 5"), "{error}");
}

#[test]
fn sixty_four_processes_of_each_host_talk_at_once() {
    let mut cluster = cluster(2, &[]);
    for rank in 0..2 {
        cluster.program(rank, async move |host: Host| {
            let mut threads = Vec::new();
            for number in 1..64 {
                threads.push(host.spawn(async move |host: Host| {
                    let process = host.vni()?.process(number);
                    let vni = process.open().await?;
                    assert_eq!(vni, number);
                    host.compute(nicety::Duration::from_ns(1_000_000)).await;
                    let (out, back) = (process.alloc(9000)?, process.alloc(9000)?);
                    out.write(0, &bytes(u64::from(rank * 64 + number), 9000));
                    let receive = process
                        .receive(vni, &back, Some((1 - rank, vni)), None, TransferMethod::Auto)
                        .await?;
                    let send = process.send(vni, &out, (1 - rank, vni), 3, TransferMethod::Auto).await?;
                    process.wait(vni, send).await?;
                    let completed = process.wait(vni, receive).await?;
                    assert_eq!((completed.bytes, completed.tag), (9000, 3));
                    assert_eq!(back.read(0, 9000), bytes(u64::from((1 - rank) * 64 + number), 9000));
                    process.close(vni).await
                }));
            }
            for thread in threads {
                thread.join().await?;
            }
            // 63 processes opened and closed an interface, and locked two buffers each.
            assert_eq!(host.vni()?.kernel_counters().calls, 63 * 4);
            assert_eq!(host.vni()?.memory().used, 2048 * 16);
            Ok(())
        });
    }
    cluster.run().unwrap();
}

#[test]
fn a_process_is_refused_what_is_anothers() {
    let mut cluster = cluster(2, &[]);
    cluster.program(0, async |host: Host| {
        let process = host.vni()?.process(7);
        let theirs = host.alloc(64)?;
        let error = process.send(0, &theirs, (1, 0), 0, TransferMethod::Auto).await.unwrap_err();
        assert_eq!(error.to_string(), "interface 0 belongs to process 0; process 7 cannot use it");
        let vni = process.open().await?;
        let error = process.send(vni, &theirs, (1, 0), 0, TransferMethod::Auto).await.unwrap_err();
        assert!(error.to_string().contains("not in the memory of process 7"), "{error}");
        Ok(())
    });
    assert_eq!(cluster.run().unwrap().nodes[0].of::<qnix::Report>().interfaces.refused, 2);
}
