//! Compiles the C libraries that are loaded into processes.

use std::env;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 22] = [
    "words.c",
    "process.c",
    "end.c",
    "clock.c",
    "shared.c",
    "start.c",
    "waits.c",
    "launcher.c",
    "addresses.c",
    "atomics.c",
    "completions.c",
    "counters.c",
    "lacking.c",
    "memory.c",
    "messages.c",
    "offers.c",
    "rma.c",
    "provider.c",
    "portals.c",
    "portals_data.c",
    "generated/portals_calls.c",
    "offload_base.c",
];
/// Sources of the library that offloads collective operations.
const OFFLOAD: [&str; 3] = ["offload.c", "offload_mpi.c", "offload_card.c"];

/// The header of handlers that the second library has in common with them.
const COLLECTIVES: &str = "collectives.h";

fn main() {
    println!("cargo::rerun-if-changed=.");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let path = format!("include/{COLLECTIVES}");
    let header = nicety_handlers::FILES.iter().find(|(name, _)| *name == path);
    let (_, text) = header.expect("handlers have the header");
    std::fs::write(folder.join(COLLECTIVES), text).expect("the output folder can be written");
    // Programs that are linked with libportals ask for this name, and so find the library that is already loaded.
    compile(&folder, "libnicety-fi.so", &["-Wl,-soname,libportals.so"], &SOURCES);
    compile(&folder, "libnicety-offload.so", &[&format!("-I{}", folder.display())], &OFFLOAD);
}

fn compile(folder: &Path, name: &str, options: &[&str], sources: &[&str]) {
    let into = folder.join(name);
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        // Processes can be simulated on Linux only.
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
        // GCC 14 and Clang 16 refuse such calls by default, and older compilers must not hide them.
        .flag("-Werror=implicit-function-declaration")
        .try_get_compiler()
        .expect("a C compiler, as Rust needs one to link")
        .to_command();
    // An include in angle brackets finds this folder here, and the installed headers for users.
    compiler.args(["-shared", "-I.", "-o"]).arg(&into).args(options);
    compiler.args(sources);
    compiler.args(["-ldl", "-lpthread"]);
    let status = compiler.status().expect("the C compiler runs");
    assert!(status.success(), "{name}, for processes, does not compile");
}
