//! All tests of the crate but those that count allocations: one program is built and linked sooner than many.

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
mod programs;
mod properties;
mod sharing;
mod traps;
mod turns;
