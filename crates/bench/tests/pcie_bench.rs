//! The tests of pcie-bench. Times on a link without costs in the card are computed by hand; the rows that `nfp-6000` was
//! calibrated with come out.

use nicety::{Environment, Error};
use nicety_bench::pcie::{Report, Request, Row, run};
use proptest::prelude::*;
use serde_json::{Value, json};

fn pcie(request: Value) -> Result<Report, Error> {
    run(&Request::from_json(&request.to_string())?, &Environment::default())
}

fn rows(nic: &str, test: &str, sizes: &[u64], overrides: &[&str]) -> Vec<Row> {
    let request = json!({"nics": [nic], "tests": [test], "sizes": sizes, "overrides": overrides});
    pcie(request).unwrap().rows
}

/// A link of generation 3 with 8 lanes and 100 ns each way, without costs in the card: 126.953125 ps a byte.
const BARE: [&str; 4] = ["bus.kind=pcie", "bus.pcie.generation=3", "bus.pcie.lanes=8", "bus.latency=100 ns"];

fn close(found: Option<f64>, expected: f64, within: f64) {
    let found = found.unwrap();
    assert!((found / expected - 1.0).abs() < within, "{found} is not within {within} of {expected}");
}

#[test]
fn latencies_of_a_bare_link_by_hand() {
    // A request of 24 B takes 3.047 ns and each crossing 100 ns. A completion of 20 + 8 B takes 3.555 ns.
    assert_eq!(rows("spin-discrete", "LAT_DMA_RD", &[8], &BARE)[0].median_ns, Some(206.602));
    // The first completion has 20 + 256 B, 35.040 ns, and the last one of 2 ends after 70.080 ns.
    assert_eq!(rows("spin-discrete", "LAT_DMA_RD", &[512], &BARE)[0].median_ns, Some(273.127));
    // A write of 24 + 8 B takes 4.063 ns, and the read follows it.
    assert_eq!(rows("spin-discrete", "LAT_CMD_WRRD", &[8], &BARE)[0].median_ns, Some(210.665));
    // The card continues when the write has left. Then it reads.
    assert_eq!(rows("spin-discrete", "LAT_DMA_WRRD", &[8], &BARE)[0].median_ns, Some(210.665));
}

#[test]
fn the_rows_of_the_calibration_come_out() {
    let timestamp = 16.0 / 1.2;
    for (test, published) in [
        ("LAT_CMD_RD", &[(8, 413.333, 419.0), (64, 440.0, 436.2)][..]),
        ("LAT_CMD_WRRD", &[(8, 533.333, 530.8), (64, 546.667, 546.7)][..]),
        ("LAT_DMA_RD", &[(8, 546.667, 545.2), (2048, 1133.333, 1139.0)][..]),
        ("LAT_DMA_WRRD", &[(8, 760.0, 762.2), (2048, 1853.333, 1865.1)][..]),
    ] {
        let sizes: Vec<u64> = published.iter().map(|&(size, ..)| size).collect();
        for (row, &(_, median, mean)) in rows("nfp-6000", test, &sizes, &[]).iter().zip(published) {
            // A timestamp has steps, and a median is one of them.
            assert!((row.median_ns.unwrap() - median).abs() < timestamp + 0.01, "{row:?}");
            close(row.mean_ns, mean, 0.003);
        }
    }
    close(rows("nfp-6000", "BW_DMA_RD", &[64], &[])[0].bandwidth_gbit_per_s, 32.094, 0.003);
    close(rows("nfp-6000", "BW_DMA_WR", &[64], &[])[0].bandwidth_gbit_per_s, 24.269, 0.001);
    close(rows("nfp-6000", "BW_DMA_WR", &[192], &[])[0].bandwidth_gbit_per_s, 40.421, 0.001);
}

/// A test of one size on a bare link with further keys.
fn engines(test: &str, size: u64, keys: &[&str]) -> Row {
    rows("spin-discrete", test, &[size], &[&BARE, keys].concat())[0].clone()
}

