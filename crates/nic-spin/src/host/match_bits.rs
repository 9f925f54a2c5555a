//! The portal table entry and the match bits of `send` and `recv`: a bit for long messages, and the tag.

use nicety_nic_core::LARGEST_TAG;

/// The portal table entry of `send` and `recv`.
pub const MESSAGES: u32 = 0;

/// The match bit that marks a long message.
pub(crate) const LONG: u64 = 1 << 63;
const _: () = assert!(LARGEST_TAG & LONG == 0, "a tag leaves it free");

/// Returns a message's tag.
pub(crate) const fn tag_of(match_bits: u64) -> u64 {
    match_bits & !LONG
}
