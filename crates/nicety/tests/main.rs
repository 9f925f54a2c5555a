//! All tests of the crate are in one binary, which links faster than several. Only the tests that count allocations
//! have a separate binary.

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
