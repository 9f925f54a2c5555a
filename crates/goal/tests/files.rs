//! Requests that read and write files: formats, errors with names and places, and no temporary files left behind.

use nicety::{Environment, Error};
use nicety_goal::requests::{self, GenerateRequest, Ns, RunRequest};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nicety-goal-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn with<R>(interrupted: bool, act: impl FnOnce(&Environment<'_>) -> R) -> R {
    let flag = Arc::new(AtomicBool::new(interrupted));
    act(&Environment { interrupt: Some(flag), ..Environment::default() })
}

fn run(json: &str) -> Result<requests::Report, Error> {
    with(false, |environment| requests::run(&RunRequest::from_json(json)?, environment))
}

fn generate(json: &str, interrupted: bool) -> Result<requests::Generated, Error> {
    with(interrupted, |environment| requests::generate(&GenerateRequest::from_json(json)?, environment))
}

fn convert(from: &str, to: &str) -> Result<requests::Converted, Error> {
    with(false, |environment| requests::convert(from, to, environment))
}

#[test]
fn a_schedule_goes_from_text_to_binary_and_back_and_runs_the_same() {
    let folder = Folder::new("round");
    let (goal, bin, again) = (folder.path("a.goal"), folder.path("a.bin"), folder.path("b"));
    let made = generate(
        &format!(r#"{{"pattern": "dissemination", "output": "{goal}", "ranks": 8, "size": 100}}"#),
        false,
    );
    assert_eq!(made.unwrap().operations, 48);
    assert_eq!(convert(&goal, &bin).unwrap().format, "binary");
    // A file with an unknown extension gets the other format.
    assert_eq!(convert(&bin, &again).unwrap().format, "text");
    assert_eq!(std::fs::read(&goal).unwrap(), std::fs::read(&again).unwrap());
    let report = |file: &str| run(&format!(r#"{{"file": "{file}"}}"#)).unwrap();
    let (one, other) = (report(&goal), report(&bin));
    assert_eq!((one.events, one.operations, one.messages, one.max_host), (72, 48, 24, 0));
    assert_eq!(one.finish_ns, other.finish_ns);
    // Each of the three rounds takes 2 o + L. In each round, 99 bytes after the first take 6 ns each.
    assert_eq!(one.max_finish_ns, Ns { ps: 3 * (5500 + 99 * 6) * 1000 });
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 3, "nothing is left beside them");
}

#[test]
fn reports_have_whole_nanoseconds_where_they_are_whole() {
    let json = serde_json::to_string(&[Ns { ps: 5000 }, Ns { ps: 5250 }]).unwrap();
    assert_eq!(json, "[5,5.25]");
}

#[test]
fn parameters_have_units() {
    let folder = Folder::new("units");
    let goal =
        folder.write("a.goal", "num_ranks 2\nrank 0 {\nsend 1001b to 1\n}\nrank 1 {\nrecv 1001b from 0\n}");
    let last = |more: &str| {
        let report =
            run(&format!(r#"{{"file": "{goal}", "latency": "1us", "overhead": "0", "gap": "0ns"{more}}}"#));
        report.map(|report| report.max_finish_ns.ps)
    };
    assert_eq!(last(r#", "gap_per_byte": "2ns""#).unwrap(), 3_000_000);
    assert_eq!(last(r#", "gap_per_byte": "15.6ps""#).unwrap(), 1_015_600);
    assert_eq!(last(r#", "gap_per_byte": "0.5 ns/B""#).unwrap(), 1_500_000);
    assert_eq!(last(r#", "gap_per_byte": "400 Gb/s""#).unwrap(), 1_020_000);
    assert_eq!(last(r#", "gap_per_byte": "0", "overhead_per_byte": "1ns""#).unwrap(), 2_000_000);
    for (more, expected) in [
        (r#", "gap_per_byte": "2""#, "gap_per_byte (G): "),
        (r#", "overhead_per_byte": "fast""#, "overhead_per_byte (O): "),
        (r#", "gap": "1ns""#, "the request of a run: duplicate field `gap`"),
        (r#", "L": "1ns""#, "the request of a run: unknown field `L`"),
        (
            r#", "gap_per_byte": "15.6ps", "compat": "loggopsim""#,
            "gap_per_byte (G): LogGOPSim takes only whole nanoseconds; leave compat out",
        ),
    ] {
        let error = last(more).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert_eq!(error.exit_status(), 2);
    }
}

#[test]
fn mistakes_name_file_rank_operation_and_line() {
    let folder = Folder::new("mistakes");
    for (goal, status, expected) in [
        ("num_ranks 1\nrank 0 {\n  calc x\n}", 2, "a.goal:3:8: rank 0: a time in ns is expected, not 'x'"),
        (
            "num_ranks 1\nrank 0 {\na: calc 1\na requires a\n}",
            2,
            "a.goal: rank 0: operations wait for each other: operation 0 (line 3: calc 1), which waits for operation 0",
        ),
        (
            "num_ranks 1\nrank 0 {\nrecv 1b from 0\n}",
            1,
            "a.goal: the schedule cannot finish: 0 messages without a receive, 1 receive without a message, 0 operations \
             blocked by them\nrank 0: operation 0 (line 3: recv 1b from 0): no message came",
        ),
        (
            "num_ranks 1\nrank 0 {\ncalc 18446744073709551615\n}",
            2,
            "a.goal: rank 0: operation 0 (line 3: calc 18446744073709551615) ends after more than 2^64 ps, 213 days",
        ),
    ] {
        let file = folder.write("a.goal", goal);
        let error = run(&format!(r#"{{"file": "{file}"}}"#)).unwrap_err();
        assert_eq!(error.exit_status(), status);
        assert_eq!(error.to_string(), expected.replacen("a.goal", &file, 1));
    }
    let none = folder.path("none.goal");
    let error = run(&format!(r#"{{"file": "{none}"}}"#)).unwrap_err();
    assert_eq!(error.to_string(), format!("{none}: cannot read it (No such file or directory)"));
}

#[test]
fn tolerance_of_loggopsim_is_counted() {
    let folder = Folder::new("compat");
    let file =
        folder.write("a.goal", "num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\nb: calc 3\nb requires b\n}");
    let report = run(&format!(r#"{{"file": "{file}", "compat": "loggopsim"}}"#)).unwrap();
    assert_eq!((report.operations, report.unexecuted), (2, Some(1)));
}

#[test]
fn a_pattern_that_is_none_or_too_large_is_refused() {
    let wrong = |json: &str| generate(json, false).unwrap_err().to_string();
    let text = wrong(r#"{"pattern": "brodcast", "output": "x", "ranks": 8, "size": 1}"#);
    assert!(
        text.starts_with("there is no pattern \"brodcast\"; the patterns are binomial-broadcast, "),
        "{text}"
    );
    let text = wrong(r#"{"pattern": "linear-alltoall", "output": "x", "ranks": 1000000, "size": 1}"#);
    assert!(text.contains("would have about 2000000000000 operations; the maximum is 1000000000"), "{text}");
    let text = wrong(r#"{"pattern": "pipeline", "output": "x", "ranks": 2, "size": 1, "compute": "1ps"}"#);
    assert_eq!(text, "compute 1ps: a time in a schedule is a whole number of nanoseconds");
    let text = wrong(r#"{"pattern": "gather", "output": "/nowhere/x", "ranks": 2, "size": 1}"#);
    assert_eq!(text, "/nowhere/x: cannot write it (No such file or directory)");
}

#[test]
fn an_interrupt_leaves_no_part_of_a_file() {
    let folder = Folder::new("interrupt");
    let json =
        format!(r#"{{"pattern": "gather", "output": "{}", "ranks": 9, "size": 1}}"#, folder.path("a.goal"));
    assert_eq!(generate(&json, true).unwrap_err(), Error::Interrupted);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
}
