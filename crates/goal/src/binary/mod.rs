//! The binary format of GOAL, as LogGOPSim's `txt2bin` writes it. Numbers are little-endian, without padding.
//!
//! ```text
//!  0  u64 4223      8  u32 ranks      12 u8 highest CPU      13 u8 highest interface
//! 14  for each rank: u64 start, u64 end of its block, from byte 8 on
//! block: u32 operations, u32 roots, u32 number of each root; then for each operation 39 bytes, and the dependents:
//!     of each operation those that wait for its end, then those that wait for its start
//! ```

mod read;
mod write;

pub use read::read;
pub use write::write;

/// The first eight bytes.
pub(crate) const MAGIC: u64 = 4223;
/// Bytes before the table of blocks.
const HEAD: u64 = 14;
/// The offset in the file from which positions of blocks are counted.
const ORIGIN: u64 = 8;
/// Bytes of an operation.
const NODE: u64 = 39;
