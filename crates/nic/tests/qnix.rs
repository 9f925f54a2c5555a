//! The QNIX card: times by hand, limits, protection, memory, and random traffic of many processes.

#[path = "qnix/limits.rs"]
mod limits;
#[path = "qnix/memory.rs"]
mod memory;
#[path = "qnix/order.rs"]
mod order;
#[path = "qnix/support.rs"]
mod support;
#[path = "qnix/timing.rs"]
mod timing;
#[path = "qnix/traffic.rs"]
mod traffic;
