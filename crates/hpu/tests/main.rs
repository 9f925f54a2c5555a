//! All tests of the crate except those that count allocations: one program builds and links faster than many.

mod banks;
mod common;
mod cycles;
mod data_cache;
mod extensions;
mod fetching;
mod floats;
mod instructions;
mod oracle;
mod overlap;
mod profile;
mod programs;
mod properties;
mod sharing;
mod traps;
mod turns;
mod wide;
mod wide_memory;
