//! Tests expressions that are accepted, and expressions that are refused.

use super::source::MOST_FLOWS;
use super::times::LATEST;
use super::*;
use crate::expression::{Addresses, Arrivals, Cut, Popularity, Ports, Protocol, Rate, Sizes, Template};
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

fn refused(text: &str) -> (String, String) {
    let error = Traffic::parse(text).expect_err(text);
    let marked = error.place().map(|at| text[at].to_owned());
    (marked.unwrap_or_default(), error.message)
}

#[test]
fn an_expression_is_read() {
    let traffic = Traffic::parse(
        "udp dport=53 src=10.0.0.0/8  flows=1M zipf=1.1 size=64:7,1514:1 rate=2.5Gbps arrivals=burst:32",
    )
    .unwrap();
    let expected = Template {
        protocol: Protocol::Udp,
        src: Addresses { first: Ipv4Addr::new(10, 0, 0, 0).into(), bits: 24 },
        dst: Addresses { first: Ipv4Addr::new(198, 19, 0, 1).into(), bits: 0 },
        sport: Ports { first: 49_152, last: 49_152 },
        dport: Ports { first: 53, last: 53 },
        flows: 1_000_000,
        popularity: Popularity::Zipf(1.1),
        sizes: Sizes::Weighted(vec![(64, 7), (1514, 1)]),
    };
    assert_eq!(traffic.source, Source::Template(expected));
    assert_eq!((traffic.rate, traffic.arrivals), (Rate::BitsPerSecond(2_500_000_000), Arrivals::Bursts(32)));
    assert_eq!(traffic.packets, Some(USUAL_PACKETS));
    let capture = Traffic::parse("capture=\"my file.pcap\" loop packets=10M rate=5Mpps cut=pad").unwrap();
    let path = "my file.pcap".into();
    assert_eq!(capture.source, Source::Capture { path, looped: true, cut: Cut::Pad });
    assert_eq!((capture.rate, capture.packets), (Rate::PacketsPerSecond(5_000_000), Some(10_000_000)));
    assert_eq!(Traffic::parse("capture=a.pcap").unwrap().packets, None);
    let Source::Template(template) = Traffic::parse("tcp imix sport=1-3").unwrap().source else { panic!() };
    assert_eq!((template.sizes, template.flows), (Sizes::imix(), 3));
}

#[test]
fn addresses_or_a_word_say_which_version_of_ip() {
    let template = |text: &str| match Traffic::parse(text).unwrap().source {
        Source::Template(template) => template,
        Source::Capture { .. } => panic!("{text}"),
    };
    let six = template("udp src=2001:db8::/32 flows=1M");
    assert_eq!(six.src, Addresses { first: "2001:db8::".parse().unwrap(), bits: 96 });
    assert_eq!(six.dst, Addresses { first: "2001:2:0:8000::1".parse().unwrap(), bits: 0 });
    assert_eq!(template("udp ip6").src, Addresses { first: "2001:2::1".parse().unwrap(), bits: 0 });
    assert_eq!(template("udp src=::/0 dst=::/0 sport=0-65535 dport=0-65535").flows, MOST_FLOWS);
    // The default size is raised to the size of the headers.
    assert_eq!(template("tcp ip6").sizes, Sizes::Weighted(vec![(74, 1)]));
    assert_eq!(template("udp ip6 imix").sizes, Sizes::Weighted(vec![(62, 7), (590, 4), (1514, 1)]));
}