#[test]
fn a_write_waits_for_its_moves_and_takes_a_turn_by_hand() {
    let keys =
        ["bus.engines.write_line=128 B", "bus.engines.write_move=30 ns", "bus.commands.clock=1000 GHz"];
    // Moves end after 30, 60, 90 and 120 ns. The second TLP of 280 B leaves from 120 to 155.547 ns.
    // The read's request of 24 B takes 3.047 ns, each crossing 100 ns, and two completions of 276 B 70.080 ns.
    assert_eq!(engines("LAT_DMA_WRRD", 512, &keys).median_ns, Some(428.674));
    // One move has a part of a word too: 30 ns. A TLP of 24 + 64 B takes 11.172 ns, a completion of 20 + 64 B 10.665 ns.
    assert_eq!(engines("LAT_DMA_WRRD", 63, &keys).median_ns, Some(254.884));
    // Shared parts are idle: only the read's request behind the write takes a turn.
    let shared = [&keys[..], &["bus.engines.write_gap=20 ns", "bus.engines.turn=5 ns"]].concat();
    assert_eq!(engines("LAT_DMA_WRRD", 512, &shared).median_ns, Some(433.674));
}

#[test]
fn writes_share_the_start_of_their_moves() {
    let shared = ["bus.engines.write_line=128 B", "bus.engines.write_gap=20 ns", "bus.engines.turn=5 ns"];
    let keys = [&["bus.engines.count=2"], &shared[..]].concat();
    for (size, time) in [(16, 25e-9), (128, 25e-9), (129, 45e-9), (257, 65e-9), (513, 105e-9)] {
        close(engines("BW_DMA_WR", size, &keys).transfers_per_s, 1.0 / time, 0.001);
    }
    // Reads do not use it.
    assert_eq!(engines("BW_DMA_RD", 512, &keys[..3]), engines("BW_DMA_RD", 512, &keys[..1]));
}

#[test]
fn transactions_of_reads_and_writes_take_turns_by_hand() {
    let keys = ["bus.engines.transaction=512 B", "bus.engines.turn=5 ns"];
    let rate = |test, size| engines(test, size, &keys).transfers_per_s;
    // A TLP of 24 + 64 B takes 11.172 ns, one of 24 + 256 B 35.547 ns, and a request of 24 B 3.047 ns.
    close(rate("BW_DMA_WR", 64), 1.0 / 16.172e-9, 0.004);
    close(rate("BW_DMA_WR", 512), 1.0 / 76.094e-9, 0.004);
    close(rate("BW_DMA_WR", 1024), 1.0 / 152.188e-9, 0.004);
    // A pair has a write and a request. Ordered sets take one block of 375.
    close(rate("BW_DMA_RW", 64), 1.0 / 24.219e-9, 0.004);
    // A transaction of 256 B is one TLP.
    let smaller = [&keys[1..], &["bus.engines.transaction=256 B"]].concat();
    close(engines("BW_DMA_WR", 512, &smaller).transfers_per_s, 1.0 / 81.094e-9, 0.004);
}

#[test]
fn a_transaction_is_a_power_of_two() {
    let overrides = [&BARE[..], &["bus.engines.transaction=384 B"]].concat();
    let request = json!({"nics": ["spin-discrete"], "sizes": [8], "overrides": overrides});
    let message = pcie(request).unwrap_err().to_string();
    assert!(message.contains("a transaction of 384 B is no power of two"), "{message}");
}

#[test]
fn each_host_has_its_constant() {
    for (nic, median) in [
        ("nfp-6000-bdw-e5-2630v4", 546.667),
        ("nfp-6000-hsw-e5-2637v3", 586.667),
        ("nfp-6000-hsw-e3-1226v3", 1226.667),
    ] {
        close(rows(nic, "LAT_DMA_RD", &[8], &[])[0].median_ns, median, 0.0001);
    }
}

