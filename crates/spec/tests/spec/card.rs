//! A small card with its own specs. Unlike the shipped specs, these specs do not change.

use nicety_spec::{Library, Listing, Spec, SpecErrors};

/// The specs of two cards. The second spec extends the first.
pub const CARDS: Library = Library::new(&[("discrete", DISCRETE), ("integrated", INTEGRATED)]);

const DISCRETE: &str = r#"
name = "discrete"
title = "a card in a slot"
design = "portals"
paper = "a paper"

[host]
cores = { value = 8, kind = "documented", source = "SC17" }
clock = { value = "2.5 GHz", kind = "documented", source = "SC17" }
post = { value = "65 ns", kind = "documented", source = "SC17", note = "o" }
cache = { value = "8 MiB", kind = "documented", source = "SC17" }
[bus]
latency = { value = "250 ns", kind = "measured", source = "SC17", note = "each way" }
gap = { value = "15.6 ps/B", kind = "documented", source = "SC17" }
[link]
gap = { value = "20 ps/B", kind = "documented", source = "SC17" }
[switch]
ports = { value = 36, kind = "documented", source = "SC17" }
[packet]
payload = { value = "4096 B", kind = "documented", source = "SC17" }
[hpu]
cores = { value = 4, kind = "calibrated", source = "SC17", against = "its figure 3" }
isa = { value = "rv32imac", kind = "assumed", source = "a stand-in" }
misaligned = { value = "trap", kind = "assumed", source = "shows slips" }
code = { value = "64 KiB", kind = "assumed", source = "enough" }
[hpu.cycles]
alu = { value = 1, kind = "assumed", source = "usual" }
[barrier]
latency = { value = "10 us", kind = "assumed", source = "a guess" }
"#;

const INTEGRATED: &str = r#"
extends = "discrete"
name = "integrated"
title = "a card on the chip"
[bus]
latency = { value = "50 ns", kind = "documented", source = "SC17", note = "on chip" }
gap = { value = "6.7 ps/B", kind = "documented", source = "SC17" }
"#;

/// Reads all keys of the card, as the parts of a card do.
pub fn read(spec: &Spec) -> Result<Listing, SpecErrors> {
    let reader = spec.reader();
    let host = reader.section("host");
    host.count("cores", 1..=1024, "processors of the host");
    host.frequency("clock", "their clock");
    host.time("post", "the CPU posts an operation");
    host.size("cache", 1..=1 << 40, "last-level cache");
    let bus = reader.section("bus");
    bus.time("latency", "one crossing, either way");
    bus.gap("gap", "per byte, each direction");
    reader.section("link").gap("gap", "per byte");
    reader.section("switch").count("ports", 2..=4096, "ports of a switch");
    reader.section("packet").size("payload", 1..=1 << 20, "payload of a packet at most");
    let hpu = reader.section("hpu");
    hpu.count("cores", 1..=1024, "handler cores");
    hpu.text("isa", "instruction set");
    hpu.choice("misaligned", &["trap", "cost"], "what a misaligned access does");
    hpu.size("code", 1..=1 << 30, "code memory");
    hpu.section("cycles").count("alu", 0..=1000, "cycles of an addition");
    reader.section("barrier").time("latency", "out-of-band barrier of a job");
    reader.finish()
}

/// Reads a user's file from its text.
pub fn read_text(text: &str, overrides: &[(&str, &str)]) -> Result<Listing, SpecErrors> {
    let overrides: Vec<_> = overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    read(&Spec::from_text("my.toml", text, &overrides, CARDS)?)
}
