//! The parts of cards, and the cards made of them.
//!
//! - [`apenet`]: RDMA between registered memories, with a TLB and parallel DMA engines.
//! - [`ethernet`]: frames below TCP, through the kernel of the host.
//! - [`nfp`]: the microengines of a network flow processor, and their memories.
//! - [`qnix`]: virtual network interfaces: every process has its own protected interface.
//! - [`spin`]: the card of the sPIN paper: Portals 4 messages, packet handlers on handler processors.
//! - [`parts`]: parts that several cards share.
//!
//! A [`CardSpec`] describes a card, and is read from a TOML file. One [`Design`] serves every card that arranges its
//! parts. No code outside a design's own module names the design: `design.rs` is the seam.

pub mod apenet;
mod counters;
mod design;
pub mod ethernet;
mod messages;
pub mod nfp;
pub mod parts;
mod programs;
pub mod qnix;
mod sections;
pub mod spin;
mod text;

pub use counters::{CardReport, Counters};
pub use design::{Card, CardError, CardSpec, Design, LinkLayer, OfDesign, Seat, WrongDesign, read, stages};
pub use messages::{
    Arrival, Caller, Calling, LARGEST_TAG, Outgoing, Pairs, PostedReceive, TAG_BITS, Tags, Wanted, check_tag,
};
pub use programs::{FailureKind, LINES_KEPT, Log, LogLine, Logged, ProgramFailure, RefusedCommand};
pub use sections::{NodeSpec, read_bus, read_node};
pub use spin::SpinSpec;
