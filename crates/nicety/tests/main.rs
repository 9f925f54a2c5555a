//! All tests of the crate in one binary, which links faster than several. The tests that count allocations have a binary of their
//! own.

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
