//! All tests of the crate except the tests that count allocations. One binary links faster than many.

mod applications;
mod bookkeeping;
mod bus;
mod calls;
mod clusters;
mod commands;
mod contexts;
mod data_caches;
mod delivery;
mod handlers;
mod levels;
mod observing;
mod pending;
mod recording;
mod relayed;
mod replies;
mod spec;
mod support;
mod threads;
mod timing;
mod transport;
mod untrusted;
mod unwaited;
mod visibility;
mod yielding;
