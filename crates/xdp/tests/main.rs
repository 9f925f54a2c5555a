//! Tests of the crate through its public interface.

mod card;
mod flow;
mod maps;
mod objects;
mod programs;
mod random;
mod toolchain;
mod unverified;
