//! The text format of GOAL: `read` and `write`.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   a: calc 1000              // ns
//!   b: send 8b to 1 tag 7 cpu 0 nic 0
//!   b requires a              /* b starts when a is done */
//! }
//! rank 1 {
//!   recv 8b from -1 tag -1    // from any rank, with any tag
//! }
//! ```

mod labels;
pub(crate) mod lines;
mod read;
mod scan;
mod write;

pub use read::{Labels as DuplicateLabels, read};
pub use write::write;
