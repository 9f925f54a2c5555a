//! The QNIX card: times by hand, limits, protection, memory, and random traffic of many processes.

#[path = "qnix/cancelled.rs"]
mod cancelled;
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

/// How many random cases to try: `usual`, or what `PROPTEST_CASES` says for a long run.
fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}
