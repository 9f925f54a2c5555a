//! Tests the error texts of refused specs.

use crate::card::{self, CARDS};
use nicety_spec::{Change, Library, Spec};

const BASE: &str = "extends = 'discrete'\n";

/// Returns the error text for a spec that extends a shipped spec and contains `text`.
fn refused(text: &str) -> String {
    card::read_text(&format!("{BASE}{text}"), &[]).unwrap_err().to_string()
}

fn refused_option(key: &str, value: &str) -> String {
    card::read_text(BASE, &[(key, value)]).unwrap_err().to_string()
}

#[test]
fn the_layout_is_place_line_caret_and_help() {
    let expected = "\
error: bus.latency: a time needs a unit (ps, ns, us, ms, s)
 --> my.toml:3:11
  |
3 | latency = \"250\"
  |           ^^^^^
  = help: write latency = \"250 ns\", as discrete has it";
    assert_eq!(refused("[bus]\nlatency = \"250\"\n"), expected);
}

#[track_caller]
fn says(text: &str, message: &str, place: &str, help: &str) {
    let all = refused(text);
    assert!(all.starts_with(&format!("error: {message}\n")), "{all}");
    assert!(all.contains(&format!("--> my.toml:{place}\n")), "{all}");
    assert!(all.ends_with(&format!("= help: {help}")), "{all}");
}

#[test]
fn wrong_values_say_what_to_write() {
    says(
        "[hpu]\ncores = \"8\"",
        "hpu.cores: expected a whole number from 1 to 1024",
        "3:9",
        "write cores = 8 (discrete has 4)",
    );
    says(
        "[hpu]\ncores = 1.5",
        "hpu.cores: expected a whole number from 1 to 1024",
        "3:9",
        "write cores = 4, as discrete has it",
    );
    says(
        "[host]\ncache = 4096",
        "host.cache: a size needs a unit (B, KiB, MiB, GiB)",
        "3:9",
        "write cache = \"4096 B\" (discrete has 8 MiB)",
    );
    says(
        "[packet]\npayload = '0 B'",
        "packet.payload: expected a size from 1 B to 1 MiB",
        "3:11",
        "write payload = \"4096 B\", as discrete has it",
    );
    says(
        "[host]\npost = { value = '1.00005 ns' }",
        "host.post: 1.00005 ns is not a whole number of picoseconds",
        "3:18",
        "write value = \"1 ns\" (discrete has 65 ns)",
    );
    says(
        "[host]\npost = '4 KiB'",
        "host.post: expected a time (ps, ns, us, ms, s), but 4 KiB is a size",
        "3:8",
        "write post = \"65 ns\", as discrete has it",
    );
    says(
        "[host]\npost = '2000000 s'",
        "host.post: 2000000 s is more than an hour",
        "3:8",
        "write post = \"65 ns\", as discrete has it",
    );
    says(
        "[link]\ngap = '1 b/s'",
        "link.gap: 1 b/s is more than 1 ms a byte",
        "3:7",
        "write gap = \"20 ps/B\", as discrete has it",
    );
    says(
        "[hpu]\nmisaligned = 'trapp'",
        "hpu.misaligned: expected trap or cost",
        "3:14",
        "write misaligned = \"trap\"",
    );
    says(
        "[hpu]\nisa = 32",
        "hpu.isa: expected a text in quotes",
        "3:7",
        "write isa = \"32\" (discrete has rv32imac)",
    );
    says(
        "[hpu]\nisa = [1]",
        "hpu.isa: expected a text in quotes",
        "3:7",
        "write isa = \"rv32imac\", as discrete has it",
    );
    says(
        "[host]\npost = 1979-05-27",
        "host.post: expected a time such as \"250 ns\"",
        "3:8",
        "write post = \"65 ns\", as discrete has it",
    );
}

#[test]
fn flags_and_ratios_are_refused_too() {
    let text = "design = 'x'\n[a]\nflag = 'True'\nother = 3\nratio = 2\nshare = 'half'\nsum = [1]\n";
    let spec = Spec::from_text("my.toml", text, &[], Library::new(&[])).unwrap();
    let reader = spec.reader();
    let a = reader.section("a");
    let unit = nicety_spec::Ratio::ZERO..=nicety_spec::Ratio::ONE;
    assert!(!a.flag("flag", "") && !a.flag("other", ""));
    for key in ["ratio", "share", "sum"] {
        assert_eq!(a.ratio(key, unit.clone(), ""), nicety_spec::Ratio::ZERO);
    }
    let errors = reader.finish().unwrap_err();
    let said: Vec<_> = errors.iter().map(|e| format!("{}; {}", e.message, e.help.join("; "))).collect();
    assert_eq!(said[0], "expected true or false; write flag = true");
    assert_eq!(said[1], "expected true or false; write for example other = true");
    for message in &said[2..] {
        assert!(message.starts_with("expected a ratio from 0 to 1; write for example "), "{message}");
    }
}

