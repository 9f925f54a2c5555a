//! The QNIX card: times calculated by hand, limits, protection, memory, and random traffic of many processes.

mod cancelled;
mod limits;
mod memory;
mod order;
mod recording;
mod support;
mod timing;
mod traffic;
mod untrusted;
