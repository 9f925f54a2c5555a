//! The result of a call.

use crate::Payload;

/// The result of a call that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Completion {
    /// Bytes transferred.
    pub bytes: u32,
    /// The bytes of a direct message at its receiver; empty otherwise.
    pub payload: Payload,
}

impl Completion {
    pub(crate) const fn bytes(bytes: u32) -> Completion {
        Completion { bytes, payload: Payload::EMPTY }
    }
}
