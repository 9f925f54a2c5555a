//! All tests of the crate except those that count allocations. They are one program, because it builds and links faster
//! than many.

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
