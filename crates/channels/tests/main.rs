//! All tests of the crate but those that count allocations: one program is built and linked sooner than many.

mod common;
mod direct;
mod ends;
mod errors;
mod explore;
mod forged;
mod indirect;
mod message;
mod random;
