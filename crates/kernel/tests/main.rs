//! All tests of the crate except those that count allocations: one program builds and links faster than many.

mod cancel;
mod ends;
mod order;
mod shards;
mod timing;
mod units;
