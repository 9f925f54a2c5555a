//! C programs on simulated hosts that use the provider as libfabric does.
#![cfg(target_os = "linux")]

mod channels;
mod portals_calls;
mod queues;
mod rma;

use nicety::{Environment, Error};
use nicety_exec::{Report, Request, run};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Compiles a source file of this folder, and returns the path of the result.
fn compiled(source: &str, name: &str, options: &[&str]) -> String {
    let into = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let status = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"])
        .args(options)
        .arg("-o")
        .arg(&into)
        .arg(format!("{}/tests/{source}", env!("CARGO_MANIFEST_DIR")))
        .args(["-ldl", "-lpthread"])
        .status();
    assert!(status.expect("a C compiler").success());
    into.to_str().expect("a plain path").to_owned()
}

/// Returns the path of the compiled program.
fn client() -> &'static str {
    static CLIENT: OnceLock<String> = OnceLock::new();
    CLIENT.get_or_init(|| compiled("client.c", "exec-client", &[]))
}

/// Returns the path of an MPI library that starts and ends as Open MPI does.
fn waiting_mpi() -> &'static str {
    static LIBRARY: OnceLock<String> = OnceLock::new();
    LIBRARY.get_or_init(|| compiled("waiting_mpi.c", "libexec-waiting.so", &["-O2", "-shared", "-fPIC"]))
}

/// Runs the program on `ranks` hosts.
fn runs(nic: &str, what: &str, ranks: u32) -> Result<Report, Error> {
    runs_with(nic, &[what, &ranks.to_string()], ranks)
}

fn runs_with(nic: &str, words: &[&str], ranks: u32) -> Result<Report, Error> {
    runs_on(nic, words, ranks, 1)
}

/// Runs the program with `on_host` processes on each host.
fn runs_on(nic: &str, words: &[&str], ranks: u32, on_host: u32) -> Result<Report, Error> {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/exec");
    let program: Vec<_> = [client()].into_iter().chain(words.iter().copied()).collect();
    let text = format!(
        r#"{{"program": {program:?}, "ranks": {ranks}, "nic": "{nic}", "launcher": "none",
            "folder": "{folder}", "to_stderr": true, "patience": 2000, "ranks_per_node": {on_host}}}"#
    );
    run(&Request::from_json(&text).unwrap(), &Environment::default(), None, &|_| ())
}

const CARDS: [&str; 5] = ["spin-discrete", "qnix", "apenet-v5", "nfp-4000", "ethernet-100g"];

#[test]
fn bytes_and_data_go_there_and_back_on_every_design() {
    for nic in CARDS {
        let report = runs(nic, "echo", 2).unwrap_or_else(|error| panic!("{nic}: {error}"));
        assert_eq!(report.status, 0, "{nic}");
        // Lengths are 0, 1, 4, 13, ... below 70000.
        let lengths: Vec<u64> = std::iter::successors(Some(0), |bytes| Some(bytes * 3 + 1))
            .take_while(|bytes| *bytes < 70000)
            .collect();
        for rank in &report.ranks {
            assert_eq!((rank.sends, rank.receives), (lengths.len() as u64, lengths.len() as u64), "{nic}");
            assert_eq!(rank.sent_bytes, lengths.iter().sum::<u64>(), "{nic}");
        }
    }
}

#[test]
fn receives_take_messages_by_source_and_bits_of_tags_on_every_design() {
    for nic in CARDS {
        let report = runs(nic, "match", 3).unwrap_or_else(|error| panic!("{nic}: {error}"));
        assert_eq!(report.status, 0, "{nic}");
    }
}

#[test]
fn calls_wait_for_a_look_and_have_what_they_were_made_with() {
    for nic in CARDS {
        let report = runs(nic, "burst", 2).unwrap_or_else(|error| panic!("{nic}: {error}"));
        assert_eq!(report.status, 0, "{nic}");
        assert!(report.ranks.iter().all(|rank| rank.calls > 200), "{nic}: each is a call");
    }
}

