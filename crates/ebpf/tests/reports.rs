//! Reports of objects and runs, and maps as JSON.

use nicety_ebpf::report::{self, RunError, RunReport, RunRequest, Timed, show};
use serde_json::{Value, json};

const PARTS: &[u8] = include_bytes!("data/parts.o");
const TRAPS: &[u8] = include_bytes!("data/traps.o");
const KERNEL: &[u8] = include_bytes!("data/kernel.o");

fn request(program: &str, maps: &[(&str, Value)]) -> RunRequest {
    let maps: Vec<_> = maps.iter().map(|(name, entries)| (name, entries.to_string())).collect();
    let request = json!({
        "program": program, "repeat": 1, "instructions": 1000, "cpus": 2, "gap_ns": 1000,
        "interface": 1, "queue": 3, "maps": maps,
    });
    serde_json::from_value(request).unwrap()
}

fn run(file: &[u8], request: &RunRequest, packets: &[Timed]) -> Result<RunReport, RunError> {
    report::run(file, request, packets, &mut || true).map(Option::unwrap)
}

fn ran(program: &str, maps: &[(&str, Value)]) -> Result<RunReport, String> {
    run(PARTS, &request(program, maps), &[(vec![0; 60], None)]).map_err(|error| error.to_string())
}

fn entries(report: &RunReport, map: &str) -> Value {
    serde_json::to_value(&report.maps[map]).unwrap()
}

#[test]
fn a_report_of_an_object_has_programs_maps_and_relocations() {
    let report = show(PARTS).unwrap();
    let parts = report.programs.iter().find(|program| program.name == "parts").unwrap();
    assert_eq!(parts.functions, 4);
    // Three maps and four places of data, two calls and a callback, and six accesses to members.
    assert_eq!(parts.relocations, [7, 3, 6]);
    assert!(parts.groups.contains(&"base32") && parts.groups.contains(&"base64"));
    assert!(parts.helpers.contains(&"bpf_tail_call".to_owned()), "{:?}", parts.helpers);
    assert!(parts.maps.contains(&"tables".to_owned()), "{:?}", parts.maps);
    let counters = report.maps.iter().find(|map| map.name == "counters").unwrap();
    assert_eq!((counters.kind.as_str(), counters.value_size), ("array", 16));
}

#[test]
fn a_program_that_cannot_run_is_shown_with_its_reason() {
    let report = show(KERNEL).unwrap();
    let refused = report.programs[0].refused.as_deref().unwrap();
    assert!(refused.contains("struct xdp_buff"), "{refused}");
}

#[test]
fn entries_are_written_with_their_bytes_and_by_their_types() {
    let report = ran("parts", &[]).unwrap();
    let counters = entries(&report, "counters");
    assert_eq!(counters[1]["key"], json!(["0x01", "0x00", "0x00", "0x00"]));
    let value = json!({"packets": 1, "bytes": 60, "flags": 0, "ports": 5});
    assert_eq!(counters[1]["formatted"], json!({"key": 1, "value": value}));
    let formatted = &entries(&report, ".bss")[0]["formatted"]["value"];
    assert_eq!(formatted, &json!({".bss": [{"seen": 1}]}));
}

#[test]
fn entries_are_read_as_they_are_written() {
    let bytes =
        json!([{"key": [1, 0, 0, 0], "value": ["0x05", 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]}]);
    let report = ran("parts", &[("counters", bytes)]).unwrap();
    let value = &entries(&report, "counters")[1]["formatted"]["value"];
    assert_eq!((&value["packets"], &value["bytes"]), (&json!(6), &json!(67)));
    // A dump is an input.
    let again = ran("parts", &[("counters", entries(&report, "counters"))]).unwrap();
    assert_eq!(entries(&again, "counters")[1]["formatted"]["value"]["packets"], json!(7));
    let typed = json!([{"key": 1, "value": {"packets": 9}}]);
    let report = ran("parts", &[("counters", typed)]).unwrap();
    assert_eq!(entries(&report, "counters")[1]["formatted"]["value"]["packets"], json!(10));
    let named = json!([{"key": 1, "value": "first"}]);
    let report = ran("parts", &[("tables", named)]).unwrap();
    assert_eq!(entries(&report, "first").as_array().map(Vec::len), Some(1));
    assert_eq!(entries(&report, "second").as_array().map(Vec::len), Some(0));
}

