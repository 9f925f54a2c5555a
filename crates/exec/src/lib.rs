//! Real programs on modelled cards: each process of a program is the program of a host, and what it sends goes through the
//! host's card, in virtual time.
//!
//! A library is loaded into each process (`client/`, in C): a provider of libfabric, through which MPI and others send and receive,
//! and clocks and waits that follow virtual time. It makes its calls over shared memory.
//!
//! - `protocol.rs`, `pages.rs`: what processes and the simulation share;
//! - `memory.rs`: the memory of a process, where the bytes of messages are;
//! - `places.rs`: which host a process is on, and how messages of several processes of a host are told apart;
//! - `launch.rs`: how processes are started and end;
//! - `words.rs`: what they print;
//! - `installed.rs`: what programs with Portals are compiled with;
//! - `cpu.rs`: where they run;
//! - `spent.rs`: what processes spend their time with;
//! - `turns.rs`: which of them runs, and when time goes on;
//! - `looks.rs`: looks that find nothing, and when processes wait for each other;
//! - `ends.rs`: why a run ended;
//! - `rank`: the calls of a process, carried out by a host and its card;
//! - `notes.rs`: what cards tell of messages, in the words of their processes;
//! - `window.rs`: how many messages are under way;
//! - `completions.rs`: what has ended for a process;
//! - `rma`: its registered memory, and its accesses to that of others;
//! - `portals`: those of them that are of Portals 4;
//! - `channels`: those of processes whose goroutines have channels to the card;
//! - `offload.rs`: collective operations of MPI that cards execute;
//! - `trial.rs`: up to which length cards reduce quicker than MPI;
//! - `schedule.rs`: what processes did, as a schedule.

#[cfg(target_os = "linux")]
mod channels;
#[cfg(target_os = "linux")]
mod completions;
#[cfg(target_os = "linux")]
mod cpu;
#[cfg(target_os = "linux")]
mod ends;
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
mod schedule;
#[cfg(target_os = "linux")]
mod spent;
#[cfg(target_os = "linux")]
mod turns;
#[cfg(target_os = "linux")]
mod window;
#[cfg(target_os = "linux")]
mod words;

#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod trial;

// Its reports have a schema everywhere; only Linux fills them in.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod offload;
mod requests;

#[cfg(target_os = "linux")]
pub use installed::install_for_programs;
#[cfg(target_os = "linux")]
pub use launch::build;
pub use offload::{Offloaded, Passed, Plan, Planned, RankOffload, plan};
pub use requests::{Launcher, Rank, Report, Request, run, schemas};

/// Puts what programs with Portals are compiled with into a folder.
///
/// # Errors
/// This is not Linux.
#[cfg(not(target_os = "linux"))]
pub fn install_for_programs(_: &std::path::Path) -> Result<(), nicety::Error> {
    Err(nicety::Error::Input("programs run on simulated hosts under Linux alone".to_owned()))
}

/// Nothing tells builds apart where none has libraries for processes.
#[cfg(not(target_os = "linux"))]
pub fn build() -> String {
    String::new()
}
