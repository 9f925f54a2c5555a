//! Tests Ethernet cards below TCP.

mod bytes;
mod channels;
mod driver;
mod errors;
mod handlers;
mod limits;
mod messages;
mod offload;
mod redirected;
mod specs;
mod support;
mod timing;
mod untrusted;
mod xdp;