#[test]
fn a_loader_sets_the_size_of_a_map() {
    let entry = json!({"key": 6, "value": {"packets": 2}});
    let larger = json!({"max_entries": 7, "entries": [entry]});
    let report = ran("parts", &[("counters", larger)]).unwrap();
    let counters = entries(&report, "counters");
    assert_eq!(counters.as_array().map(Vec::len), Some(7));
    assert_eq!(counters[6]["formatted"]["value"]["packets"], json!(2));
    let report = ran("parts", &[("counters", json!({"max_entries": 2}))]).unwrap();
    assert_eq!(entries(&report, "counters").as_array().map(Vec::len), Some(2));
}

#[test]
fn a_map_without_a_size_takes_that_of_its_file() {
    let file = include_bytes!("data/sizes.o");
    // The object may leave sizes of maps to the loader.
    assert!(show(file).unwrap().maps.iter().all(|map| map.refused.is_none()));
    let with = |maps: &[(&str, Value)]| run(file, &request("sizes", maps), &[(vec![0; 60], None)]);
    let error = with(&[]).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "map used: max_entries of 0; the loader of the map sets this number; write {\"max_entries\""
        ),
        "{error}"
    );
    let report = with(&[("used", json!({"max_entries": 4}))]).unwrap();
    assert_eq!(report.verdicts, [("XDP_TX", 1)].into());
    assert_eq!(entries(&report, "used")[3]["formatted"]["value"], json!(1));
    let report = with(&[("used", json!({"max_entries": 3}))]).unwrap();
    assert_eq!(report.verdicts, [("XDP_DROP", 1)].into());
}

#[test]
fn wrong_entries_are_refused_with_their_place() {
    let cases = [
        ("counters", json!(3), "map counters: not a list"),
        ("counters", json!({}), "map counters: write {\"max_entries\": N"),
        ("counters", json!({"max_entries": 1, "other": 2}), "map counters: write {\"max_entries\": N"),
        ("counters", json!({"max_entries": 0}), "map counters: max_entries of 0; write a number"),
        ("counters", json!({"max_entries": 1, "entries": 2}), "map counters: write {\"max_entries\": N"),
        ("counters", json!([3]), "entry 0: not an object"),
        ("counters", json!([{"value": 1}]), "entry 0: no key"),
        ("counters", json!([{"key": 1}]), "entry 0: no value"),
        ("counters", json!([{"key": 1, "values": []}]), "entry 0: no value"),
        ("counters", json!([{"key": -1, "value": {}}]), "the array does not accept this entry (E2BIG)"),
        ("counters", json!([{"key": "x", "value": {}}]), "\"x\" is no value of 4 bytes"),
        ("counters", json!([{"key": 4_294_967_296u64, "value": {}}]), "no value of 4 bytes"),
        (
            "counters",
            json!([{"key": 1, "value": {"packet": 1}}]),
            "there is no member packet; members are packets",
        ),
        ("counters", json!([{"key": 1, "other": 1}]), "unknown member other"),
        ("tables", json!([{"key": 1, "value": "third"}]), "there is no map third"),
        ("jumps", json!([{"key": 1, "value": "third"}]), "program third: the object has no such XDP program"),
        ("missing", json!([]), "map missing: the object has no such map; it has "),
    ];
    for (name, given, expected) in cases {
        let error = ran("parts", &[(name, given)]).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn traps_are_counted_and_shown() {
    let report = run(TRAPS, &request("unchecked", &[]), &[(vec![0; 60], None), (vec![0; 14], None)]).unwrap();
    assert_eq!((report.packets, report.traps, report.trap_texts.len()), (2, 2, 2));
    assert!(report.rows[0].trap.as_deref().unwrap().contains("traps.c:"));
}

#[test]
fn short_packets_are_refused() {
    let error = run(PARTS, &request("parts", &[]), &[(vec![0; 13], None)]).unwrap_err().to_string();
    assert!(error.starts_with("packet 0: it has 13 bytes; write 14 to "), "{error}");
}

#[test]
fn a_run_without_an_end_asks_behind_each_trap() {
    let mut asked = 0;
    let request = RunRequest { repeat: u64::MAX, ..request("unchecked", &[]) };
    let result = report::run(TRAPS, &request, &[(vec![0; 60], None)], &mut || {
        asked += 1;
        asked < 5
    });
    assert!(result.unwrap().is_none());
    assert_eq!(asked, 5);
    // A run of short programs asks, too.
    let request = RunRequest { repeat: u64::MAX, ..self::request("parts", &[]) };
    let result = report::run(PARTS, &request, &[(vec![0; 60], None)], &mut || false);
    assert!(result.unwrap().is_none());
}
