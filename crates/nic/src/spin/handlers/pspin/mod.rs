//! A core as handlers written for PsPIN see it.
//!
//! | part | file |
//! |---|---|
//! | its commands in flight | `command_unit.rs` |
//! | its registers, and its memory in the cluster | `hardware.rs` |

pub(in crate::spin) mod command_unit;
pub(in crate::spin) mod hardware;
