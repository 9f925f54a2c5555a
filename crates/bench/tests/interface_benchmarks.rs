//! Benchmarks of a card with virtual network interfaces: the modes of latency and bandwidth, registration, and fairness.

use nicety::{Environment, Error, Log};
use nicety_bench::{self as bench, Benchmark, Report, Request, fairness, registration};
use std::sync::Arc;

fn in_environment<T>(run: impl FnOnce(&Environment<'_>) -> T) -> T {
    let (compiled, progress) = (nicety::Compiled::default(), |_, _| {});
    let log: Log = Arc::new(|line| panic!("nothing prints: {line}"));
    run(&Environment { log, progress: &progress, compiled: &compiled, ..Environment::default() })
}

fn measure(request: &Request) -> Result<Report, Error> {
    in_environment(|environment| bench::run(request, environment))
}

fn request(benchmark: Benchmark, nics: &[&str], modes: &[&str], sizes: &[u64]) -> Request {
    let modes = (!modes.is_empty()).then(|| modes.iter().map(|&mode| mode.to_owned()).collect());
    Request { modes, ..Request::new(benchmark, nics, sizes) }
}

const MODES: [&str; 5] = ["auto", "pio", "dma", "copy", "translate"];

/// Returns the latency of a mode for each size.
fn latencies(report: &Report, mode: &str) -> Vec<(u64, f64)> {
    let of_mode = report.rows.iter().filter(|row| row.mode == mode);
    of_mode.map(|row| (row.size_bytes, row.latency_ns.unwrap())).collect()
}

#[test]
fn every_latency_has_its_stages() {
    let report =
        measure(&request(Benchmark::Latency, &["qnix"], &MODES, &[0, 8, 1024, 4096, 1 << 20])).unwrap();
    for row in &report.rows {
        assert!(row.verified);
        let stages: f64 = row.stages.as_ref().unwrap().iter().map(|stage| stage.ns).sum();
        assert!((stages - row.latency_ns.unwrap()).abs() < 1e-6, "{} at {}", row.mode, row.size_bytes);
    }
    // Mode pio has no rows above its limit; the other modes have.
    assert_eq!(latencies(&report, "pio").len(), 3);
    assert_eq!(latencies(&report, "dma").len(), 5);
    let at = |mode: &str, size: u64| latencies(&report, mode).iter().find(|(own, _)| *own == size).unwrap().1;
    // Programmed I/O is faster for a few bytes. For a page, translation is faster than a copy.
    assert!(at("pio", 8) < at("dma", 8));
    assert!(at("pio", 1024) > at("dma", 1024));
    assert!(at("translate", 4096) < at("copy", 4096));
    assert_eq!(at("auto", 4096), at("translate", 4096));
    // Post and bus take 1 us, header and packet 0.86 us, doorbell 0.84 us, notice 0.15 us. The rest is the control program.
    assert!((3600.0..3800.0).contains(&at("auto", 0)), "{}", at("auto", 0));
}

#[test]
fn sizes_beyond_a_cards_limit_are_left_out() {
    let report = measure(&request(Benchmark::Latency, &["qnix"], &[], &[2 << 20, 4 << 20])).unwrap();
    assert_eq!(report.rows.iter().map(|row| row.size_bytes).collect::<Vec<_>>(), [2 << 20]);
    let both = measure(&request(Benchmark::Latency, &["qnix", "apenet-v5"], &[], &[8, 4 << 20])).unwrap();
    let rows: Vec<_> = both.rows.iter().map(|row| (row.nic.as_str(), row.size_bytes)).collect();
    assert_eq!(rows, [("qnix", 8), ("apenet-v5", 8), ("apenet-v5", 4 << 20)]);
    let error = measure(&request(Benchmark::Latency, &["qnix"], &[], &[4 << 20])).unwrap_err();
    assert_eq!(error.to_string(), "qnix cannot send messages of these sizes; the maximum is 2097152 bytes");
    assert_eq!(error.exit_status(), 2);
}

#[test]
fn windows_in_every_mode_and_both_ways() {
    for pattern in ["pair", "bidirectional", "incast:3"] {
        for benchmark in [Benchmark::Bandwidth, Benchmark::MessageRate] {
            let sizes = &[0, 1024, 65_536, 1 << 20];
            let request = Request {
                pattern: pattern.into(),
                iterations: Some(2),
                window: Some(if pattern == "pair" { 16 } else { 3 }),
                ..request(benchmark, &["qnix"], &MODES, sizes)
            };
            let report = measure(&request).unwrap();
            assert_eq!(report.rows.len(), 4 * 4 + 2, "pio ends at 1024");
            for row in report.rows.iter().filter(|row| row.size_bytes == 1 << 20) {
                let Some(rate) = row.bandwidth_bytes_per_s else { continue };
                // 4096 of 4128 bytes on the link are payload. In a bidirectional pattern, both directions share the bus.
                let most = if pattern == "bidirectional" { 284.5e6 } else { 198.45e6 };
                assert!((0.8 * most..most).contains(&rate), "{pattern}, {}: {rate}", row.mode);
            }
        }
    }
}

#[test]
fn cards_of_several_designs_share_a_table() {
    let report =
        measure(&request(Benchmark::Latency, &["qnix", "nfp-4000", "spin-discrete"], &[], &[8, 4096]));
    let rows = report.unwrap().rows;
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row.mode == "auto" && row.stages.is_some()));
    let discrete = rows.iter().find(|row| row.nic == "spin-discrete" && row.size_bytes == 8).unwrap();
    assert_eq!(discrete.latency_ns, Some(693.685), "as in mode rdma");
}

