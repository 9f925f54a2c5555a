//! The QNIX card: times by hand, limits, protection, memory, and random traffic of many processes.

mod cancelled;
mod limits;
mod memory;
mod order;
pub(crate) mod support;
mod timing;
mod traffic;
