//! A core as seen by handlers written for PsPIN, and its DMA.
//!
//! | part | file |
//! |---|---|
//! | two levels of round-robin arbitration, by cycle | `tree.rs` |
//! | the same in simulated time: places of engines, and their responses | `arbiter.rs` |
//! | the commands in flight of a core, and the feedback that waits for them | `command_unit.rs` |
//! | the registers of a core, and its memory in the cluster | `hardware.rs` |
//! | numbers of the transfers of a cluster's DMA engine | `transfers.rs` |
//! | channels of one beat a cycle, and transactions in flight | `lanes.rs` |
//! | beats of DMA at the cluster's memory, for which cores wait | `ports.rs` |
//! | streams between engines and the card's memories | `streams.rs` |

pub mod arbiter;
pub mod command_unit;
pub mod hardware;
pub mod lanes;
pub mod ports;
pub mod streams;
pub(crate) mod transfers;
mod tree;
