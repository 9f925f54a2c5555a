//! Real programs on modelled cards: each process of a program is the program of a host. Its messages go through the host's card, in virtual
//! time.
//!
//! A library is loaded into each process (`shim/`, in C). It has a libfabric provider, through which MPI and others communicate, and
//! clocks and waits in virtual time. It makes its calls over shared memory.
//!
//! - `requests.rs`, `run.rs`: input and output of a run, and the run;
//! - `protocol.rs`, `pages.rs`, `futex.rs`: the memory that processes and the simulator share, and waits for its words;
//! - `memory.rs`: the memory of a process, which holds the bytes of messages;
//! - `places.rs`: the host of each process, and the tags that separate messages of several processes of a host;
//! - `launcher.rs`: kinds of launchers;
//! - `launch.rs`: start and end of processes;
//! - `words.rs`: their output;
//! - `installed.rs`: headers and library for programs with Portals;
//! - `cpu.rs`: the CPUs of processes;
//! - `spent.rs`: the shares of a process's time;
//! - `states.rs`: the states of processes, with their numbers;
//! - `turns.rs`: the process with the turn, and the progress of time;
//! - `looks.rs`: looks that find nothing, and deadlocks of processes;
//! - `ends.rs`: the reason why a run ended;
//! - `rank`: the calls of a process, carried out by a host and its card;
//! - `notes.rs`: messages in the cards' notes, in terms of the program;
//! - `completions.rs`: completions of a process;
//! - `rma`: its registered memory, and its accesses to that of others;
//! - `portals`: calls of Portals 4;
//! - `channels`: calls of goroutines with channels to the card;
//! - `offload.rs`: collective operations of MPI that cards execute;
//! - `trial.rs`: the length up to which cards reduce faster than MPI;
//! - `schedule.rs`: a schedule of the processes' operations.

#[cfg(target_os = "linux")]
mod channels;
#[cfg(target_os = "linux")]
mod completions;
#[cfg(target_os = "linux")]
mod cpu;
#[cfg(target_os = "linux")]
mod ends;
mod executable;
#[cfg(target_os = "linux")]
mod futex;
#[cfg(target_os = "linux")]
mod installed;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod looks;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod notes;
#[cfg(target_os = "linux")]
mod pages;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod portals;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod rank;
#[cfg(target_os = "linux")]
mod rma;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod schedule;
#[cfg(target_os = "linux")]
mod spent;
#[cfg(target_os = "linux")]
mod states;
#[cfg(target_os = "linux")]
mod turns;
#[cfg(target_os = "linux")]
mod words;

#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod trial;

// Every system has the schema of its reports; only Linux can fill them in.
mod launcher;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod offload;
mod requests;

pub use executable::check_executable;
#[cfg(target_os = "linux")]
pub use installed::install_for_programs;
#[cfg(target_os = "linux")]
pub use launch::build;
pub use launcher::Launcher;
pub use offload::{Plan, Planned, plan};
pub use requests::{Fallback, Offloaded, Rank, RankOffload, Report, Request, schemas};
#[cfg(target_os = "linux")]
pub use run::run;

/// Installs headers and library for programs with Portals in a folder.
///
/// # Errors
/// This is not Linux.
#[cfg(not(target_os = "linux"))]
pub fn install_for_programs(_: &std::path::Path) -> Result<(), nicety::Error> {
    Err(nicety::Error::Input("programs run on simulated hosts under Linux alone".to_owned()))
}

/// Builds without libraries for processes need no hash.
#[cfg(not(target_os = "linux"))]
pub fn build() -> String {
    String::new()
}

/// Runs a program. `recorded` gets the activities of hosts and network, with their times. `said` gets the launcher's output about the end
/// of processes, and is called at most once.
///
/// # Errors
/// An option is invalid; the program cannot be started, never uses the network, or ends early; its processes wait for each other.
#[cfg(not(target_os = "linux"))]
pub fn run(
    _: &Request,
    _: &nicety::Environment<'_>,
    _: Option<&dyn Fn(nicety::record::Recording)>,
    _: &dyn Fn(String),
) -> Result<Report, nicety::Error> {
    Err(nicety::Error::Input("programs run on simulated hosts under Linux alone".to_owned()))
}