#[test]
fn a_cold_cache_costs_a_miss_and_a_written_line_does_not() {
    let found = |test, cache, window: u64, overrides: &[&str]| {
        let request = json!({"nics": ["nfp-6000"], "tests": [test], "sizes": [64], "caches": [cache],
            "windows": [window], "patterns": ["rand"], "overrides": overrides});
        pcie(request).unwrap().rows[0].mean_ns.unwrap()
    };
    let step = ["bus.commands.step=1"];
    let warm = found("LAT_DMA_RD", "hwarm", 8192, &step);
    assert!((found("LAT_DMA_RD", "cold", 8192, &step) - warm - 51.0).abs() < 1.0);
    // The card's own writes are in the cache, as long as its ways hold them: 1.5 MiB of 15 MiB.
    assert!((found("LAT_DMA_RD", "dwarm", 1 << 20, &step) - warm).abs() < 1.0);
    assert!(found("LAT_DMA_RD", "dwarm", 4 << 20, &step) - warm > 25.0);
    // The host's writes are in all ways. A window of 64 MiB is cached in part.
    assert!((found("LAT_DMA_RD", "hwarm", 8 << 20, &step) - warm).abs() < 1.0);
    assert!(found("LAT_DMA_RD", "hwarm", 64 << 20, &step) - warm > 25.0);
    // Without DDIO, the bytes that the card wrote are read from memory.
    let own = found("LAT_DMA_WRRD", "cold", 8192, &step);
    let without = found("LAT_DMA_WRRD", "cold", 8192, &["bus.commands.step=1", "bus.memory.io_ways=0"]);
    assert!((without - own - 51.0).abs() < 1.0);
}

/// The mean of a test of 8 B at random addresses of a window, on a bare link with further keys.
fn random(test: &str, window: u64, keys: &[&str]) -> Row {
    let overrides = [&BARE, keys].concat();
    let request = json!({"nics": ["spin-discrete"], "tests": [test], "sizes": [8], "windows": [window],
        "patterns": ["rand"], "overrides": overrides});
    pcie(request).unwrap().rows[0].clone()
}

#[test]
fn another_socket_costs_two_crossings_of_a_read() {
    let remote = [&BARE[..], &["bus.memory.remote=50 ns"]].concat();
    assert_eq!(rows("spin-discrete", "LAT_DMA_RD", &[8], &remote)[0].median_ns, Some(306.602));
    // The read follows the write to the other socket, and costs the same two.
    assert_eq!(rows("spin-discrete", "LAT_CMD_WRRD", &[8], &remote)[0].median_ns, Some(310.665));
}

const IOMMU: [&str; 4] =
    ["bus.iommu.entries=64", "bus.iommu.page=4 KiB", "bus.iommu.walk=330 ns", "bus.iommu.walkers=1"];

#[test]
fn an_iommu_walks_for_windows_larger_than_its_tlb() {
    let mean = |window, keys: &[&str]| random("LAT_DMA_RD", window, keys).mean_ns;
    close(mean(64 * 4096, &IOMMU), 206.602, 1e-9);
    // Half of the accesses miss.
    close(mean(128 * 4096, &IOMMU), 206.602 + 165.0, 0.05);
    // Larger pages reach further.
    let large = [&IOMMU[..], &["bus.iommu.page=2 MiB"]].concat();
    close(mean(64 << 20, &large), 206.602, 1e-9);
    // The read behind a write waits for the same walk: 4.063 + 100 + 330, a completion of 3.555 and 100 ns.
    let one = [&IOMMU[..], &["bus.iommu.entries=1"]].concat();
    let row = random("LAT_CMD_WRRD", 64 << 20, &one);
    assert_eq!(row.median_ns, Some(537.618));
}

#[test]
fn walkers_limit_the_rate_of_missing_reads() {
    let rate = |walkers: &str| {
        let keys = [&IOMMU[..], &["bus.iommu.entries=1", walkers]].concat();
        random("BW_DMA_RD", 64 << 20, &keys).transfers_per_s
    };
    close(rate("bus.iommu.walkers=1"), 1.0 / 330e-9, 0.01);
    close(rate("bus.iommu.walkers=2"), 2.0 / 330e-9, 0.01);
}

