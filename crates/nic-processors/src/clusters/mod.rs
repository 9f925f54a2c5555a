//! Clusters of handler cores: the memory of packets, and their assignment to clusters.
//!
//! | part | file |
//! |---|---|
//! | memory in rings, freed in order | `rings.rs` |
//! | slots of packet buffers, and packets that wait for them | `slots.rs` |
//! | occupancy of places and slots | `stays.rs` |
//! | the packet scheduler, and copies of packets to clusters | `packets.rs` |
//! | the course of a packet through the clusters | `course.rs` |

pub mod course;
pub mod packets;
mod rings;
pub(crate) mod slots;
pub(crate) mod stays;
