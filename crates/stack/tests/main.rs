//! The tests of this crate, in one program.

mod net;

mod bytes;
mod closing;
mod datagrams;
mod fuzz;
mod handshake;
mod limits;
mod link;
mod loss;
mod offload;
mod peer;
mod random;
mod stream;
mod timers;
