//! A server of GDB's remote protocol on the simulated handler cores of a card.
//!
//! A [`Session`] is an observer of a card's handlers ([`nicety_nic_processors::observe`]), or of the processes on a flow
//! processor ([`nicety_nic_nfp::observe`]). At a stop it serves the
//! debugger's socket inside the observer's call, so that no simulated time passes. The way back in time is a run of the same
//! simulation up to an earlier instruction.
//!
//! A module imports only from the modules above it in this table:
//!
//! | module | contents |
//! |---|---|
//! | `arch` | registers, and the description of the target |
//! | `breaks` | breakpoints and watchpoints |
//! | `packets` | whole and damaged packets |
//! | `connection` | the listener and the socket |
//! | `monitor` | commands behind `monitor` |
//! | `subject` | handlers and processes, as a debugger sees them |
//! | `machine` | the stopped cores |
//! | `target` | answers to packets |
//! | `session` | stops, and ways back |
//! | `observers` | reports of handlers and of processes |

#![forbid(unsafe_code)]

mod arch;
mod breaks;
mod connection;
mod machine;
pub mod monitor;
mod observers;
mod packets;
mod session;
mod subject;
mod target;

pub use connection::{ListenError, Listener, Wire};
pub use session::{End, Session};