#[test]
fn unknown_keys_and_sections_get_the_nearest() {
    says("[bus]\nlatncy = '1 ns'", "bus.latncy: unknown key", "3:1", "did you mean latency?");
    says("[hup]\ncores = 3\n[hup.x]\ny = 1", "there is no section [hup]", "2:2", "did you mean [hpu]?");
    says(
        "[wombat]",
        "there is no section [wombat]",
        "2:2",
        "the sections are host, bus, link, switch, packet, hpu, hpu.cycles, barrier",
    );
    says(
        "[hpu.extra]\nx = 1",
        "there is no section [hpu.extra]",
        "2:6",
        "the sections are host, bus, link, switch, packet, hpu, hpu.cycles, barrier",
    );
    says("[switch]\nwombat = 3", "switch.wombat: unknown key", "3:1", "[switch] has ports");
    says("[packet]\nports = 3", "packet.ports: unknown key", "3:1", "did you mean switch.ports?");
    says("cores = 3", "cores: unknown key", "2:1", "did you mean host.cores or hpu.cores?");
    says("nmae = 'x'", "nmae: unknown key", "2:1", "did you mean name?");
    says(
        "wombat = 'x'",
        "wombat: unknown key",
        "2:1",
        "above the sections there are name, title, design, extends, paper, source; every other key belongs to a section",
    );
    says("bus = 3", "bus: unknown key", "2:1", "[bus] is a section, its keys are gap, latency");
    assert!(
        refused("[bus]\n'a b' = 3")
            .starts_with("error: a key has letters, digits, '_' and '-'\n --> my.toml:3:1\n")
    );
}

#[test]
fn a_section_is_no_value() {
    let help = "a value with its source is { value = ..., kind = ..., source = ... }";
    says("[bus.latency]\nx = 3", "bus.latency: expected a time, but this is a section", "2:6", help);
    let spec = Spec::from_text("my.toml", "design = 'x'\n[a.t]\nx = 3\n", &[], CARDS).unwrap();
    let reader = spec.reader();
    reader.section("a").time_or("t", "1 ns", "");
    let errors = reader.finish().unwrap_err();
    assert_eq!(
        errors.iter().map(|e| e.message.as_str()).collect::<Vec<_>>(),
        ["expected a time, but this is a section"]
    );
}

#[test]
fn provenance_is_complete_or_refused() {
    let value = |rest: &str| format!("[bus]\nlatency = {{ value = '1 ns', {rest} }}");
    says(
        &value("kind = 'documented'"),
        "bus.latency: a documented value must name its source",
        "3:1",
        "add source = \"where it stands\"",
    );
    says(
        &value("kind = 'assumed', source = ' '"),
        "bus.latency: an assumed value must name its source",
        "3:1",
        "add source = \"why this value\"",
    );
    says(
        &value("kind = 'calibrated', source = 'x'"),
        "bus.latency: a calibrated value must name its measurement",
        "3:1",
        "add against = \"the measurement it was fitted to\"",
    );
    let against = "write kind = \"calibrated\", or leave against out";
    says(&value("against = 'x'"), "bus.latency: against belongs to a calibrated value", "3:1", against);
    says(
        &value("kind = 'measured', source = 'x', against = 'x'"),
        "bus.latency: against belongs to a calibrated value",
        "3:1",
        against,
    );
    says(
        &value("kind = 'documentd', source = 'x'"),
        "bus.latency: \"documentd\" is not a kind of value",
        "3:1",
        "write kind = \"documented\"",
    );
    says(
        &value("kind = 'user'"),
        "bus.latency: \"user\" is not a kind of value",
        "3:1",
        "leave kind out: a value without a kind is the user's own",
    );
    says(
        &value("kind = 'wombat'"),
        "bus.latency: \"wombat\" is not a kind of value",
        "3:1",
        "a kind is one of measured, documented, calibrated, assumed",
    );
    says(&value("nte = 'x'"), "bus.latency: a value has no key nte", "3:29", "did you mean note?");
    says(
        "[bus]\nlatency = { valeu = '1 ns', kind = 'measured' }",
        "bus.latency: a value has no key valeu",
        "3:13",
        "did you mean value?",
    );
    let message = refused(&value("source = 3"));
    assert!(
        message.starts_with("error: bus.latency: source is a text in quotes\n --> my.toml:3:38\n"),
        "{message}"
    );
}

