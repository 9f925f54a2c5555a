//! A core as handlers written for PsPIN see it, and DMA beside it.
//!
//! | part | file |
//! |---|---|
//! | two levels of round robin, by cycle | `tree.rs` |
//! | the same in simulated time: places of engines, and their responses | `arbiter.rs` |
//! | its commands in flight, and the feedback that waits for them | `command_unit.rs` |
//! | its registers, and its memory in the cluster | `hardware.rs` |
//! | numbers of the transfers of a cluster's DMA engine | `transfers.rs` |
//! | channels of a beat a cycle, and transactions in flight | `lanes.rs` |
//! | beats of DMA at the cluster's memory, in which cores wait | `ports.rs` |
//! | streams between engines and the card's memories | `streams.rs` |

pub(in crate::spin) mod arbiter;
pub(in crate::spin) mod command_unit;
pub(in crate::spin) mod hardware;
pub(in crate::spin) mod lanes;
pub(in crate::spin) mod ports;
pub(in crate::spin) mod streams;
pub(in crate::spin) mod transfers;
mod tree;
