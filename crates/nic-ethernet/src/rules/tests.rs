use super::*;
use proptest::prelude::*;

fn rule(text: &str) -> Rule {
    Rule::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn shown(text: &str) -> String {
    let alternatives = rule(text).alternatives().to_vec();
    let words = |words: &Vec<Word>| words.iter().map(Word::to_string).collect::<Vec<_>>().join(" ");
    alternatives.iter().map(words).collect::<Vec<_>>().join(" or ")
}

#[test]
fn fields_are_words_of_a_frame() {
    // By hand: type at byte 12, IP version and length at 14, protocol at 23, addresses at 26 and 30, ports at 34 and
    // 36.
    for (text, words) in [
        ("any", ""),
        ("arp", "word@12&ffff0000=08060000"),
        ("ip", "word@12&fffff000=08004000"),
        ("udp", "word@12&fffff000=08004000 word@20&000000ff=00000011"),
        ("udp dport=53", "word@12&ffffff00=08004500 word@20&1fff00ff=00000011 word@36&ffff0000=00350000"),
        (
            "tcp sport=1024-65535",
            "word@12&ffffff00=08004500 word@20&1fff00ff=00000006 word@32&0000ffff=00000400..0000ffff",
        ),
        ("src=10.0.0.0/8", "word@12&fffff000=08004000 word@24&0000ff00=00000a00"),
        ("dst=10.1.2.3", "word@12&fffff000=08004000 word@28&0000ffff=00000a01 word@32&ffff0000=02030000"),
        ("vlan=5 udp", "word@12&ffff0fff=81000005 word@16&fffff000=08004000 word@24&000000ff=00000011"),
        ("ip6 udp dport=53", "word@12&fffff000=86dd6000 word@20&ff000000=11000000 word@56&ffff0000=00350000"),
        ("dst=fd00::/16", "word@12&fffff000=86dd6000 word@36&0000ffff=0000fd00"),
        ("ethertype=0x88b5 word@16=deadbeef", "word@12&ffff0000=88b50000 word@16=deadbeef"),
        ("arp or icmp", "word@12&ffff0000=08060000 or word@12&fffff000=08004000 word@20&000000ff=00000001"),
        ("word@60&ff=10..20", "word@60&000000ff=00000010..00000020"),
    ] {
        assert_eq!(shown(text), words, "{text}");
    }
}

#[test]
fn a_frame_matches_what_it_has() {
    let mut frame = vec![0; 60];
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    frame[23] = 17;
    frame[26..30].copy_from_slice(&[10, 1, 2, 3]);
    frame[34..38].copy_from_slice(&[0x04, 0x00, 0, 53]);
    for text in [
        "any",
        "udp",
        "udp dport=53",
        "udp dport=50-60",
        "src=10.0.0.0/8",
        "tcp or udp sport=1024",
        "word@36=00350000",
    ] {
        assert!(rule(text).matches(&frame), "{text}");
    }
    for text in ["tcp", "udp dport=54", "src=11.0.0.0/8", "arp", "vlan", "word@60=00000000", "ip6 udp"] {
        assert!(!rule(text).matches(&frame), "{text}");
    }
    // A later fragment has no ports.
    frame[21] = 1;
    assert!(!rule("udp dport=53").matches(&frame) && rule("udp").matches(&frame));
}

#[test]
fn what_is_wrong_is_named() {
    for (text, expected) in [
        ("", "column 1: a rule has at least one term"),
        ("udp or", "rule 'udp or', column 5: a rule has at least one term"),
        ("or udp", "column 1: a rule has at least one term"),
        ("udp or or tcp or arp", "column 8: a rule has at least one term"),
        ("udp dprt=53", "column 5: there is no 'dprt=53'; a term is any, arp,"),
        ("udp dport=70000", "column 5: '70000' is no port or range of ports; write for example dport=53"),
        ("udp dport=9-3", "column 5: '9-3' has its larger port first, unlike dport=3-9"),
        ("dport=53", "column 1: ports are those of udp or of tcp"),
        ("udp udp", "column 5: 'udp' repeats another term"),
        ("udp tcp", "column 5: 'tcp' contradicts another term; leave one of the two out"),
        ("udp dport=53 dport=54", "column 14: 'dport' contradicts another term"),
        ("arp udp", "have no protocol of IP"),
        ("ip6 src=10.0.0.1", "different protocols"),
        ("src=10.0.0.1/8", "bits after its prefix; its network is 10.0.0.0"),
        ("any udp", "column 1: any matches every frame"),
        ("word@13=0", "column 1: offset 13 is no multiple of 4"),
        ("word@9616=0", "offset 9616 is beyond every frame; the last word is at 9614"),
        ("word@12=zz", "no value of up to eight hexadecimal digits"),
        ("word@12=2..1", "the range 00000002..00000001 is empty"),
        ("word@12&ff=100", "column 1: the value 00000100 has bits that its mask 000000ff leaves out"),
        ("word@12&ff=100..200", "it matches no frame"),
        ("word@12=1 word@12=2", "it matches no frame"),
        ("vlan=4096", "'4096' is not a number from 0 to 4095"),
    ] {
        let error = Rule::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let long = vec!["word@0=1"; 17].join(" or ");
    assert!(Rule::parse(&long).unwrap_err().to_string().contains("compares 17 words"));
}

#[test]
fn rules_overlap_where_a_frame_matches_both() {
    let found = |a: &str, b: &str| rule(a).overlap(&rule(b)).unwrap().is_some();
    for (a, b) in [
        ("udp", "udp dport=53"),
        ("any", "arp"),
        ("udp dport=1-9", "udp dport=9-20"),
        ("src=10.0.0.0/8", "tcp"),
        ("arp or tcp", "tcp dport=80"),
    ] {
        assert!(found(a, b) && found(b, a), "{a}, {b}");
    }
    for (a, b) in [
        ("udp", "tcp"),
        ("udp dport=1-9", "udp dport=10-20"),
        ("arp", "ip"),
        ("src=10.0.0.0/9", "src=10.128.0.0/9"),
        ("vlan=1 udp", "udp"),
    ] {
        assert!(!found(a, b), "{a}, {b}");
    }
    // The masks are interleaved. The even value in 2..3 is 2.
    let words = rule("word@0&1=0").overlap(&rule("word@0=2..3")).unwrap().unwrap();
    assert_eq!(words, [Word { offset: 0, mask: u32::MAX, start: 2, end: 2 }]);
}

fn word() -> impl Strategy<Value = Word> {
    // Words of few bits are likely to overlap.
    (0u32..2, 0u32..16, 0u32..16, 0u32..16).prop_map(|(place, mask, a, b)| Word {
        offset: 4 * place,
        mask,
        start: a.min(b),
        end: a.max(b),
    })
}

proptest! {
    #[test]
    fn common_words_are_found_where_there_are_any(some in prop::collection::vec(word(), 0..4), others in prop::collection::vec(word(), 0..4)) {
        let all: Vec<&Word> = some.iter().chain(&others).collect();
        let frame = |a: u32, b: u32| [a.to_be_bytes(), b.to_be_bytes()].concat();
        let any = (0..16).any(|a| (0..16).any(|b| all.iter().all(|word| word.matches(&frame(a, b)))));
        let found = common(&some, &others).unwrap();
        prop_assert_eq!(found.is_some(), any);
        if let Some(words) = found {
            let value = |offset| words.iter().find(|word| word.offset == offset).map_or(0, |word| word.start);
            prop_assert!(all.iter().all(|word| word.matches(&frame(value(0), value(4)))));
        }
    }

    #[test]
    fn words_are_read_as_they_are_shown(words in prop::collection::vec((0u32..2404, any::<u32>(), any::<u32>(), any::<u32>()), 1..8)) {
        let words: Vec<Word> = words
            .into_iter()
            .map(|(place, mask, a, b)| Word { offset: 4 * place, mask, start: a.min(b), end: a.max(b) })
            .collect();
        let text = words.iter().map(Word::to_string).collect::<Vec<_>>().join(" ");
        match Rule::parse(&text) {
            Ok(rule) => prop_assert_eq!(rule.alternatives(), &[words][..]),
            Err(error) => prop_assert!(error.to_string().contains("matches no frame"), "{}", error),
        }
    }

    #[test]
    fn no_text_panics(text in "(udp|tcp|any|or|vlan|src|dport|word@|=|&|\\.\\.|[0-9a-f/:.-]{0,6}| |\\PC){0,12}") {
        let _ = Rule::parse(&text);
    }
}
