//! A C program that accesses registered memory (`rma.c`), on cards that support it and on cards that do not.

use super::compiled;
use nicety::{Environment, Error};
use nicety_exec::{Report, Request, run};
use std::sync::OnceLock;

fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| compiled("rma.c", "exec-rma", &[]))
}

fn runs(nic: &str, card: &str, what: &str, ranks: u32) -> Result<Report, Error> {
    runs_with(nic, "", card, what, ranks)
}

/// Runs the program with an override `change` of the card.
fn runs_with(nic: &str, change: &str, card: &str, what: &str, ranks: u32) -> Result<Report, Error> {
    let changes: Vec<&str> = [change].into_iter().filter(|change| !change.is_empty()).collect();
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/exec");
    let program = program();
    let text = format!(
        r#"{{"program": ["{program}", "{what}", "{card}", "{ranks}"], "ranks": {ranks}, "nic": "{nic}", "launcher": "none",
            "folder": "{folder}", "to_stderr": true, "patience": 2000, "overrides": {changes:?}}}"#
    );
    run(&Request::from_json(&text).unwrap(), &Environment::default(), None, &|_| ())
}

/// Runs the program, requires that it succeeds, and returns the report.
fn ends(nic: &str, card: &str, what: &str, ranks: u32) -> Report {
    let report = runs(nic, card, what, ranks).unwrap_or_else(|error| panic!("{nic}: {what}: {error}"));
    assert_eq!(report.status, 0, "{nic}: {what}");
    report
}

const PORTALS: [&str; 3] = ["spin-discrete", "spin-integrated", "pspin"];

#[test]
fn a_card_offers_what_it_has() {
    for nic in PORTALS {
        ends(nic, "portals", "offers", 1);
    }
    ends("apenet-v5", "rdma", "offers", 1);
    for nic in ["qnix", "nfp-4000", "ethernet-100g"] {
        ends(nic, "none", "offers", 1);
    }
}

#[test]
fn writes_and_reads_move_the_bytes_that_they_name() {
    for nic in PORTALS {
        ends(nic, "portals", "access", 2);
    }
    ends("apenet-v5", "rdma", "access", 2);
}

#[test]
fn accesses_outside_of_regions_fail_and_change_nothing() {
    ends("spin-discrete", "portals", "bounds", 2);
    ends("apenet-v5", "rdma", "bounds", 2);
}

#[test]
fn atomic_operations_have_the_values_of_libfabric() {
    for nic in PORTALS {
        ends(nic, "portals", "atomics", 2);
    }
    ends("spin-discrete", "portals", "atomics", 4);
}

#[test]
fn counters_count_what_a_rank_does_and_what_others_do() {
    ends("spin-discrete", "portals", "counts", 2);
}

#[test]
fn a_write_into_memory_that_is_looked_at_ends_the_wait_for_it() {
    for (nic, card) in [("spin-discrete", "portals"), ("apenet-v5", "rdma")] {
        ends(nic, card, "watched", 2);
    }
}

#[test]
fn accesses_wait_for_room_on_the_card() {
    for (nic, change, card) in
        [("spin-discrete", "limits.replies=4", "portals"), ("apenet-v5", "limits.gets=2", "rdma")]
    {
        let slow = runs_with(nic, change, card, "burst", 2).unwrap_or_else(|error| panic!("{nic}: {error}"));
        assert_eq!(slow.status, 0, "{nic}");
        assert!(slow.max_finish_ns.ps > ends(nic, card, "burst", 2).max_finish_ns.ps, "{nic}: it waits");
    }
}

#[test]
fn accesses_are_the_same_in_each_run() {
    for (nic, card, what) in [("spin-discrete", "portals", "atomics"), ("apenet-v5", "rdma", "access")] {
        assert_eq!(ends(nic, card, what, 2), ends(nic, card, what, 2), "{nic}");
    }
}
