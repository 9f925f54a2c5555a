//! Compiles the library that is loaded into processes.

use std::env;
use std::path::PathBuf;

const SOURCES: [&str; 10] = [
    "process.c",
    "clock.c",
    "shared.c",
    "start.c",
    "addresses.c",
    "completions.c",
    "messages.c",
    "provider.c",
    "portals.c",
    "portals_data.c",
];

fn main() {
    println!("cargo::rerun-if-changed=client");
    let into = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("libnicety-fi.so");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        // Processes of other systems are not simulated.
        std::fs::write(into, []).expect("the output folder can be written");
        return;
    }
    let mut compiler = cc::Build::new()
        .std("gnu11")
        .opt_level(2)
        .pic(true)
        .warnings(true)
        .extra_warnings(true)
        .flag("-fvisibility=hidden")
        .try_get_compiler()
        .expect("a C compiler, as Rust needs one to link")
        .to_command();
    // Under this name programs that link libportals find the library that is loaded into them already. Angle brackets of its
    // headers mean this folder, as they mean the installed one for users.
    compiler.args(["-shared", "-Wl,-soname,libportals.so", "-Iclient", "-o"]).arg(&into);
    compiler.args(SOURCES.iter().map(|source| format!("client/{source}")));
    compiler.args(["-ldl", "-lpthread"]);
    let status = compiler.status().expect("the C compiler runs");
    assert!(status.success(), "the library for processes does not compile");
}