#[test]
fn wrong_keys_of_an_iommu_are_refused() {
    let wrong = |keys: &[&str]| {
        let overrides = [&BARE[..], &IOMMU[..], keys].concat();
        pcie(json!({"nics": ["spin-discrete"], "sizes": [8], "overrides": overrides}))
            .unwrap_err()
            .to_string()
    };
    assert!(wrong(&["bus.iommu.page=12 KiB"]).contains("a page of 12288 B is no power of two"));
    assert!(wrong(&["bus.iommu.walkers=0"]).contains("bus.iommu.walkers"));
    let plain = json!({"nics": ["spin-discrete"], "sizes": [8], "overrides": IOMMU});
    let message = pcie(plain).unwrap_err().to_string();
    assert!(message.contains("this key is for PCI Express, but the bus is a plain one"), "{message}");
}

#[test]
fn few_tags_limit_reads() {
    // A tag is held for 3.047 + 100 + 127.63 + 10.664 + 100 = 341.3 ns.
    let row = &rows("nfp-6000", "BW_DMA_RD", &[64], &["bus.pcie.tags=4"])[0];
    close(row.transfers_per_s, 4.0 / 341.34e-9, 0.01);
}

#[test]
fn invalid_points_are_refused() {
    let wrong = |changes: Value| {
        let mut request = json!({"nics": ["nfp-6000"], "sizes": [64]});
        request.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        pcie(request).unwrap_err().to_string()
    };
    assert_eq!(
        wrong(json!({"tests": ["LAT"]})),
        "--test LAT: write one of LAT_CMD_RD, LAT_CMD_WRRD, LAT_DMA_RD, LAT_DMA_WRRD, BW_DMA_RD, BW_DMA_WR, BW_DMA_RW"
    );
    assert_eq!(
        wrong(json!({"tests": ["LAT_CMD_RD"], "sizes": [66]})),
        "--sizes 66: a command of nfp-6000 moves 4 to 64 B in steps of 4 (LAT_CMD_RD)"
    );
    assert_eq!(
        wrong(json!({"sizes": [4096], "windows": [8192], "host_offsets": [1]})),
        "--sizes 4096: with offset 1, a transfer has at least 1 B and ends within 4096 B (the window or a \
         page)"
    );
    assert_eq!(
        wrong(json!({"windows": [100]})),
        "--windows 100: write a multiple of 64 up to 67108864 bytes"
    );
    let upper = json!({"nics": ["nfp-4000"], "sizes": [64], "caches": ["HWARM"], "overrides": BARE});
    assert!(pcie(upper).is_ok());
    assert_eq!(wrong(json!({"caches": ["warm"]})), "--cache warm: write one of hwarm, dwarm, cold, dthrash");
    assert_eq!(
        wrong(json!({"nics": ["spin-discrete"]})),
        "card spin-discrete is not on PCI Express; name one with bus.kind = \"pcie\", for example nfp-6000, or write --set \
         bus.kind=pcie"
    );
    assert_eq!(
        wrong(json!({"nics": ["nfp-4000"], "caches": ["cold"]})),
        "--cache: the spec of nfp-4000 has no host cache; add [bus.memory] to it, or write --cache hwarm"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24 * ProptestConfig::default().cases / 256))]

    #[test]
    fn a_longer_transfer_is_no_faster(size in 1u64..2000, more in 1u64..2000, offset in 0u64..64) {
        let of = |test: &str, size| {
            let request = json!({"nics": ["nfp-6000"], "tests": [test], "sizes": [size], "host_offsets": [offset],
                "samples": 16, "overrides": ["bus.commands.step=1"]});
            pcie(request).unwrap().rows[0].mean_ns.unwrap()
        };
        for test in ["LAT_DMA_RD", "LAT_DMA_WRRD"] {
            // A transfer of whole words needs fewer moves than one that ends in a part of a word.
            let (short, long) = (of(test, size.next_multiple_of(8)), of(test, (size + more).next_multiple_of(8)));
            prop_assert!(long > short - 2.0, "{test}: {short} and {long}");
        }
    }
}
