//! All tests of the crate but those that count allocations: one program is built and linked sooner than many.

mod faults;
mod interfaces;
mod itself;
mod mixed;
mod portals;
mod recording;
mod threads;