#[test]
fn modes_that_a_card_has_not_are_refused() {
    for (nics, modes, expected) in [
        (&["spin-discrete"][..], &["pio"][..], ["spin-discrete has no mode pio", "rdma"]),
        (&["qnix"], &["rdma"], ["qnix has no mode rdma", "pio, dma, copy, translate, auto"]),
        (&["qnix", "spin-discrete"], &["pio"], ["spin-discrete has no mode pio", "auto"]),
        (&["qnix"], &["dna"], ["no mode 'dna'", "dma"]),
    ] {
        let error = measure(&request(Benchmark::Latency, nics, modes, &[8])).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        assert!(expected.iter().all(|part| error.to_string().contains(part)), "{error}");
    }
    let long = measure(&request(Benchmark::Latency, &["qnix"], &["dma"], &[(2 << 20) + 1])).unwrap_err();
    assert_eq!(long.exit_status(), 2);
    assert!(long.to_string().contains("the maximum is 2097152"), "{long}");
}

#[test]
fn registration_by_hand() {
    let request = |nics: &[&str], sizes: &[u64]| registration::Request {
        nics: nics.iter().map(|&nic| nic.to_owned()).collect(),
        sizes: sizes.to_vec(),
        overrides: vec![],
    };
    let run = |request| in_environment(|environment| registration::run(&request, environment));
    let report = run(request(&["qnix"], &[64, 4096, 4097, 2 << 20])).unwrap();
    let rows: Vec<_> =
        report.rows.iter().map(|row| (row.size_bytes, row.pages, row.copy_ns, row.translate_ns)).collect();
    // A copy has 700 MB/s. A translation takes 1500 ns for the call and 520 ns for the pages. Then the bus carries the
    // descriptors, two per burst. One takes 2 + 30 clocks, two take 2 + 18, and 512 take 2 + 256 x 18.
    let expected = [
        (64, 1, 91.429, 1500.0 + 520.0 + 32.0 * 15.0),
        (4096, 1, 5851.429, 2500.0),
        (4097, 2, 5852.858, 1500.0 + 520.0 + 20.0 * 15.0),
        (2 << 20, 512, 2_995_931.429, 1500.0 + 520.0 + (2.0 + 256.0 * 18.0) * 15.0),
    ];
    assert_eq!(rows, expected);
    // The crossover: 700 MB/s x 2.5 us.
    assert_eq!(report.crossovers[0].crossover_bytes, Some(1750));
    assert_eq!(run(request(&["qnix"], &[64, 1000])).unwrap().crossovers[0].crossover_bytes, None);

    let other = run(request(&["nfp-4000"], &[64, 2 << 20])).unwrap();
    assert!(other.crossovers[0].crossover_bytes.is_some());
    for (nics, sizes, expected) in [
        (&["spin-discrete"][..], &[64][..], "does not register memory"),
        (&["qnix"], &[0], "registers 1 to 2097152 bytes"),
        (&["qnix"], &[], "no size named"),
    ] {
        let error = run(request(nics, sizes)).unwrap_err();
        assert!(error.exit_status() == 2 && error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn every_process_gets_its_share() {
    let request = |processes: &[u64]| fairness::Request {
        nics: vec!["qnix".into()],
        processes: processes.to_vec(),
        size: 16 << 10,
        messages: 8,
        overrides: vec![],
    };
    let run = |request| in_environment(|environment| fairness::run(&request, environment));
    let rows = run(request(&[1, 7, 64])).unwrap().rows;
    for row in &rows {
        assert!(row.verified && row.jain_index > 0.98 && row.jain_index <= 1.0 + 1e-9, "{row:?}");
        assert!(row.process_min_bytes_per_s <= row.process_mean_bytes_per_s);
        assert!(row.process_mean_bytes_per_s <= row.process_max_bytes_per_s * (1.0 + 1e-9));
        assert!(row.bandwidth_bytes_per_s < 198.5e6);
    }
    assert!(rows[2].bandwidth_bytes_per_s > 190e6, "{:?}", rows[2]);
    for (wrong, expected) in [(&[65][..], "interfaces for 1 to 64"), (&[], "no number of processes")] {
        let error = run(request(wrong)).unwrap_err();
        assert!(error.exit_status() == 2 && error.to_string().contains(expected), "{error}");
    }
}
