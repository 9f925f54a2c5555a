//! Tests the spellings, errors and printing of quantities.

use super::*;
use proptest::prelude::*;

#[test]
fn quantities_are_exact() {
    assert_eq!(parse_time("6.7 ns"), Ok(Duration::from_ps(6_700)));
    assert_eq!(parse_time("400ps"), Ok(Duration::from_ps(400)));
    assert_eq!(parse_time(" 1.5 us "), Ok(Duration::from_ps(1_500_000)));
    assert_eq!(parse_time("2 ms"), Ok(Duration::from_us(2_000)));
    assert_eq!(parse_time("3 \u{b5}s"), Ok(Duration::from_us(3)));
    assert_eq!(parse_time("0 ns"), Ok(Duration::ZERO));
    assert_eq!(parse_gap("15.6 ps/B"), Ok(Gap::new(78, 5)));
    assert_eq!(parse_gap("400 Gb/s"), Ok(Gap::new(20, 1)));
    assert_eq!(parse_gap("285 MB/s"), Ok(Gap::from_bytes_per_s(285_000_000)));
    assert_eq!(parse_gap("150 GiB/s"), Ok(Gap::from_bytes_per_s(150 << 30)));
    assert_eq!(parse_gap("0 ps/B"), Ok(Gap::ZERO));
    assert_eq!(parse_gap("1/3 ps/B"), Ok(Gap::new(1, 3)));
    assert_eq!(parse_frequency("2.5 GHz"), Ok(Frequency::from_hz(2_500_000_000)));
    assert_eq!(parse_size("4 KiB"), Ok(4_096));
    assert_eq!(parse_size("1.5 KiB"), Ok(1_536));
    assert_eq!(parse_size("2 MB"), Ok(2_000_000));
}

#[track_caller]
fn refused<T: std::fmt::Debug>(parsed: Result<T, UnitError>, expected: &str) {
    assert_eq!(parsed.unwrap_err().to_string(), expected);
}

#[test]
fn a_wrong_time_gets_a_suggestion() {
    refused(parse_time("250"), "a time needs a unit (ps, ns, us, ms, s)");
    refused(parse_time("fast"), "expected a time: a number and a unit (ps, ns, us, ms, s)");
    refused(parse_time("-5 ns"), "a time cannot be negative");
    refused(parse_time("0.0334 ns"), "0.0334 ns is not a whole number of picoseconds: write \"33 ps\"");
    refused(parse_time("4 KiB"), "expected a time (ps, ns, us, ms, s), but 4 KiB is a size");
    refused(parse_time("250 NS"), "\"NS\" is not a unit of time (ps, ns, us, ms, s): write \"250 ns\"");
    refused(parse_time("1.2.3 ns"), "1.2.3 is not a number");
    refused(parse_time("1,5 ns"), "1,5 is not a number: the decimal point is '.'");
    refused(parse_time("1e3 ns"), "\"e3 ns\" is not a unit of time (ps, ns, us, ms, s)");
    refused(parse_time("99999999999 s"), "99999999999 s has more digits than 64 bits hold");
    refused(
        parse_time("99999999999999.5 ps"),
        "99999999999999.5 ps is not a whole number of picoseconds: write \"100 s\"",
    );
}

#[test]
fn wrong_sizes_gaps_and_frequencies_too() {
    refused(parse_size("4096"), "a size needs a unit (B, KiB, MiB, GiB): write \"4096 B\"");
    refused(parse_size("4 kib"), "\"kib\" is not a unit of size (B, KiB, MiB, GiB): write \"4 KiB\"");
    refused(parse_size("4 bytes"), "\"bytes\" is not a unit of size (B, KiB, MiB, GiB): write \"4 B\"");
    refused(parse_size("0.3 B"), "0.3 B is not a whole number of bytes: write \"0 B\"");
    refused(parse_size("99999999999 TiB"), "99999999999 TiB has more digits than 64 bits hold");
    refused(parse_gap("0 Gb/s"), "a bandwidth of zero moves nothing");
    refused(parse_gap("1/0 ps/B"), "1/0 is not a number");
    let gap = "gap a byte or a bandwidth (ps/B, ns/B, or a bandwidth in Gb/s, MB/s, GB/s, GiB/s)";
    refused(parse_gap("400 Gbaud"), &format!("\"Gbaud\" is not a unit of {gap}"));
    refused(parse_gap("400 GBIT/S"), &format!("\"GBIT/S\" is not a unit of {gap}: write \"400 Gbit/s\""));
    refused(parse_frequency("0 GHz"), "a clock of 0 Hz never ticks");
    refused(parse_frequency("0.5 Hz"), "0.5 Hz is not a whole number of hertz: write \"1 Hz\"");
    refused(parse_frequency("0.2 Hz"), "0.2 Hz is not a whole number of hertz");
    refused(parse_frequency("1001 GHz"), "1001 GHz is more than 1000 GHz: a cycle takes at least 1 ps");
}