#[test]
fn errors_mark_what_is_wrong_and_say_what_to_write() {
    for (text, marked, words) in [
        ("udp dprt=53", "dprt", "there is no key dprt"),
        ("upd", "upd", "words are udp, tcp"),
        ("udp poisson", "poisson", "written as arrivals=poisson"),
        ("udp rate=1Mpps burst:4", "burst:4", "written as arrivals=burst:4"),
        ("udp cut=pad", "cut=pad", "generated frames have all their bytes"),
        ("udp loop", "loop", "generated frames never end"),
        ("udp rate=0pps", "0pps", "from 1 to 1125899906842624 a second"),
        ("udp rate=-5Mbps", "-5Mbps", "a rate is wire"),
        ("udp rate=2000Tbps", "2000Tbps", "from 1 to 1125899906842624 a second"),
        ("udp rate=1e6pps", "1e6pps", "write the number with k, M, G or T"),
        ("udp rate=fastpps", "fastpps", "a rate is wire"),
        ("udp dport", "dport", "write dport=53"),
        ("udp dport=", "dport=", "write dport=53"),
        ("udp dport=53 dport=54", "dport=54", "twice"),
        ("udp tcp", "tcp", "leave one out"),
        ("udp dport=70000", "70000", "0 to 65535"),
        ("udp sport=9-3", "9-3", "sport=3-9"),
        ("udp src=10.0.0.1/8", "10.0.0.1/8", "src=10.0.0.0/8"),
        ("udp src=10.0.0.0/8 dst=::1", "::1", "two addresses of one version"),
        ("udp src=2001:db8::/32 dst=10.0.0.1", "10.0.0.1", "two addresses of one version"),
        ("udp ip6 dst=10.0.0.1", "10.0.0.1", "dst=2001:db8::/32"),
        ("udp src=2001:db8::1/64", "2001:db8::1/64", "src=2001:db8::/64"),
        ("udp src=2001:db8::/129", "2001:db8::/129", "src=2001:db8::/32"),
        ("udp src=::1/", "::1/", "neither an address nor a network"),
        ("udp ip6 size=47", "47", "from 48"),
        ("tcp src=::1 size=59", "59", "from 60"),
        ("capture=a.pcap ip6", "ip6", "has its own"),
        ("udp src=10.0.0.0/33", "10.0.0.0/33", "src=10.0.0.0/8"),
        ("udp flows=1M", "1M", "give only 1;"),
        ("udp src=10.0.0.0/24 flows=257", "257", "give only 256;"),
        ("udp zipf=1.1", "1.1", "only one flow"),
        ("udp sport=1-9 zipf=0", "0", "above 0"),
        ("udp sport=1-9 zipf=nan", "nan", "above 0"),
        ("udp size=27", "27", "from 28"),
        ("tcp size=39", "39", "from 40"),
        ("udp size=64,128", "64,128", "weights"),
        ("udp size=128-64", "128-64", "size=64-128"),
        ("udp imix size=64", "imix", "leave one of the two out"),
        ("udp rate=recorded", "recorded", "no recorded times"),
        ("udp rate=10Gb", "10Gb", "10Gbps"),
        ("udp rate=0pps", "0pps", "5Mpps"),
        ("udp arrivals=poisson", "poisson", "rate=10Gbps"),
        ("capture=a.pcap arrivals=poisson", "poisson", "recorded"),
        ("udp rate=1Mpps arrivals=burst", "burst", "burst:32"),
        ("capture=a.pcap udp", "udp", "has its own"),
        ("capture=a.pcap flows=3", "flows=3", "has its own"),
        ("capture=a.pcap loop", "loop", "packets=10M"),
        ("udp loop", "loop", "for captures"),
        ("udp packets=0", "0", "from 1"),
        ("udp packets=1.5", "1.5", "whole"),
        ("capture=\"a b.pcap", "capture=\"a b.pcap", "not closed"),
        ("a.pcap", "a.pcap", "capture=a.pcap"),
        ("capture=a.pcap cut=zero", "zero", "cut=pad"),
        ("  ", "", "expression is empty"),
    ] {
        let (found, message) = refused(text);
        assert_eq!(found, marked, "{text}: {message}");
        assert!(message.contains(words), "{text}: {message}");
    }
    let shown = Traffic::parse("udp dprt=53").unwrap_err().to_string();
    assert!(shown.starts_with("column 5: there is no key dprt"));
    assert!(shown.ends_with("\n  udp dprt=53\n      ^^^^"), "{shown}");
}

#[test]
fn traffic_for_a_host_says_where_and_when_it_begins() {
    let of = |text: &str| Traffic::parse(text).map(|traffic| (traffic.to, traffic.start_ps));
    assert_eq!(of("udp"), Ok((None, None)));
    assert_eq!(of("udp to=3 start=20us"), Ok((Some(3), Some(20_000_000))));
    for (text, ps) in [("7ps", 7), ("1.5ns", 1_500), ("2ms", 2_000_000_000), ("3600s", LATEST), ("0s", 0)] {
        assert_eq!(of(&format!("udp start={text}")), Ok((None, Some(ps))), "{text}");
    }
    for text in [
        "start=20",
        "start=3601s",
        "start=1.5ps",
        "start=us",
        "start=-1us",
        "start=20 us",
        "to=-1",
        "to=4294967296",
    ] {
        assert!(of(&format!("udp {text}")).is_err(), "{text}");
    }
    let first = |text: &str| {
        let (here, there) = (
            (Ipv4Addr::new(10, 0, 0, 2), Ipv6Addr::LOCALHOST),
            (Ipv4Addr::new(10, 0, 0, 1), Ipv6Addr::UNSPECIFIED),
        );
        match Traffic::parse(text).unwrap().addressed(here, there).source {
            Source::Template(template) => (template.src.first.to_string(), template.dst.first.to_string()),
            Source::Capture { .. } => unreachable!(),
        }
    };
    let pair = |src: &str, dst: &str| (src.to_owned(), dst.to_owned());
    assert_eq!(first("udp"), pair("10.0.0.2", "10.0.0.1"));
    assert_eq!(first("ip6"), pair("::1", "::"));
    assert_eq!(first("src=1.2.3.0/24"), pair("1.2.3.0", "10.0.0.1"));
    assert_eq!(first("dst=2001:db8::/32"), pair("::1", "2001:db8::"));
}

