//! All tests of the crate but those that count allocations: one program is built and linked sooner than many.

mod cancel;
mod ends;
mod order;
mod shards;
mod timing;
mod units;
