//! Tests the shipped specs.

use nicety_spec::{Kind, Listing, Ratio, SHIPPED, Section, Spec, units};

use toml::de::{DeTable, DeValue};

/// Reads every key of a spec as the quantity that its text suggests. Other tests read the specs with the parts of a
/// card.
fn read_all(name: &str) -> Listing {
    let spec = Spec::load(name, &[], SHIPPED).unwrap_or_else(|errors| panic!("{errors}"));
    let reader = spec.reader();
    let mut next = Some(name.to_owned());
    while let Some(name) = next {
        let text = SHIPPED.get(&name).unwrap();
        let document = DeTable::parse(text).unwrap();
        let top = document.get_ref();
        for (key, value) in top.iter().filter_map(|(k, v)| Some((k.get_ref(), v.get_ref().as_table()?))) {
            read_section(&reader.section(key), value);
        }
        next = top.get("extends").map(|base| base.get_ref().as_str().unwrap().to_owned());
    }
    reader.finish().unwrap_or_else(|errors| panic!("{errors}"))
}

fn read_section(section: &Section<'_>, table: &DeTable<'_>) {
    for (key, table) in table.iter().filter_map(|(k, v)| Some((k.get_ref(), v.get_ref().as_table()?))) {
        match table.get("value").map(|value| value.get_ref()) {
            None => read_section(&section.section(key), table),
            Some(DeValue::Integer(_)) => drop(section.count(key, 0..=u64::MAX, "")),
            Some(DeValue::Float(_)) => drop(section.ratio(key, Ratio::ZERO..=Ratio::whole(1000), "")),
            Some(DeValue::Boolean(_)) => drop(section.flag(key, "")),
            Some(DeValue::String(text)) if units::parse_time(text).is_ok() => drop(section.time(key, "")),
            Some(DeValue::String(text)) if units::parse_gap(text).is_ok() => drop(section.gap(key, "")),
            Some(DeValue::String(text)) if units::parse_frequency(text).is_ok() => {
                section.frequency(key, "");
            }
            Some(DeValue::String(text)) if units::parse_size(text).is_ok() => {
                section.size(key, 0..=u64::MAX, "");
            }
            Some(DeValue::String(text)) if text.parse::<f64>().is_ok() => {
                section.ratio(key, Ratio::ZERO..=Ratio::ONE, "");
            }
            Some(_) => {
                let text = section.text(key, "");
                assert!(!text.starts_with(|c: char| c.is_ascii_digit()), "{}.{key} = {text}", section.path());
            }
        }
    }
}

#[test]
fn every_shipped_spec_reads_whole_and_says_where_its_values_come_from() {
    for name in SHIPPED.names() {
        let listing = read_all(name);
        assert_eq!(listing.name, name);
        assert!(SHIPPED.get(name).unwrap().contains(&format!("\nname = \"{name}\"")));
        // The spec of a current card names no paper, but the source of its facts.
        assert!(!listing.title.is_empty() && (listing.paper.is_some() || listing.source.is_some()));
        assert!(listing.parameters.len() > 50);
        for p in &listing.parameters {
            let founded =
                matches!(p.kind, Kind::Measured | Kind::Documented | Kind::Calibrated | Kind::Assumed);
            assert!(founded, "{}.{} is of kind {:?}", p.section, p.key, p.kind);
            assert!(!p.source.is_empty() && !p.source.starts_with("specs/"), "{}.{}", p.section, p.key);
            assert!(p.place.starts_with("specs/"), "{}", p.place);
        }
    }
}

#[test]
fn the_papers_values_are_exact() {
    let cards = ["spin-discrete", "spin-integrated"].map(read_all);
    let exact = |card: usize, path: &str| cards[card].get(path).unwrap().exact.clone();
    assert_eq!(exact(0, "bus.latency"), "250000 ps");
    assert_eq!(exact(0, "bus.gap"), "78/5 ps/B");
    assert_eq!(exact(1, "bus.latency"), "50000 ps");
    assert_eq!(exact(1, "bus.gap"), "67/10 ps/B");
    for (card, listing) in cards.iter().enumerate() {
        assert_eq!(listing.design, "portals");
        assert_eq!(exact(card, "host.post"), "65000 ps");
        assert_eq!(exact(card, "host.notice"), "65000 ps");
        assert_eq!(exact(card, "link.gap"), "20/1 ps/B");
        assert_eq!(exact(card, "link.latency"), "33400 ps");
        assert_eq!(exact(card, "send.gap"), "6700 ps");
        assert_eq!(exact(card, "match.first"), "30000 ps");
        assert_eq!(exact(card, "match.further"), "2000 ps");
        assert_eq!(exact(card, "packet.payload"), "4096 B");
        assert_eq!(exact(card, "host.cache"), "8388608 B");
        assert_eq!(exact(card, "hpu.clock"), "2500000000 Hz");
        assert_eq!(exact(card, "hpu.cores"), "4");
    }
}
