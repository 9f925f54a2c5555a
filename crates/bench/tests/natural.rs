//! Benchmarks on a card with `send` and `recv` as its natural mode, and programs that run on every card.

use nicety::{Cluster, ClusterConfig, Compiled, Environment, Error, Topology, cards};
use nicety_bench::{Benchmark, Report, Request, plan, run};
use std::sync::Arc;

fn report(request: &Request) -> Result<Report, Error> {
    let compiled = Compiled::new();
    let log: nicety::Log = Arc::new(|line| panic!("{line:?}"));
    run(request, &Environment { log, compiled: &compiled, ..Environment::default() })
}

#[test]
fn a_latency_is_the_sum_of_its_stages() {
    let request = Request::new(Benchmark::Latency, &["nfp-4000"], &[0, 8, 32, 33, 4096, 200_000]);
    let report = report(&request).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan(&request).unwrap().compile, []);
    for row in &report.rows {
        assert_eq!((row.mode, row.verified), ("channels", true));
        let stages: f64 = row.stages.as_ref().unwrap().iter().map(|stage| stage.ns).sum();
        let latency = row.latency_ns.unwrap();
        assert!(
            (stages - latency).abs() < 1e-6 * latency,
            "{stages} instead of {latency} at {}",
            row.size_bytes
        );
        let named = |name: &str| row.stages.as_ref().unwrap().iter().any(|stage| stage.stage == name);
        assert!(["link", "interrupt", "manager", "system call"].into_iter().all(named), "{row:?}");
    }
    let latencies: Vec<f64> = report.rows.iter().filter_map(|row| row.latency_ns).collect();
    assert!(latencies.is_sorted(), "{latencies:?}");
    assert!(latencies[3] > 1.5 * latencies[2], "longer messages use rendezvous: {latencies:?}");
}

#[test]
fn windows_come_whole_and_no_faster_than_the_wire() {
    for (pattern, flows) in [("pair", 1), ("bidirectional", 2), ("incast:3", 3)] {
        let request = Request {
            pattern: pattern.to_owned(),
            window: Some(20),
            iterations: Some(2),
            ..Request::new(Benchmark::Bandwidth, &["nfp-4000"], &[8, 30_000, 100_000])
        };
        let report = report(&request).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        for row in &report.rows {
            let bandwidth = row.bandwidth_bytes_per_s.unwrap();
            // A link has 10 Gb/s in each direction. The senders of an incast share the link of their receiver.
            let most = if pattern == "bidirectional" { 2.5e9 } else { 1.25e9 };
            assert!(bandwidth < most, "{pattern}: {bandwidth}");
            assert_eq!(row.flows.as_ref().map_or(1, Vec::len), flows);
            let received = row.host_memory.iter().map(|node| node.written_bytes).sum::<u64>();
            assert!(received >= 2 * 20 * row.size_bytes * flows as u64 || row.size_bytes == 8, "{row:?}");
        }
    }
    let rate = Request::new(Benchmark::MessageRate, &["nfp-4000"], &[8]);
    assert!(report(&rate).unwrap().rows[0].messages_per_s.unwrap() > 10_000.0);
}

#[test]
fn a_card_without_a_mode_says_what_it_has() {
    let asked = |nics: &[&str], modes: &[&str]| {
        let modes = Some(modes.iter().map(|&mode| mode.to_owned()).collect());
        plan(&Request { modes, ..Request::new(Benchmark::Latency, nics, &[8]) }).unwrap_err().to_string()
    };
    assert_eq!(
        asked(&["nfp-4000"], &["rdma"]),
        "nfp-4000 has no mode rdma; a card of design nfp has the modes channels, auto"
    );
    assert_eq!(
        asked(&["spin-discrete", "nfp-4000"], &["channels"]),
        "spin-discrete has no mode channels; a card of design portals has the modes rdma, portals4, \
         spin-store, spin-stream, auto"
    );
    let handlers = Request { handlers: true, ..Request::new(Benchmark::Latency, &["nfp-4000"], &[8]) };
    assert!(plan(&handlers).unwrap_err().to_string().contains("no Portals interface"));
}

