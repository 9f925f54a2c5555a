//! Calls on channels that no correct program makes.

use nicety::{Environment, Error};
use nicety_exec::{Report, Request, run};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Returns the path of the compiled program that makes these calls.
fn wild() -> &'static str {
    static WILD: OnceLock<String> = OnceLock::new();
    WILD.get_or_init(|| {
        let into = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("exec-channels");
        let status = Command::new("cc")
            .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"])
            .args([concat!(env!("CARGO_MANIFEST_DIR"), "/../../shim"), "-o"])
            .arg(&into)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/channels.c"))
            .status();
        assert!(status.expect("a C compiler").success());
        into.to_str().expect("a plain path").to_owned()
    })
}

fn runs(nic: &str, seed: u64) -> Result<Report, Error> {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/exec");
    let text = format!(
        r#"{{"program": ["{}", "{seed}"], "ranks": 1, "nic": "{nic}", "launcher": "none", "folder": "{folder}",
            "to_stderr": true}}"#,
        wild()
    );
    run(&Request::from_json(&text).unwrap(), &Environment::default(), None, &|_| ())
}

#[test]
fn wild_calls_are_refused_and_runs_of_them_are_alike() {
    for seed in 0..4 {
        let report = runs("nfp-4000", seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(report.status, 0, "seed {seed}");
        assert!(report.ranks[0].calls > 2000, "seed {seed}: {} calls", report.ranks[0].calls);
        assert_eq!(report, runs("nfp-4000", seed).unwrap(), "seed {seed}");
    }
}

#[test]
fn cards_without_channels_are_refused() {
    let Err(Error::Input(text)) = runs("apenet-v5", 0) else { panic!() };
    assert!(text.contains("has no processes and channels"), "{text}");
}
