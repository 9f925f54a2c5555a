//! Common parts of the tests of cards: hosts with cards of any design, forged packets, a relay between two cards, and
//! handlers in hand-assembled code.

pub mod code;
pub mod forger;
mod host;
mod path;
pub mod profile;
mod random;
pub mod relay;

pub use host::Host;
pub use path::PathCell;
pub use random::cases;

/// Returns `len` bytes that depend on their offset and on the seed.
pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed * 0x0101_4567)).to_le_bytes()[4])
        .collect()
}