#[test]
fn missing_keys_come_with_the_line_to_add() {
    let whole = CARDS.get("discrete").unwrap();
    let without = |what: &[&str]| {
        let keep = |line: &&str| !what.iter().any(|start| line.starts_with(start));
        let text: Vec<_> = whole.lines().filter(keep).collect();
        card::read_text(&text.join("\n"), &[]).unwrap_err().to_string()
    };
    let message = without(&["payload"]);
    assert!(message.starts_with("error: packet: missing payload\n"), "{message}");
    let hint = "= help: add to [packet]: payload = \"4096 B\", as discrete has it\n   = help: or begin with extends = \"discrete\"";
    assert!(message.ends_with(hint), "{message}");
    let message = without(&["[barrier]", "latency = { value = \"10 us\""]);
    assert!(
        message
            .starts_with("error: my.toml has no section [barrier]\n  = help: add to [barrier]: latency = "),
        "{message}"
    );
}

#[test]
fn most_of_a_card_missing_is_one_error() {
    let message =
        card::read_text("design = 'portals'\n[bus]\nlatency = '3 ns'\n", &[]).unwrap_err().to_string();
    assert!(message.starts_with("error: my.toml has no sections [barrier], [host], [hpu], "), "{message}");
    assert!(message.contains("= help: begin with extends = \"discrete\", which has them all"), "{message}");
    assert!(message.ends_with("= help: add to [bus]: gap = \"15.6 ps/B\", as discrete has it"), "{message}");
}

#[test]
fn one_typing_error_is_one_error() {
    let text = "design = 'x'\n[bus]\nlatncy = '3 ns'\n[hots]\npost = '1 ns'\n";
    let spec = Spec::from_text("my.toml", text, &[], Library::new(&[])).unwrap();
    let reader = spec.reader();
    reader.section("bus").time("latency", "");
    reader.section("host").time("post", "");
    let errors = reader.finish().unwrap_err();
    let said: Vec<_> = errors.iter().map(|e| e.help.join("; ")).collect();
    assert_eq!(said, ["did you mean latency?", "did you mean [host]?"]);
}

#[test]
fn overrides_are_refused_in_one_line() {
    let expected =
        "error: --set hpu.cores=eight: expected a whole number from 1 to 1024, e.g. --set hpu.cores=4";
    assert_eq!(refused_option("hpu.cores", "eight"), expected);
    let expected =
        "error: --set bus.latency=250: a time needs a unit (ps, ns, us, ms, s), e.g. --set bus.latency=250ns";
    assert_eq!(refused_option("bus.latency", "250"), expected);
    let expected = "error: --set hpu.core=8: unknown key, did you mean hpu.cores?";
    assert_eq!(refused_option("hpu.core", "8"), expected);
    assert_eq!(
        refused_option("buss.latency", "1ns"),
        "error: --set buss.latency=1ns: unknown key, did you mean bus.latency?"
    );
    assert_eq!(
        refused_option("switch.ports", ""),
        "error: --set switch.ports=: expected a whole number from 2 to 4096, e.g. --set switch.ports=36"
    );
    assert!(
        refused_option("wombat.x", "1")
            .starts_with("error: --set wombat.x=1: unknown key, the sections are host, bus, ")
    );
    assert_eq!(
        refused_option("name", "x"),
        "error: --set name=x: name identifies the spec and cannot be overridden"
    );
    assert!(refused_option("hpu", "3").contains("[hpu] is a section, its keys are code, cores, isa, "));
}

#[test]
fn a_reader_can_refuse_a_value() {
    let text = "design = 'x'\n[hpu]\nstack = '1 MiB'\n";
    let overrides = [("hpu.cores".to_owned(), "9".to_owned())];
    let spec = Spec::from_text("my.toml", text, &overrides, Library::new(&[])).unwrap();
    let reader = spec.reader();
    let hpu = reader.section("hpu");
    hpu.size("stack", 0..=1 << 30, "");
    hpu.count("cores", 1..=9, "");
    hpu.refuse("stack", "the stacks are larger than the memory", "write stack = \"4 KiB\"");
    hpu.refuse("cores", "too many", "write less");
    hpu.refuse("memory", "too small", "write more");
    let message = reader.finish().unwrap_err().to_string();
    assert!(
        message.contains("error: hpu.stack: the stacks are larger than the memory\n --> my.toml:3:9\n"),
        "{message}"
    );
    assert!(message.contains("error: hpu.memory: too small\n  = help: write more"), "{message}");
    assert!(message.ends_with("error: --set hpu.cores=9: too many, write less"), "{message}");
}

