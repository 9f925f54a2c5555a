//! All tests of the crate but those that count allocations: one program is built and linked sooner than many.

mod atomic;
mod common;
mod flow;
mod handlers;
mod header;
mod initiator;
mod late;
mod limits;
mod matching;
mod model;
mod overflow;
mod replies;
mod search;
mod triggered;
