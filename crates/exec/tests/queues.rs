//! A C program with a completion queue for each direction of its endpoint (`queues.c`), and with counters, as in libfabric's own
//! tests.

use super::{CARDS, compiled};
use nicety::{Environment, Error};
use nicety_exec::{Report, Request, run};
use std::sync::OnceLock;

fn runs(nic: &str, what: &str, ranks: u32) -> Result<Report, Error> {
    runs_with(nic, &[what, &ranks.to_string()], ranks)
}

fn runs_with(nic: &str, words: &[&str], ranks: u32) -> Result<Report, Error> {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    let file = PROGRAM.get_or_init(|| compiled("queues.c", "exec-queues", &[]));
    let program: Vec<&str> = [file.as_str()].into_iter().chain(words.iter().copied()).collect();
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/exec");
    let text = format!(
        r#"{{"program": {program:?}, "ranks": {ranks}, "nic": "{nic}", "launcher": "none",
            "folder": "{folder}", "to_stderr": true, "patience": 2000}}"#
    );
    run(&Request::from_json(&text).unwrap(), &Environment::default(), None, &|_| {})
}

fn ends(nic: &str, what: &str) -> Report {
    let report = runs(nic, what, 2).unwrap_or_else(|error| panic!("{nic}: {what}: {error}"));
    assert_eq!(report.status, 0, "{nic}: {what}");
    report
}

#[test]
fn each_side_has_its_own_completions_on_every_design() {
    for (nic, what) in CARDS.into_iter().flat_map(|nic| [(nic, "apart"), (nic, "waits")]) {
        ends(nic, what);
    }
}

#[test]
fn counters_need_no_queues() {
    for (nic, what) in CARDS.into_iter().flat_map(|nic| [(nic, "counts"), (nic, "counts alone")]) {
        ends(nic, what);
    }
}

#[test]
fn a_buffer_for_many_messages_takes_as_many_as_fit_on_every_design() {
    for (nic, what) in CARDS.into_iter().flat_map(|nic| [(nic, "many"), (nic, "behind")]) {
        ends(nic, what);
    }
}

#[test]
fn a_buffer_for_many_messages_takes_long_ones() {
    // The library of nfp-4000 does not copy a long message that is truncated.
    for nic in CARDS.into_iter().filter(|nic| *nic != "nfp-4000") {
        ends(nic, "long ones");
    }
}

#[test]
fn accesses_are_of_the_sending_side_and_their_data_of_the_receiving_one() {
    ends("spin-discrete", "access atomics");
    ends("apenet-v5", "access");
}

#[test]
fn a_process_is_named_by_its_rank_or_its_port() {
    ends("spin-discrete", "names");
}

#[test]
fn every_operation_is_there_or_says_that_it_is_not() {
    for nic in CARDS {
        ends(nic, "tables");
    }
}

#[test]
fn wait_objects_and_limits_that_there_are_not_are_refused() {
    ends("spin-discrete", "objects");
}

#[test]
fn a_process_that_looks_before_the_start_goes_on() {
    let path = format!("{}/late-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let report = runs_with("spin-discrete", &["late", "2", &path], 2).unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!(report.status, 0);
    // Looks before the start of all processes are not counted.
    assert_eq!(report.ranks[0].sends, 0);
    assert!(report.max_finish_ns.ps < 10_000_000, "it takes no time");
}

#[test]
fn the_same_seed_is_the_same_run() {
    for what in ["many", "waits"] {
        assert_eq!(ends("spin-discrete", what).ranks, ends("spin-discrete", what).ranks);
    }
}

#[test]
fn a_program_that_asks_for_what_its_card_has_not_ends() {
    let Err(Error::Input(text)) = runs("apenet-v5", "lacks", 1) else { panic!() };
    assert!(text.contains("ended with exit status: 61"), "{text}");
}
