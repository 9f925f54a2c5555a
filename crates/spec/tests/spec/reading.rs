//! Tests values, provenance, overrides, listings and the hash.

use crate::card::{self, CARDS};
use nicety_spec::{Kind, Library, Ratio, Spec, parse_override};
use nicety_types::{Duration, Frequency, Gap};

const NONE: Library = Library::new(&[]);

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

const SMALL: &str = r#"
name = "small"
design = "portals"
[bus]
latency = { value = "250 ns", kind = "calibrated", source = "a bench", against = "its table 2", note = "n" }
gap = "400 Gb/s"
[cpu]
clock = "2.5 GHz"
cores = 0x10
cache = "4 KiB"
share = "25 %"
loss = 0.5
wire = "optical"
name = "the host's"
fast = true
[cpu.far]
latency = "1.5 us"
"#;

#[test]
fn every_quantity_is_read() {
    let spec = Spec::from_text("small.toml", SMALL, &[], NONE).unwrap();
    assert_eq!((spec.name(), spec.title(), spec.design()), ("small", "", "portals"));
    let reader = spec.reader();
    let (bus, cpu) = (reader.section("bus"), reader.section("cpu"));
    assert_eq!(bus.time("latency", "crossing"), Duration::from_ns(250));
    assert_eq!(bus.gap("gap", "per byte"), Gap::new(20, 1));
    assert_eq!(cpu.frequency("clock", "clock"), Frequency::from_hz(2_500_000_000));
    assert_eq!(cpu.count("cores", 1..=64, "cores"), 16);
    assert_eq!(cpu.size("cache", 1..=1 << 20, "cache"), 4_096);
    let share = cpu.ratio("share", Ratio::ZERO..=Ratio::ONE, "share");
    assert_eq!((share.numerator(), share.denominator()), (1, 4));
    assert_eq!(cpu.ratio("loss", Ratio::ZERO..=Ratio::ONE, "loss").to_string(), "0.5");
    assert_eq!(cpu.choice("wire", &["copper", "optical"], "wire"), "optical");
    assert_eq!(cpu.text("name", "name"), "the host's");
    assert!(cpu.flag("fast", "fast"));
    assert!(cpu.has("cores") && !cpu.has("core"));
    let far = cpu.section("far");
    assert_eq!(far.path(), "cpu.far");
    assert_eq!(far.time("latency", "far memory"), Duration::from_ns(1_500));
    assert_eq!(far.time("latency", "read by another part as well"), Duration::from_ns(1_500));

    let listing = reader.finish().unwrap();
    assert_eq!(listing.parameters.len(), 11);
    let latency = listing.get("bus.latency").unwrap();
    assert_eq!(
        (latency.kind, latency.source.as_str(), latency.place.as_str()),
        (Kind::Calibrated, "a bench", "small.toml:5")
    );
    assert_eq!((latency.against.as_deref(), latency.note.as_deref()), (Some("its table 2"), Some("n")));
    let cores = listing.get("cpu.cores").unwrap();
    assert_eq!(
        (cores.kind, cores.source.as_str(), cores.doc.as_str()),
        (Kind::User, "small.toml:9", "cores")
    );
    assert_eq!((cores.value.as_str(), cores.allowed.as_deref()), ("16", Some("from 1 to 64")));
    assert!(listing.get("cpu.none").is_none() && listing.get("cpu").is_none());
}

#[test]
fn keys_with_defaults_may_be_left_out() {
    let spec = Spec::from_text("a.toml", "design = 'x'\n[a]\nt = '1 ns'\n", &[], NONE).unwrap();
    let reader = spec.reader();
    let a = reader.section("a");
    assert_eq!(a.time_or("t", "2 ns", ""), Duration::from_ns(1));
    assert_eq!(a.time_or("u", "2 ns", ""), Duration::from_ns(2));
    assert_eq!(a.gap_or("g", "1/3 ps/B", ""), Gap::new(1, 3));
    assert_eq!(a.frequency_or("f", "1 MHz", ""), Frequency::from_hz(1_000_000));
    assert_eq!(a.size_or("s", 0..=4096, "4 KiB", ""), 4_096);
    assert_eq!(a.count_or("c", 1..=9, 3, ""), 3);
    assert_eq!(a.ratio_or("r", Ratio::ZERO..=Ratio::ONE, "0.5", "").to_string(), "0.5");
    assert_eq!(a.choice_or("w", &["x", "y"], "y", ""), "y");
    assert_eq!(a.text_or("n", "none", ""), "none");
    assert!(a.flag_or("b", true, ""));
    let listing = reader.finish().unwrap();
    let default = listing.get("a.u").unwrap();
    assert_eq!((default.kind, default.value.as_str(), default.place.as_str()), (Kind::Default, "2 ns", ""));
}

#[test]
#[should_panic(expected = "the default of a.u is wrong: a time needs a unit")]
fn a_wrong_default_is_a_mistake_of_the_program() {
    let spec = Spec::from_text("a.toml", "design = 'x'\n", &[], NONE).unwrap();
    spec.reader().section("a").time_or("u", "2", "");
}

