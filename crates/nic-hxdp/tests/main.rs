//! Tests of the crate through its public interface.

mod bytes;
mod core;
mod published;
