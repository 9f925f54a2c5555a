//! The memory system: levels, their banks and caches, and the waits there.
//!
//! | part | file |
//! |---|---|
//! | the memory and offset of an access | `reach.rs` |
//! | source lines that wait | `waits.rs` |
//! | waits for single banks | `bank_waits.rs` |
//! | caches of all cores behind data caches | `outer.rs` |
//! | data caches before levels | `cached.rs` |
//! | the levels, and their banks | `levels.rs` |

pub(crate) mod bank_waits;
pub(crate) mod cached;
pub(crate) mod levels;
mod outer;
pub(crate) mod reach;
pub(crate) mod waits;
