//! Parts of cards: each exists once, knows no design, and has tests of its own.
//!
//! | part | file |
//! |---|---|
//! | posted receives, and messages that came before theirs | `matching.rs` |
//! | message numbers seen, to detect duplicates | `seen.rs` |

mod matching;
mod seen;

pub use matching::Matching;
pub use seen::Seen;