#[test]
fn operations_beyond_the_room_of_an_endpoint_are_to_be_tried_again() {
    for nic in CARDS {
        let report = runs(nic, "full", 2).unwrap_or_else(|error| panic!("{nic}: {error}"));
        assert_eq!(report.status, 0, "{nic}");
        assert_eq!((report.ranks[0].sends, report.ranks[1].receives), (100, 100), "{nic}");
    }
}

#[test]
fn a_message_that_is_cut_is_an_error_of_its_receive() {
    for nic in CARDS {
        let report = runs(nic, "cut", 2).unwrap_or_else(|error| panic!("{nic}: {error}"));
        assert_eq!(report.status, 0, "{nic}");
    }
}

#[test]
fn a_cancelled_receive_takes_no_message_and_messages_are_discarded() {
    for (nic, what) in CARDS.into_iter().flat_map(|nic| [(nic, "cancel"), (nic, "discard")]) {
        let report = runs(nic, what, 2).unwrap_or_else(|error| panic!("{nic}: {what}: {error}"));
        assert_eq!(report.status, 0, "{nic}: {what}");
    }
}

#[test]
fn processes_of_a_host_have_messages_of_their_own_on_every_design() {
    for (nic, what, ranks, on_host) in
        CARDS.into_iter().flat_map(|nic| [(nic, "echo", 2, 2), (nic, "match", 3, 2)])
    {
        let report = runs_on(nic, &[what, &ranks.to_string()], ranks, on_host)
            .unwrap_or_else(|error| panic!("{nic}: {what}: {error}"));
        assert_eq!(report.status, 0, "{nic}: {what}");
    }
}

#[test]
fn times_of_a_process_add_up() {
    for (what, nic) in [("echo", "spin-discrete"), ("match", "qnix"), ("clocks", "spin-discrete")] {
        let report = runs(nic, what, if what == "match" { 3 } else { 2 }).unwrap();
        for rank in &report.ranks {
            let parts = [
                rank.computing_ns,
                rank.sleeping_ns,
                rank.calling_ns,
                rank.polling_ns,
                rank.waiting_ns,
                rank.external_wait_ns,
            ];
            assert_eq!(parts.iter().map(|part| part.ps).sum::<u64>(), rank.finish_ns.ps, "{what}: {parts:?}");
            assert_eq!(rank.computing_ns.ps % 25_000, 0, "{what}: clocks alone cost time");
        }
    }
}

#[test]
fn a_buffer_takes_many_messages() {
    assert_eq!(runs("spin-discrete", "many", 2).unwrap().status, 0);
}

#[test]
fn the_same_seed_is_the_same_run() {
    for what in ["echo", "many"] {
        assert_eq!(runs("spin-discrete", what, 2).unwrap(), runs("spin-discrete", what, 2).unwrap());
    }
}

#[test]
fn clocks_are_those_of_the_simulation() {
    let report = runs("spin-discrete", "clocks", 2).unwrap();
    assert_eq!(report.status, 0);
    for rank in report.ranks {
        let (least, most) = (3600.1e9, 3600.1e9 + 1.0e4);
        let finish: f64 = rank.finish_ns.ps as f64 / 1000.0;
        assert!((least..most).contains(&finish), "{finish}");
    }
}

#[test]
fn other_threads_wait_in_the_time_of_the_machine() {
    assert_eq!(runs("spin-discrete", "threads", 1).unwrap().status, 0);
}