#[test]
fn a_value_that_cannot_be_read_is_compared_as_the_one_it_replaces() {
    let refused = |text: &str, overrides: &[(&str, &str)]| {
        let owned: Vec<_> =
            overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let text = format!("design = 'x'\n[hpu]\ncores = 4\n{text}");
        let spec = Spec::from_text("my.toml", &text, &owned, Library::new(&[])).unwrap();
        let reader = spec.reader();
        let hpu = reader.section("hpu");
        hpu.count("cores", 1..=9, "");
        if hpu.size("memory", 64..=1 << 30, "") < 100 {
            hpu.refuse("cores", "too many for the memory", "write less");
        }
        let errors = reader.finish().unwrap_err();
        errors.iter().map(|error| error.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(refused("memory = '99 B'", &[]), ["too many for the memory"]);
    let unit = "a size needs a unit (B, KiB, MiB, GiB)";
    assert_eq!(refused("memory = '1 KiB'", &[("hpu.memory", "300")]), [unit]);
    assert_eq!(refused("memory = '99 B'", &[("hpu.memory", "300")]), ["too many for the memory", unit]);
    // The part that reads the key does not refuse the same value a second time.
    assert_eq!(
        refused("memory = '1 KiB'", &[("hpu.cores", "x"), ("hpu.memory", "99 B")]),
        ["expected a whole number from 1 to 9"]
    );
    assert_eq!(
        refused("memory = '99 B'\n[hup]", &[]),
        ["too many for the memory", "there is no section [hup]"]
    );
}

#[test]
fn the_last_change_of_a_value_is_known() {
    let overrides = [("bus.latency".to_owned(), "9 ns".to_owned())];
    let text = format!("{BASE}[hpu]\ncores = 8\n[bus]\nlatency = '8 ns'\n");
    let spec = Spec::from_text("my.toml", &text, &overrides, CARDS).unwrap();
    let reader = spec.reader();
    assert_eq!(reader.section("bus").change("latency"), Some(Change::Override));
    assert_eq!(reader.section("hpu").change("cores"), Some(Change::File));
    assert_eq!(reader.section("hpu").change("isa"), None);
    assert_eq!(reader.section("hpu").change("none"), None);
    assert!(Change::Override > Change::File);
}

#[test]
fn syntax_errors_have_the_same_layout() {
    let message =
        Spec::from_text("my.toml", "design = 'x'\n[bus\nx = = 2", &[], CARDS).unwrap_err().to_string();
    let expected =
        "error: not valid TOML: unclosed table, expected `]`\n --> my.toml:2:5\n  |\n2 | [bus\n  |     ^\n";
    assert!(message.starts_with(expected), "{message}");
    assert!(refused("[bus]\nlatency = '1 ns'\nlatency = '2 ns'").contains("duplicate key\n --> my.toml:4:1"));
}

#[test]
fn the_top_of_a_spec_is_checked() {
    let load = |text: &str| Spec::from_text("my.toml", text, &[], CARDS);
    let message = load("[bus]\nlatency = '3 ns'\n").unwrap_err().to_string();
    assert!(
        message
            .starts_with("error: the design is missing; it names the parts of the card\n --> my.toml:1:1\n"),
        "{message}"
    );
    assert!(message.ends_with("or begin with a card that exists: extends = \"discrete\""), "{message}");
    let message = load("design = 3\nextends = 'discret'\n").unwrap_err().to_string();
    assert!(message.contains("error: design: expected a text in quotes\n --> my.toml:1:10"), "{message}");
    assert!(
        message.contains("error: extends: there is no card spec \"discret\"\n --> my.toml:2:11"),
        "{message}"
    );
    let spec = load("design = 'portal'\n").unwrap();
    let message = spec.design_among(&["portals", "torus"]).unwrap_err().to_string();
    assert!(
        message.starts_with("error: design: there is no design \"portal\"\n --> my.toml:1:10\n"),
        "{message}"
    );
    assert!(message.ends_with("= help: did you mean design = \"portals\"?"), "{message}");
    let message = spec.design_among(&["torus", "ring"]).unwrap_err().to_string();
    assert!(message.ends_with("= help: a design is torus or ring"), "{message}");
}
