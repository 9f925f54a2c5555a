//! Programs with handlers, and a host's objects on its card.
//!
//! | part | file |
//! |---|---|
//! | a program with handlers, and the check that it fits on a card | `program.rs` |
//! | a program written for PsPIN | `pspin.rs` |
//! | applications: weight, budgets and common accounting of programs | `application.rs` |
//! | HPU memory, shared by applications | `memory.rs` |
//! | handlers attached to a state, for match entries | `attachments.rs` |

pub mod application;
pub mod attachments;
pub mod memory;
pub mod program;
pub(super) mod pspin;
