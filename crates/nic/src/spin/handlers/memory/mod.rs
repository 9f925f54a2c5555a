//! The memory system: levels, their banks and caches, and the waits there.
//!
//! | part | file |
//! |---|---|
//! | the memory and offset of an access | `reach.rs` |
//! | source lines that wait | `waits.rs` |
//! | data caches before levels | `cached.rs` |
//! | the levels, and their banks | `levels.rs` |

pub(in crate::spin) mod cached;
pub(in crate::spin) mod levels;
pub(in crate::spin) mod reach;
pub(in crate::spin) mod waits;
