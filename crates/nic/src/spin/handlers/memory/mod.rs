//! The memory system: levels, their banks and caches, and who waits there.
//!
//! | part | file |
//! |---|---|
//! | where an access goes | `reach.rs` |
//! | the lines that wait | `waits.rs` |
//! | data caches before levels | `cached.rs` |
//! | the levels, and their banks | `levels.rs` |

pub(in crate::spin) mod cached;
pub(in crate::spin) mod levels;
pub(in crate::spin) mod reach;
pub(in crate::spin) mod waits;
