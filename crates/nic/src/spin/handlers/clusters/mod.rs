//! Clusters of handler processors: where packets lie, and which cluster they come to.
//!
//! | part | file |
//! |---|---|
//! | memory in rings, freed in order | `rings.rs` |
//! | slots of packet buffers, and packets that wait for them | `slots.rs` |
//! | how long packets keep their places | `stays.rs` |
//! | the packet scheduler, and copies of packets to clusters | `packets.rs` |

pub(in crate::spin) mod packets;
mod rings;
pub(in crate::spin) mod slots;
pub(in crate::spin) mod stays;
