//! The result of a call.

use crate::Payload;

/// The result of a call that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Completion {
    /// Number of bytes transferred.
    pub bytes: u32,
    /// For the receiver of a direct message, the message's bytes. Otherwise empty.
    pub payload: Payload,
}

impl Completion {
    pub(crate) const fn bytes(bytes: u32) -> Completion {
        Completion { bytes, payload: Payload::EMPTY }
    }
}
