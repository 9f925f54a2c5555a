//! The QNIX card: times by hand, limits, protection, memory, and random traffic of many processes.

mod cancelled;
mod limits;
mod memory;
mod order;
pub(crate) mod support;
mod timing;
mod traffic;

/// Number of random cases: `usual`, or `PROPTEST_CASES` for a long run.
fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}