#[test]
fn two_readings_are_explained_at_once() {
    let two = |unit: &str, one: &str, other: &str| {
        format!("\"{unit}\" has two readings: {one}, and {other}; write one of the two")
    };
    let bits = two("gb/s", "400 Gb/s is 20 ps/B", "400 GB/s is 2.5 ps/B");
    refused(parse_gap("400 gb/s"), &bits);
    refused(parse_rate("1 gbps"), &two("gbps", "1 Gbps is 1000000000 b/s", "1 GBps is 8000000000 b/s"));
    refused(parse_size("8kb"), &two("kb", "8 kB is 8000 B", "8 KiB is 8192 B"));
    refused(parse_bytes("4m"), &two("m", "4 M is 4000000 B", "4 Mi is 4194304 B"));
    refused(parse_count("2g"), &two("g", "2 G is 2000000000", "2 Gi is 2147483648"));
}

#[test]
fn the_usual_spellings_of_a_value_are_equal() {
    for text in ["8k", "8K", "8 K", "8kB", "8KB", "8 kB", "8000 B", "0.008 MB", "8000B"] {
        assert_eq!((parse_size(text), parse_bytes(text)), (Ok(8_000), Ok(8_000)), "{text}");
    }
    for text in ["8Ki", "8 Ki", "8KiB", "8 KiB", "8192 B", "1/128 MiB"] {
        assert_eq!((parse_size(text), parse_bytes(text)), (Ok(8_192), Ok(8_192)), "{text}");
    }
    assert_eq!((parse_bytes("4096"), parse_bytes(" 0 ")), (Ok(4_096), Ok(0)));
    for text in ["100Gb/s", "100Gbps", "100 Gbit/s", "100000 Mb/s", "0.1Tbps", "12.5 GB/s", "12.5GBps"] {
        assert_eq!(parse_gap(text), Ok(Gap::new(80, 1)), "{text}");
        assert_eq!(parse_rate(text), Ok(PerSecond::Bits(100_000_000_000)), "{text}");
    }
    for text in ["10Mpps", "10 Mpps", "10000 kpps", "10000Kpps", "10000000pps", "0.01Gpps"] {
        assert_eq!(parse_rate(text), Ok(PerSecond::Packets(10_000_000)), "{text}");
    }
    for text in ["100ns", "100 ns", "0.1us", "0.1 \u{b5}s", "100000 ps", "1/10 us"] {
        assert_eq!(parse_time(text), Ok(Duration::from_ns(100)), "{text}");
    }
    for text in ["10k", "10K", "10 k", "10000", "0.01M"] {
        assert_eq!(parse_count(text), Ok(10_000), "{text}");
    }
    for text in ["2.5GHz", "2500 MHz", "2500000kHz", "2500000 KHz"] {
        assert_eq!(parse_frequency(text), Ok(Frequency::from_hz(2_500_000_000)), "{text}");
    }
}

#[test]
fn wrong_counts_and_rates_have_a_reason() {
    refused(parse_count("1.5"), "1.5 is not a whole number");
    refused(parse_count("0.0001k"), "0.0001k is not a whole number");
    refused(parse_count("many"), "expected a whole number such as 64 or 10k");
    refused(parse_count(""), "expected a whole number such as 64 or 10k");
    refused(parse_count("99999999999999999999"), "99999999999999999999 has more digits than 64 bits hold");
    refused(parse_count("64 ns"), "expected a whole number such as 64 or 10k, but 64 ns is a time");
    let rate = "a rate needs a unit (Mb/s, Gb/s, or kpps, Mpps for packets)";
    refused(parse_rate("10"), rate);
    refused(parse_rate("0.5pps"), "0.5pps is not a whole number of packets a second");
    refused(parse_rate("0.5 b/s"), "0.5 b/s is not a whole number of bits a second");
}

