//! Tests of the crate through its public interface.

mod generate;
mod instructions;
#[cfg(target_os = "linux")]
mod kernel;
mod lanes;
mod loaders;
mod maps;
mod objects;
mod packets;
mod reports;
mod translate;
mod verified;
