//! Tests of the APEnet+ card: times calculated by hand, translation, protection, queues at their limits, and random
//! traffic.

mod figures;
mod gpu;
mod limits;
mod lost;
mod order;
mod refusals;
mod support;
mod timing;
mod traffic;
mod untrusted;
