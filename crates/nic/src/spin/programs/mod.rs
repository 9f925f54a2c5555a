//! Programs with handlers, and what a host has of them on its card.
//!
//! | part | file |
//! |---|---|
//! | a program with handlers, and whether it fits on a card | `program.rs` |
//! | a program written for PsPIN | `pspin.rs` |
//! | applications: weight, budgets and common accounting of programs | `application.rs` |
//! | HPU memory, shared by applications | `memory.rs` |
//! | handlers attached to a state, which match entries refer to | `attachments.rs` |

pub(super) mod application;
pub(super) mod attachments;
pub(super) mod memory;
pub(super) mod program;
pub(super) mod pspin;
