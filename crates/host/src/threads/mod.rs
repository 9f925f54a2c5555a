//! Kernel and user threads on many hardware threads: where time goes when messages pass through an operating system.
//!
//! A [`Thread`] works in pieces: so many instructions, on data that may have left the caches meanwhile. Between pieces
//! it keeps its CPU, and gives it up where it [sleeps](Thread::sleep). To wake a thread is work as well: on another CPU it
//! takes a cross-call, and there a context switch, and the data that the thread left in the caches of its core has to
//! come again.
//!
//! | file | what it has |
//! |---|---|
//! | `spec` | the processor and the costs of its operating system |
//! | `caches` | which lines of what threads touch, and of their code, are still there |
//! | `account` | CPU time, instructions and misses, by function group |
//! | `cores` | instructions that the hardware threads of a core share |
//! | `queues` | which thread runs where: run queues, idle CPUs, interrupts |
//! | `thread` | a thread, as code has it that runs on it |
//!
//! These parts know no card and no protocol.

mod account;
mod caches;
mod cores;
mod queues;
mod spec;
#[cfg(test)]
mod tests;
mod thread;

pub use account::{Account, Group, GroupAccount};
pub use caches::{Data, Misses};
pub use spec::{CachesSpec, CodeSpec, ThreadsSpec};
pub use thread::{Piece, Placement, Thread, Threads};
