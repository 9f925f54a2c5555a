//! Kernel and user threads on many hardware threads: the time that messages spend in an operating system.
//!
//! A [`Thread`] works in pieces: a number of instructions, on data that may have left the caches. Between pieces it
//! keeps its CPU, and gives it up when it [sleeps](Thread::sleep). A wake-up of another thread is work as well. To start
//! a thread on another CPU takes a cross-call to that CPU, and a context switch there. The data that the thread left in
//! its core's caches must be fetched again.
//!
//! | file | contents |
//! |---|---|
//! | `spec` | the processor and the costs of its operating system |
//! | `caches` | the cached lines of threads' data and of their code |
//! | `account` | CPU time, instructions and misses, by function group |
//! | `cores` | the shares of a core's instructions among its hardware threads |
//! | `queues` | the assignment of threads to CPUs: run queues, idle CPUs, interrupts |
//! | `thread` | a thread, in the view of the code on it |
//!
//! These parts depend on no card and no protocol.

mod account;
mod caches;
mod cores;
mod queues;
mod spec;
#[cfg(test)]
mod tests;
mod thread;

pub use account::{Account, Group, GroupAccount};
pub use caches::{Data, Misses, Page};
pub use spec::{CachesSpec, CodeSpec, CodeTlbSpec, ThreadsSpec, TlbSpec};
pub use thread::{Piece, Placement, Thread, Threads};
