//! Debugging sessions, by a small client of GDB's remote protocol.

mod client;
mod sessions;
#[path = "../../nic-spin/tests/support/mod.rs"]
mod support;