#[test]
fn a_text_means_its_value_in_base_units() {
    let cases = [
        ("100 ns", "100000 ps"),
        ("8KB", "8000"),
        ("8 kB", "8000"),
        ("8k", "8000"),
        ("64 B", "64"),
        ("4Ki", "4096"),
        ("400 Gbps", "20 ps/B"),
        ("2.5 GHz", "2500000000 Hz"),
        ("5Mpps", "5000000 pps"),
        ("8", "8"),
        ("007", "007"),
        ("ns", "ns"),
        ("0 Gb/s", "0 Gb/s"),
        ("1/3 ns", "1000/3 ps"),
    ];
    for (text, meant) in cases {
        assert_eq!(in_base_unit(text), meant, "{text}");
        assert_eq!(in_base_unit(meant), meant, "{text}");
    }
}

/// The expected value of each spelling is written by hand. The table must have no other spellings.
#[test]
fn every_unit_of_the_table_is_read() {
    let mut names = 0;
    for quantity in Quantity::MEASURED {
        for (name, unit) in table::all(quantity) {
            assert_eq!(table::find(quantity, &name), Some(unit), "{name}");
            names += 1;
        }
    }
    // The terms of the sum are, in order: times, sizes, counts, bandwidths (as gap and as rate), gaps, packets per
    // second, clocks. Sizes and counts have 9 prefixes, packets and clocks 5.
    assert_eq!(names, 7 + (10 + 9) + 9 + 2 * 50 + 3 + 6 + 6);
}

#[test]
fn the_documentation_has_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/units.md");
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.contains(&markdown()), "docs/reference/units.md lacks this table:\n{}", markdown());
}

proptest! {
    #[test]
    fn printed_quantities_read_back(n in any::<u64>(), d in 1..u64::MAX, shift in 0..64u32) {
        let n = n >> shift;
        prop_assert_eq!(parse_time(&print_time(Duration::from_ps(n))), Ok(Duration::from_ps(n)));
        prop_assert_eq!(parse_size(&print_size(n)), Ok(n));
        prop_assert_eq!(parse_bytes(&print_size(n)), Ok(n));
        prop_assert_eq!(parse_count(&n.to_string()), Ok(n));
        prop_assert_eq!(parse_rate(&PerSecond::Bits(n).to_string()), Ok(PerSecond::Bits(n)));
        prop_assert_eq!(parse_rate(&PerSecond::Packets(n).to_string()), Ok(PerSecond::Packets(n)));
        prop_assert_eq!(parse_gap(&print_gap(n, d)), Ok(Gap::new(n, d)));
        let hz = n % 1_000_000_000_000 + 1;
        prop_assert_eq!(parse_frequency(&print_frequency(Frequency::from_hz(hz))), Ok(Frequency::from_hz(hz)));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*|[0-9./_,+-]{0,40} ?[a-zA-Z/]{0,5}") {
        let _ = (parse_time(&text), parse_gap(&text), parse_frequency(&text), parse_size(&text));
        let _ = (parse_bytes(&text), parse_count(&text), parse_rate(&text));
        let meant = in_base_unit(&text);
        prop_assert_eq!(in_base_unit(&meant), meant);
    }

    #[test]
    fn a_prefix_multiplies(
        n in 0..1_000_000u64,
        (prefix, factor) in prop::sample::select(vec![("k", 1_000), ("K", 1_000), ("M", 1_000_000), ("Ki", 1 << 10), ("Mi", 1 << 20)]),
        gap in prop::sample::select(vec!["", " "]),
    ) {
        let of = |unit: &str| format!("{n}{gap}{prefix}{unit}");
        prop_assert_eq!(parse_count(&of("")), Ok(n * factor));
        prop_assert_eq!(parse_size(&of("")), Ok(n * factor));
        prop_assert_eq!(parse_size(&of("B")), Ok(n * factor));
        prop_assert_eq!(parse_rate(&of("b/s")), Ok(PerSecond::Bits(n * factor)));
        prop_assert_eq!(parse_rate(&of("Bps")), Ok(PerSecond::Bits(8 * n * factor)));
    }

    #[test]
    fn decimals_are_not_rounded(whole in 0..1_000_000u64, ps in 0..1_000u64) {
        let text = format!("{whole}.{ps:03} ns");
        prop_assert_eq!(parse_time(&text), Ok(Duration::from_ps(whole * 1_000 + ps)));
    }
}
