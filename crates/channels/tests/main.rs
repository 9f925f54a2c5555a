//! All tests of the crate except those that count allocations. They are one program, because it builds and links faster
//! than many.

mod common;
mod direct;
mod ends;
mod errors;
mod explore;
mod forged;
mod indirect;
mod message;
mod random;