#[test]
fn overrides_win_and_say_what_they_replace() {
    let overrides = [
        ("hpu.cores", "2"),
        ("hpu.cores", "8"),
        ("bus.gap", "400Gb/s"),
        ("hpu.isa", "rv32imc"),
        ("bus.latency", "300 ns"),
    ];
    let listing = card::read_text("extends = 'discrete'\n[bus]\nlatency = '1 ns'\n", &overrides).unwrap();
    let cores = listing.get("hpu.cores").unwrap();
    assert_eq!((cores.value.as_str(), cores.kind), ("8", Kind::Override));
    assert_eq!(cores.source, "--set hpu.cores=8");
    assert_eq!(cores.replaces.as_deref(), Some("4 (discrete)"));
    assert_eq!(listing.get("bus.gap").unwrap().exact, "20/1 ps/B");
    assert_eq!(listing.get("bus.latency").unwrap().replaces.as_deref(), Some("1 ns (my)"));
    assert_eq!(listing.extends, ["discrete"]);
    assert_eq!(listing.overrides.len(), 5);
    let flags = Spec::from_text("a.toml", "design = 'x'\n", &[pair("a.b", "true"), pair("a.r", "0.5")], NONE)
        .unwrap();
    let reader = flags.reader();
    assert!(reader.section("a").flag("b", ""));
    assert_eq!(reader.section("a").ratio("r", Ratio::ZERO..=Ratio::ONE, "").as_f64(), 0.5);
    assert!(reader.finish().is_ok());
}

#[test]
fn an_override_is_a_key_and_a_value() {
    assert_eq!(parse_override("hpu.cores = 8"), Ok(pair("hpu.cores", "8")));
    assert_eq!(parse_override("a=b=c"), Ok(pair("a", "b=c")));
    let refused = |text: &str| parse_override(text).unwrap_err().to_string();
    assert_eq!(refused("cores"), "error: --set cores: expected KEY=VALUE, e.g. --set hpu.cores=8");
    assert!(refused("=8").starts_with("error: --set =8: expected KEY=VALUE"));
}

fn hash(text: &str, overrides: &[(&str, &str)]) -> String {
    card::read_text(text, overrides).unwrap_or_else(|errors| panic!("{errors}")).hash
}

#[test]
fn the_hash_names_the_values_and_nothing_else() {
    let plain = hash("extends = 'discrete'", &[]);
    assert_eq!(plain.len(), 64);
    let other_layout = "# comment\nname = 'other'\ntitle = 't'\nextends = 'discrete'\n[hpu]\ncores = 4\n[bus]\ngap = { value = '0.0156 ns/B' }\nlatency = '0.25 us'";
    assert_eq!(hash(other_layout, &[]), plain);
    assert_eq!(hash("extends = 'discrete'", &[("hpu.cores", "4")]), plain);
    assert_ne!(hash("extends = 'discrete'", &[("hpu.cores", "8")]), plain);
    assert_ne!(hash("extends = 'discrete'\ndesign = 'other'", &[]), plain);
    assert_ne!(hash("extends = 'integrated'", &[]), plain);
    assert_ne!(
        hash("extends = 'discrete'\n[hpu]\nisa = \"a\\nb\"", &[]),
        hash("extends = 'discrete'\n[hpu]\nisa = 'a\\nb'", &[])
    );
}

#[test]
fn a_listing_goes_out_as_json_and_as_a_table() {
    let listing = card::read(&Spec::load("integrated", &[pair("hpu.cores", "8")], CARDS).unwrap()).unwrap();
    let json = serde_json::to_value(&listing).unwrap();
    assert_eq!(json["name"], "integrated");
    assert_eq!(json["extends"][0], "discrete");
    let latency = json["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["section"] == "bus" && p["key"] == "latency");
    let latency = latency.unwrap();
    assert_eq!((&latency["kind"], &latency["quantity"]), (&"documented".into(), &"time".into()));
    assert_eq!(latency["replaces"], "250 ns (discrete)");
    let table = listing.to_string();
    assert!(table.starts_with("integrated: a card on the chip\npaper: "));
    assert!(table.contains("extends: discrete\ndesign: portals\nhash: "));
    assert!(table.contains("\n[bus]\nlatency     50 ns     documented  one crossing, either way"));
    assert!(table.contains("SC17 (on chip); replaces 250 ns (discrete)\n"));
    let spec = Spec::from_text("small.toml", SMALL, &[], NONE).unwrap();
    let reader = spec.reader();
    reader.section("bus").time("latency", "crossing");
    reader.section("bus").gap("gap", "gap");
    let cpu = reader.section("cpu");
    for key in ["clock", "cores", "cache", "share", "loss", "wire", "name", "fast"] {
        assert!(cpu.has(key));
    }
    assert_eq!(reader.finish().unwrap_err().iter().count(), 9);
}
