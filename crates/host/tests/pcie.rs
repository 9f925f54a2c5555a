//! PCI Express: sizes, times, bandwidth, credits, tags and ordering. Each result is compared with one computed by hand
//! from the constants of the Base Specification.

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
