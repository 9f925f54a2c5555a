//! Arbitrary input from a link neither makes a card panic nor costs it a slot of its packet buffer. Invalid packets
//! are dropped and counted. Valid ones are processed as before.

mod apenet;
mod ethernet;
mod nfp;
mod qnix;
mod spin;
