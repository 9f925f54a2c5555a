//! The portal table entry and the match bits of `send` and `recv`.

use nicety_portals::{Event, EventKind};

/// The portal table entry that `send` and `recv` use.
pub const MESSAGES: u32 = 0;

/// The match bit that marks a long message.
pub(in crate::spin) const LONG: u64 = 1 << 63;
/// The match bits with a long message's number at its sender.
pub(super) const NUMBER: u64 = (1 << 31) - 1;
pub(super) const NUMBER_AT: u32 = 32;

/// The number of a long message: its sender waits for a get with it, and its receiver gets with it.
pub(in crate::spin) const fn number_of(match_bits: u64) -> u64 {
    match_bits >> NUMBER_AT & NUMBER
}

/// A message's tag.
pub(in crate::spin) const fn tag_of(match_bits: u64) -> u32 {
    match_bits as u32
}

/// The number of the send or receive that an event of the library's queue is for.
pub(super) fn request_of(event: &Event) -> u64 {
    // A get names the message that its sender waits with.
    if event.kind == EventKind::Get { event.match_bits & NUMBER } else { event.user_ptr & NUMBER }
}
