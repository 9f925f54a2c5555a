//! A checker of handlers on simulated cores: memory, races, locks, lifetimes and commands.
//!
//! A driver reports each instruction of each handler before it is executed ([`Checker::step`]), and the begin and end of each run. The
//! checker lists [`Finding`]s. It needs no change of the program, and no source of its own.
//!
//! | part | file |
//! |---|---|
//! | findings and their advice | `finding.rs` |
//! | undefined bits of results | `bits.rs` |
//! | undefined bits and pointers in memory | `shadow.rs`, `area.rs` |
//! | vector clocks, races | `clocks.rs`, `races.rs` |
//! | locks, their order and misuse | `locks.rs` |
//! | call stacks | `calls.rs` |
//! | loops that wait | `loops.rs` |
//! | programs, decoded | `code.rs` |
//! | the shadow of a run | `run.rs` |
//! | begin and end of runs | `checker.rs` |
//! | instructions | `execute.rs`, `order.rs` |
//! | commands of nicety.h, registers of PsPIN | `commands.rs`, `registers.rs` |
//! | words by the number of the core | `cores.rs` |
//! | transfers in flight | `transfers.rs` |
//! | calls of nfp.h, memory of a microengine | `contexts.rs`, `processes.rs`, `held.rs`, `local.rs` |
//! | findings by instruction, and by line | `raw.rs`, `report.rs` |
//!
//! A process on a context of a microengine is a thread too; [`Checker::begin_process`] begins it.
//!
//! The rules are those of known tools: definedness of memcheck, the order of ThreadSanitizer and FastTrack, locks of helgrind. A run of a
//! handler is a thread. sPIN orders the header handler of a message before its payload handlers, and these before the completion handler.

mod area;
mod bits;
mod calls;
mod checker;
mod clocks;
mod code;
mod commands;
mod contexts;
mod cores;
mod execute;
mod finding;
mod held;
mod local;
mod locks;
mod loops;
mod order;
mod processes;
mod races;
mod raw;
mod registers;
mod report;
mod run;
mod shadow;
mod transfers;

pub use crate::checker::{Checker, Ending, Interface, Limits};
pub use crate::finding::{Defect, Finding, Frame, PlaceKey, Side};
pub use crate::run::{Begin, BeginProcess, Handler};
