//! A design outside nicety: its registration is enough for programs, benchmarks and recordings.

use nicety::record::Level;
use nicety::{Cluster, ClusterConfig, Compiled, Environment, Error, Faults, Rates, cards};
use nicety_bench::{self as bench, Benchmark, Request};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

const SPEC: &str = include_str!("../ring.toml");

/// The spec as a file, with its design registered.
fn file() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        nicety::designs::register(nicety_nic_ring::DESIGN);
        let path = std::env::temp_dir().join(format!("ring-{}.toml", std::process::id()));
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
    assert_eq!((row.nic.as_str(), row.mode, row.verified), ("ring", "auto", true));
    let stages = row.stages.as_ref().unwrap();
    let stage = |name: &str| stages.iter().find(|stage| stage.stage == name).map_or(0.0, |stage| stage.ns);
    let worked = table("| stage | where it comes from | ns |");
    assert_eq!(worked.len(), 9);
    for row in &worked[..8] {
        assert_eq!(format!("{:.3}", stage(&row[0])), row[2], "{}", row[0]);
    }
    assert_eq!(format!("**{:.3}**", row.latency_ns.unwrap()), worked[8][2]);
    let sum: f64 = stages.iter().map(|stage| stage.ns).sum();
    assert!((sum - row.latency_ns.unwrap()).abs() < 1e-6, "{sum}");
    let several = report(Benchmark::Bandwidth, &["spin-discrete", own, "nfp-4000", "qnix"]);
    let rate = |nic: &str| {
        let row = several.rows.iter().find(|row| row.nic == nic && row.size_bytes == 65_536).unwrap();
        row.bandwidth_bytes_per_s.unwrap()
    };
    assert!((1e9..50e9).contains(&rate("ring")), "{}", rate("ring"));
}

#[test]
fn its_file_chooses_among_parts() {
    let run = |overrides: &[&str]| {
        let rates = Rates { loss: 0.1, duplication: 0.1, ..Rates::default() };
        let faults = Faults { rates, ..Faults::default() };
        let config = ClusterConfig { faults, ..ClusterConfig::new(2, load(overrides).unwrap()) };
        let mut cluster = Cluster::new(ClusterConfig { topology: nicety::Topology::Pair, ..config }).unwrap();
        cluster.program(0, async |host| {
            let buffer = host.alloc(100_000)?;
            buffer.write(0, &[7; 100_000]);
            host.send(&buffer, 1, 1).await
        });
        cluster.program(1, async |host| {
            let buffer = host.alloc(100_000)?;
            assert_eq!(host.recv(&buffer, None, None).await?.length, 100_000);
            assert_eq!(buffer.read(0, 100_000), [7; 100_000]);
            Ok(())
        });
        cluster.run().map(|run| run.end)
    };
    let reliable = "transport.reliable=true";
    let lost = run(&[]).unwrap_err().to_string();
    assert!(lost.contains("transport.reliable is false"), "{lost}");
    let slow = ["dma.channels=1", "dma.setup=2 us"];
    let times: Vec<_> = [&[][..], &["bus.kind=pcie"], &slow]
        .map(|choice| run(&[&[reliable], choice].concat()).unwrap())
        .to_vec();
    assert!(times[0] != times[1] && times[2] > times[0], "{times:?}");
}

#[test]
fn its_file_is_read_and_its_mistakes_are_told() {
    let card = load(&["ring.buffers=4"]).unwrap();
    let value = card
        .listing
        .parameters
        .iter()
        .find(|parameter| (&*parameter.section, &*parameter.key) == ("ring", "buffers"))
        .unwrap();
    assert_eq!(value.value, "4");
    let error = load(&["ring.packet=1 B"]).unwrap_err();
    assert!(error.exit_status() == 2 && error.to_string().contains("ring.packet"), "{error}");
    let counter = cluster(2).host(0).portals().err().unwrap().to_string();
    let expected = "a card of design ring has no Portals interface, but a ring of buffers; name a card of design portals";
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

/// The page about the card.
fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cards/adding.md")).unwrap()
}

/// The cells of the page's table with this first line.
fn table(heading: &str) -> Vec<Vec<String>> {
    let page = page();
    let rows = page.split_once(heading).unwrap().1.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect())
        .collect()
}

#[test]
fn the_page_shows_the_files_of_this_crate() {
    let page = page();
    for name in ["Cargo.toml", "src/lib.rs", "ring.toml"] {
        let opening = format!("title=\"{name}\"\n");
        let blocks = page.split(&opening).skip(1).map(|block| block.split_once("```").unwrap().0);
        let file = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
        let shown = blocks.collect::<Vec<_>>().join("\n");
        for (at, (shown, line)) in shown.lines().zip(file.lines()).enumerate() {
            assert_eq!(shown, line, "docs/cards/adding.md differs from {name} at line {}", at + 1);
        }
        assert_eq!(shown, file, "docs/cards/adding.md shows another {name}: one is longer");
    }
}
