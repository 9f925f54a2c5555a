//! A core as handlers written for PsPIN see it, and DMA beside it.
//!
//! | part | file |
//! |---|---|
//! | its commands in flight | `command_unit.rs` |
//! | its registers, and its memory in the cluster | `hardware.rs` |
//! | numbers of the transfers of a cluster's DMA engine | `transfers.rs` |
//! | beats of DMA at the cluster's memory, in which cores wait | `ports.rs` |

pub(in crate::spin) mod command_unit;
pub(in crate::spin) mod hardware;
pub(in crate::spin) mod ports;
pub(in crate::spin) mod transfers;
