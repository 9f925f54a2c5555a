//! Kernel and user threads on many hardware threads: the time that messages spend in an operating system.
//!
//! A [`Thread`] works in pieces: a number of instructions, on data that may have left the caches. Between pieces it
//! keeps its CPU. It gives up the CPU when it [sleeps](Thread::sleep). A thread that wakes another thread spends time
//! on the wake-up. To start the woken thread on another CPU takes a cross-call (an inter-processor interrupt) to that
//! CPU, and a context switch there. Data that the thread left in the caches of its previous core must be fetched again.
//!
//! | file | contents |
//! |---|---|
//! | `spec` | the processor and the costs of its operating system |
//! | `caches` | the cached lines of threads' data and of their code |
//! | `account` | CPU time, instructions and misses, by function group |
//! | `cores` | the shares of a core's instructions among its hardware threads |
//! | `queues` | the assignment of threads to CPUs: run queues, idle CPUs, interrupts |
//! | `thread` | a thread, as the code on it sees it |
//!
//! These modules depend on no card and no protocol.

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
