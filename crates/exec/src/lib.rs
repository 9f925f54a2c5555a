//! Runs real programs on simulated cards. Each process is the program of a host. Its messages go through the host's card, in
//! virtual time.
//!
//! A C library (`shim/`) is loaded into each process. It has a libfabric provider, through which MPI and other libraries
//! communicate. It also replaces clocks and waits by those in virtual time. The library makes its calls to the simulator over
//! shared memory.
//!
//! - `requests.rs`, `run.rs`: input and output of a run, and the run;
//! - `protocol.rs`, `pages.rs`, `futex.rs`: the memory that processes and the simulator share, and waits on words of this memory;
//! - `memory.rs`: the memory of a process, which holds the bytes of messages;
//! - `places.rs`: the host of each process, and the tags that separate messages of several processes of a host;
//! - `launcher.rs`: kinds of launchers;
//! - `launch.rs`: start and end of processes;
//! - `words.rs`: output of processes;
//! - `installed.rs`: headers and library for programs with Portals;
//! - `cpu.rs`: the CPUs of processes;
//! - `spent.rs`: the parts into which a process's virtual time is divided;
//! - `states.rs`: the states of processes, and the number of processes in each state;
//! - `turns.rs`: the process that may run now, and the progress of virtual time;
//! - `looks.rs`: polls that find nothing, and deadlocks of processes;
//! - `ends.rs`: the reason why a run ended;
//! - `rank`: the calls of a process, executed by a host and its card;
//! - `notes.rs`: replaces the tags and ranks of cards in texts by those of the program;
//! - `completions.rs`: completions of a process;
//! - `rma`: the registered memory of a process, and its accesses to registered memory of other processes;
//! - `portals`: calls of Portals 4;
//! - `channels`: calls of goroutines with channels to the card;
//! - `offload.rs`: collective operations of MPI that cards execute;
//! - `trial.rs`: the maximum length at which cards reduce a vector faster than MPI;
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

// Every operating system has the schemas of the reports, but only Linux can make reports.
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

/// Installs the headers and the library for programs with Portals in a folder.
///
/// # Errors
/// Always: only Linux can run such programs.
#[cfg(not(target_os = "linux"))]
pub fn install_for_programs(_: &std::path::Path) -> Result<(), nicety::Error> {
    Err(nicety::Error::Input("programs run on simulated hosts only under Linux".to_owned()))
}

/// Returns an empty hash, because builds for other systems have no libraries for processes.
#[cfg(not(target_os = "linux"))]
pub fn build() -> String {
    String::new()
}

/// Runs a program. `recorded` gets the recording of the run: the activities of hosts and network, with their virtual times.
/// `said` gets the launcher's output about the end of processes. It is called at most once.
///
/// # Errors
/// When an option is invalid. When the program cannot be started, never uses the network, or ends early. When its processes wait
/// for each other.
#[cfg(not(target_os = "linux"))]
pub fn run(
    _: &Request,
    _: &nicety::Environment<'_>,
    _: Option<&dyn Fn(nicety::record::Recording)>,
    _: &dyn Fn(String),
) -> Result<Report, nicety::Error> {
    Err(nicety::Error::Input("programs run on simulated hosts only under Linux".to_owned()))
}
