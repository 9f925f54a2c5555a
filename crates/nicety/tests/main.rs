//! All tests of the crate except the counts of allocations, in one binary, which links faster than several.

mod capture;
mod faults;
mod flow;
mod interfaces;
mod itself;
mod lost;
mod matching;
mod messages;
mod mixed;
mod peers;
mod portals;
mod rdma;
mod recording;
mod relayed;
mod threads;
