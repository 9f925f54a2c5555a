//! All tests of the crate except the counts of allocations, in one binary, which links faster than many.

mod apenet;
mod applications;
mod bookkeeping;
mod calls;
mod clusters;
mod commands;
mod contexts;
mod delivery;
mod ethernet;
mod handlers;
mod levels;
mod nfp;
mod pending;
mod qnix;
mod recording;
mod replies;
mod spec;
mod support;
mod timing;
mod transport;
mod transport_flow;
mod untrusted;
mod unwaited;
mod visibility;
mod wire;
mod yielding;
