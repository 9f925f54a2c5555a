//! A design outside nicety: its registration is enough for programs, benchmarks and recordings.

mod card;

use card::Rings;
use nicety::record::Level;
use nicety::{Cluster, ClusterConfig, Compiled, Environment, Error, cards};
use nicety_bench::{self as bench, Benchmark, Request};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

const SPEC: &str = include_str!("own_design/two-rings.toml");

/// The spec as a file, with its design registered.
fn file() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        nicety::designs::register(&Rings);
        let path = std::env::temp_dir().join(format!("two-rings-{}.toml", std::process::id()));
        std::fs::write(&path, SPEC).unwrap();
        path
    })
}

fn load(overrides: &[&str]) -> Result<cards::Card, Error> {
    cards::load(file().to_str().unwrap(), &overrides.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
}

fn cluster(nodes: u32) -> Cluster {
    let topology = if nodes == 2 { nicety::Topology::Pair } else { nicety::Topology::Star };
    Cluster::new(ClusterConfig {
        topology,
        recording: Level::Everything,
        ..ClusterConfig::new(nodes, load(&[]).unwrap())
    })
    .unwrap()
}

#[test]
fn a_program_sends_and_receives_whatever_comes_first() {
    let mut cluster = cluster(3);
    for rank in 1..3u32 {
        cluster.program(rank, move |host| async move {
            let buffer = host.alloc(10_000)?;
            buffer.write(0, &[rank as u8; 10_000]);
            host.send(&buffer, 0, rank.into()).await?;
            host.send(&buffer.slice(0, 5)?, 0, 7).await
        });
    }
    cluster.program(0, |host| async move {
        let buffer = host.alloc(10_000)?;
        // Long after the arrival of both, and in reverse order.
        host.compute(nicety::Duration::from_us(50)).await;
        for rank in [2, 1] {
            let received = host.recv(&buffer, None, Some(rank.into())).await?;
            assert_eq!((received.source, received.length), (rank, 10_000));
            assert_eq!(buffer.read(0, 10_000), [rank as u8; 10_000]);
            assert_eq!(host.recv(&buffer, Some(rank), None).await?.length, 5);
        }
        Ok(())
    });
    let run = cluster.run().unwrap();
    assert_eq!(run.recording.message_count(), 4);
    // Its own stages have columns, beside those that every node has. Other designs' stages have none.
    let columns = run.recording.messages_table().schema();
    for (column, there) in [("ring_queued_ps", true), ("link_ps", true), ("match_ps", false)] {
        assert_eq!(columns.field_with_name(column).is_ok(), there, "{column}");
    }
}

fn report(request: &Request) -> bench::Report {
    let (compiled, progress) = (Compiled::default(), |_, _| {});
    let log: nicety::Log = Arc::new(|line| panic!("nothing prints: {line}"));
    bench::run(
        request,
        &Environment { log, progress: &progress, compiled: &compiled, ..Environment::default() },
    )
    .unwrap()
}

#[test]
fn the_benchmarks_measure_it_beside_others() {
    let own = file().to_str().unwrap();
    let report = |benchmark, nics: &[&str]| report(&Request::new(benchmark, nics, &[8, 65_536]));
    let alone = report(Benchmark::Latency, &[own]);
    let row = &alone.rows[0];
    assert_eq!((row.nic.as_str(), row.mode, row.verified), ("two-rings", "auto", true));
    let stages = row.stages.as_ref().unwrap();
    let stage = |name: &str| stages.iter().find(|stage| stage.stage == name).map_or(0.0, |stage| stage.ns);
    // A doorbell; the request and the bytes of a fetch; 24 bytes of packet; a copy. The copy's line is read from memory (50 ns)
    // and written: 128 bytes at 150 GiB/s.
    for (name, ns) in [
        ("post", 65.0),
        ("bus", 250.0),
        ("fetch", 500.125),
        ("link", 33.88),
        ("deposit", 250.125),
        ("notice", 65.0),
        ("copy", 50.795),
    ] {
        assert_eq!(stage(name), ns, "{name}");
    }
    let sum: f64 = stages.iter().map(|stage| stage.ns).sum();
    assert!((sum - row.latency_ns.unwrap()).abs() < 1e-6, "{sum}");
    let several = report(Benchmark::Bandwidth, &["spin-discrete", own, "nfp-4000", "qnix"]);
    let rate = |nic: &str| {
        let row = several.rows.iter().find(|row| row.nic == nic && row.size_bytes == 65_536).unwrap();
        row.bandwidth_bytes_per_s.unwrap()
    };
    assert!((1e9..50e9).contains(&rate("two-rings")), "{}", rate("two-rings"));
}

#[test]
fn its_file_is_read_and_its_mistakes_are_told() {
    let card = load(&["rings.descriptors=4"]).unwrap();
    let value = card
        .listing
        .parameters
        .iter()
        .find(|parameter| (&*parameter.section, &*parameter.key) == ("rings", "descriptors"))
        .unwrap();
    assert_eq!(value.value, "4");
    let error = load(&["rings.packet=1 B"]).unwrap_err();
    assert!(error.exit_status() == 2 && error.to_string().contains("rings.packet"), "{error}");
    let counter = cluster(2).host(0).portals().err().unwrap().to_string();
    let expected =
        "a card of design rings has no Portals interface, but descriptor rings; name one of design portals";
    assert!(counter.contains(expected), "{counter}");
}

#[test]
fn a_recording_has_its_stages_and_opens_as_a_timeline() {
    let mut cluster = cluster(2);
    cluster.program(0, |host| async move { host.send(&host.alloc(9000)?, 1, 1).await });
    cluster.program(1, |host| async move { host.recv(&host.alloc(9000)?, None, None).await.map(|_| ()) });
    let recording = cluster.run().unwrap().recording;
    let (messages, stages) = recording.breakdown();
    assert_eq!((messages, recording.message_count(), recording.packets.len()), (1, 1, 3));
    assert!(stages.iter().any(|stage| stage.stage.name() == "fetch"));
    assert!(!recording.timeline(Default::default()).is_empty());
}

#[test]
fn a_receive_without_a_message_is_a_deadlock_with_its_reason() {
    let mut cluster = cluster(2);
    cluster.program(0, |host| async move { host.recv(&host.alloc(8)?, Some(1), Some(3)).await.map(|_| ()) });
    let error = cluster.run().unwrap_err();
    assert!(matches!(error, Error::Deadlock(_)), "{error}");
}
