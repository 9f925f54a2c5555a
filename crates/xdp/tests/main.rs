//! Tests of the crate through its public interface.

mod maps;
mod programs;
mod random;
mod toolchain;
