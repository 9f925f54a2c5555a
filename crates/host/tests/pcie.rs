//! PCI Express: sizes, times, bandwidth, credits, tags and ordering, each against manual arithmetic with the constants
//! of the Base Specification.

#[path = "pcie/bandwidth.rs"]
mod bandwidth;
#[path = "pcie/limits.rs"]
mod limits;
#[path = "pcie/random.rs"]
mod random;
#[path = "pcie/sizes.rs"]
mod sizes;
#[path = "pcie/support.rs"]
mod support;
#[path = "pcie/timing.rs"]
mod timing;