#[test]
fn numbers_have_the_units_of_specs() {
    let traffic = |text: &str| Traffic::parse(text).unwrap();
    for packets in ["10k", "10K", "10000", "0.01M", "\"10 k\""] {
        assert_eq!(traffic(&format!("udp packets={packets}")).packets, Some(10_000), "{packets}");
    }
    for size in ["1k", "1K", "1kB", "1KB", "1000", "1000B", "\"1 kB\""] {
        let Source::Template(template) = traffic(&format!("udp size={size}")).source else { panic!() };
        assert_eq!(template.sizes, Sizes::Weighted(vec![(1000, 1)]), "{size}");
    }
    for rate in ["100Gb/s", "100Gbps", "100Gbit/s", "12.5GB/s", "\"100 Gb/s\""] {
        assert_eq!(traffic(&format!("udp rate={rate}")).rate, Rate::BitsPerSecond(100_000_000_000), "{rate}");
    }
    for rate in ["10Mpps", "10000kpps", "\"10 Mpps\""] {
        assert_eq!(traffic(&format!("udp rate={rate}")).rate, Rate::PacketsPerSecond(10_000_000), "{rate}");
    }
    for start in ["100ns", "0.1us", "\"100 ns\""] {
        assert_eq!(traffic(&format!("udp start={start}")).start_ps, Some(100_000), "{start}");
    }
    for (text, words) in [
        ("udp rate=100gbps", "100 Gbps is 100000000000 b/s, and 100 GBps is 800000000000 b/s"),
        ("udp rate=10mpps", "write \"10 Mpps\""),
        ("udp packets=4m", "4 M is 4000000, and 4 Mi is 4194304"),
        ("udp start=20", "needs a unit"),
        ("udp packets=-1", "cannot be negative"),
        ("udp packets=9999999999T", "more digits than 64 bits hold"),
    ] {
        let (_, message) = refused(text);
        assert!(message.contains(words), "{text}: {message}");
    }
}

fn valid() -> impl Strategy<Value = String> {
    let source = prop_oneof![
        (any::<bool>(), any::<bool>(), 0u32..25, 0u16..9, 74u64..1500).prop_map(
            |(udp, ip6, bits, ports, size)| {
                format!(
                    "{} src={} dport=7-{} size={size}",
                    if udp { "udp" } else { "tcp" },
                    if ip6 {
                        format!("2001:db8::/{}", 128 - 4 * bits)
                    } else {
                        format!("10.0.0.0/{}", 32 - bits)
                    },
                    7 + ports
                )
            }
        ),
        "[a-z]{1,8}\\.pcap".prop_map(|file| format!("capture={file} cut=pad")),
    ];
    let rate = prop_oneof![
        Just(String::new()),
        Just(" rate=wire".into()),
        (1u64..400).prop_map(|g| format!(" rate={g}Gbps arrivals=poisson"))
    ];
    (source, rate, 1u64..1000)
        .prop_map(|(source, rate, packets)| format!("{source}{rate} packets={packets}k"))
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_a_place_in_it(text in "\\PC{0,60}|[a-z=0-9./:, \"-]{0,80}|(udp|tcp|ip6|imix|loop|size=|rate=|src=|flows=|zipf=| |1M|64|10.0.0.0/8|::1|2001:db8::/32|[a-z0-9:,-]){0,16}") {
        if let Err(error) = Traffic::parse(&text) {
            if let Some(at) = error.place() {
                prop_assert!(text.get(at).is_some());
            }
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn the_order_of_words_does_not_matter(text in valid(), turn in 0usize..6) {
        let traffic = Traffic::parse(&text).unwrap();
        let mut words: Vec<&str> = text.split(' ').collect();
        let turn = turn % words.len();
        words.rotate_left(turn);
        let other = words.join(" ");
        let turned = Traffic::parse(&other).unwrap();
        prop_assert_eq!(Traffic { text, size_at: traffic.size_at.clone(), ..turned }, traffic);
    }
}
