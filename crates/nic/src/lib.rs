//! The parts of a card, and the cards made of them.
//!
//! - [`nfp`]: the microengines of a network flow processor, and their memories.
//! - [`qnix`]: virtual network interfaces: every process has its own protected piece of the card.
//! - [`spin`]: the card of the sPIN paper: Portals 4 messages, packet handlers on handler processors.
//! - [`transport`]: reliable transport between a card and its link, for networks that lose packets.
//!
//! A card is described by a [`CardSpec`], which is read from a TOML file; one design serves every card that is an
//! arrangement of its parts.

mod bus;
mod loopback;
pub mod nfp;
mod node;
pub mod qnix;
mod spec;
pub mod spin;
pub mod transport;

pub use node::NodeSpec;
pub use spec::{CardSpec, Design, SpinSpec, WrongDesign, read};