/// Runs the MPI library, which waits for its launcher at its start and its end. A folder stands for the launcher.
fn waits_for_launcher(what: &str, number: u32) -> Result<Report, Error> {
    let folder = format!("{}/waits-{what}-{number}-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    std::fs::create_dir(&folder).unwrap();
    let report = runs_with("spin-discrete", &[what, "3", waiting_mpi(), &folder], 3);
    std::fs::remove_dir_all(folder).unwrap();
    report
}

#[test]
fn waits_for_a_launcher_take_no_time() {
    let first = waits_for_launcher("waits", 0).unwrap();
    assert_eq!(first.status, 0);
    for again in 1..4 {
        assert_eq!(waits_for_launcher("waits", again).unwrap().ranks, first.ranks);
    }
    // Rank 2 is idle. The others end after the message, at 30 us, and do not sleep until then.
    let ended: Vec<u64> = first.ranks.iter().map(|rank| rank.finish_ns.ps / 1_000_000).collect();
    assert_eq!(ended[2], 0);
    assert!(ended[..2].iter().all(|us| (30..33).contains(us)), "{ended:?}");
}

#[test]
fn looks_of_a_call_that_waits_are_skipped_only_where_they_are_known() {
    assert_eq!(waits_for_launcher("looks", 0).unwrap().status, 0);
}

#[test]
fn who_waits_for_a_rank_that_ends_is_named() {
    let Err(Error::Deadlock(text)) = waits_for_launcher("waits for more", 0) else { panic!() };
    for part in ["receive of 8 bytes from rank 0, tag 7", "the end of the other processes, in MPI_Finalize"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn who_waits_for_what_never_comes_is_named() {
    let Err(Error::Deadlock(text)) = runs("spin-discrete", "stuck", 2) else { panic!() };
    for part in [
        "rank 0",
        "a completion: it polls, and has posted a receive of 8 bytes from rank 1, tag 0x5 except for the bits 0x100",
        "from rank 0, tag 0x6",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_process_that_ends_in_the_middle_ends_the_run() {
    for (what, how) in [("killed", ", by signal 9 (SIGKILL),"), ("leaves", " with status 0")] {
        let Err(Error::Program(text)) = runs("spin-discrete", what, 2) else { panic!("{what}") };
        let expected =
            format!("the process of rank 1 ended{how} before it had closed the network (by MPI_Finalize");
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn a_program_without_the_network_is_refused() {
    for what in ["nothing", "fails"] {
        let Err(Error::Input(text)) = runs("spin-discrete", what, 2) else { panic!("{what}") };
        assert!(text.contains("none of its processes has opened an endpoint of libfabric"), "{text}");
    }
    let wrong = Request::from_json(
        r#"{"program": ["/nowhere"], "nic": "qnix", "launcher": "none", "folder": "/tmp", "ranks": 0}"#,
    )
    .unwrap();
    let error = run(&wrong, &Environment::default(), None, &|_| ()).unwrap_err();
    assert_eq!(error, Error::Input("a program has 1 to 1024 processes, not 0".to_owned()));
}

/// Returns the path of a program with Portals, compiled as `nicety cc --host` does.
fn portals() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let into = folder.join("exec-portals");
        nicety_exec::install_for_programs(&folder).unwrap();
        let status = Command::new("cc")
            .args(["-std=gnu17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-o"])
            .arg(&into)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs/portals.c"))
            .arg(format!("-I{}/include", folder.display()))
            .arg(format!("-L{}/lib", folder.display()))
            .arg("-lportals")
            .status();
        assert!(status.expect("a C compiler").success());
        into.to_str().expect("a plain path").to_owned()
    })
}

#[test]
fn wild_arguments_of_portals_are_refused() {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/exec");
    for seed in 10..16 {
        let text = format!(
            r#"{{"program": ["{}", "wilds", "{seed}"], "ranks": 2, "nic": "spin-discrete", "launcher": "none",
                "folder": "{folder}", "to_stderr": true}}"#,
            portals()
        );
        let report = run(&Request::from_json(&text).unwrap(), &Environment::default(), None, &|_| ());
        assert_eq!(report.unwrap_or_else(|error| panic!("seed {seed}: {error}")).status, 0, "seed {seed}");
    }
}
