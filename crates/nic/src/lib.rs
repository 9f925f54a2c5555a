//! The cards of nicety.
//!
//! - [`apenet`]: RDMA between registered memories, with a TLB and parallel DMA engines.
//! - [`ethernet`]: frames below TCP, through the kernel of the host.
//! - [`nfp`]: the microengines of a network flow processor, and their memories.
//! - [`qnix`]: virtual network interfaces: every process has its own protected interface.
//! - [`spin`]: the card of the sPIN paper: Portals 4 messages, packet handlers on handler processors.

pub mod apenet;
pub mod ethernet;
pub mod nfp;
pub mod qnix;
pub mod spin;