/// The same program on every shipped card with a path to a host. It sends messages of several sizes and tags, and receives them in a different order.
#[test]
fn a_program_runs_unchanged_on_every_card() {
    for (name, _) in cards::shipped().unwrap() {
        for shards in [1, 3] {
            let card = cards::load(&name, &[]).unwrap();
            if card.spec.design().name == "hxdp" {
                continue;
            }
            let topology = Topology::Star;
            let config = ClusterConfig { topology, shards, ..ClusterConfig::new(3, card) };
            let mut cluster = Cluster::new(config).unwrap();
            for rank in 0..3 {
                cluster.program(rank, move |host| async move {
                    let (right, left) = ((rank + 1) % 3, (rank + 2) % 3);
                    let sizes = [0u64, 1, 32, 33, 5000, 70_000];
                    let mut posted = Vec::new();
                    for (tag, &size) in sizes.iter().enumerate().rev() {
                        let buffer = host.alloc(size + 1)?;
                        posted.push((
                            tag,
                            host.post_recv(&buffer, Some(left), Some(tag as u64)).await?,
                            buffer,
                        ));
                    }
                    host.barrier().await;
                    for (tag, &size) in sizes.iter().enumerate() {
                        let buffer = host.alloc(size)?;
                        buffer.write(0, &vec![tag as u8 + 1; size as usize]);
                        host.send(&buffer, right, tag as u64).await?;
                    }
                    for (tag, pending, buffer) in posted {
                        let received = host.received(pending).await?;
                        let expected = (left, tag as u64, sizes[tag]);
                        assert_eq!((received.source, received.tag, received.length), expected);
                        let bytes = buffer.read(0, sizes[tag] + 1);
                        let (message, behind) = bytes.split_at(sizes[tag] as usize);
                        assert!(message.iter().all(|&byte| byte == tag as u8 + 1) && behind == [0]);
                    }
                    Ok(())
                });
            }
            cluster.run().unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn where_messages_end_is_told() {
    let run = |ranks: u32, size: u64, room: u64, to: u32| {
        let card = cards::load("nfp-4000", &[]).unwrap();
        let mut cluster = Cluster::new(ClusterConfig::new(ranks, card)).unwrap();
        cluster.program(0, move |host| async move { host.send(&host.alloc(size)?, to, 7).await });
        if ranks > 1 {
            cluster.program(1, move |host| async move {
                let buffer = host.alloc(room)?;
                host.recv(&buffer, Some(0), Some(7)).await.map(|_| ())
            });
        }
        cluster.run().map(|_| ()).map_err(|error| (error.exit_status(), error.to_string()))
    };
    assert_eq!(run(2, 8, 8, 1), Ok(()));
    let (status, text) = run(2, 9, 8, 1).unwrap_err();
    let cut = "rank 1: a message of 9 bytes from rank 0 arrived at a recv of 8 bytes: 1 bytes were truncated";
    assert!(status == 1 && text.contains(cut), "{text}");
    let (status, text) = run(2, 8, 8, 2).unwrap_err();
    assert!(status == 2 && text.contains("there is no rank 2"), "{text}");
    let (status, text) = run(1, 8, 8, 1).unwrap_err();
    assert!(status == 2 && text.contains("there is no rank 1; the cluster has ranks 0 to 0"), "{text}");
    assert_eq!(run(1, 8, 8, 0), Ok(()), "a short one waits for its receive");
    let (status, text) = run(1, 80, 8, 0).unwrap_err();
    let waits = "waits since 50 ns for rank 0, itself, to receive its message of 80 bytes, tag 7";
    assert!(status == 1 && text.contains(waits), "{text}");
}
