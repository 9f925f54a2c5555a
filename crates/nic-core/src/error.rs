//! Failures of a host's calls on its card.

use nicety_host::MemoryError;
use std::fmt;

/// The failure of a host's call on its card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardError {
    /// The arguments are invalid, in any state of the card.
    Input(String),
    /// The call is impossible in the present state of the card, or it failed.
    Failed(String),
    /// A program on the card trapped, and the call waited for its result.
    Trapped(String),
}

impl CardError {
    /// Returns the error for a rank that does not exist.
    pub fn no_rank(rank: u32, ranks: u32) -> CardError {
        CardError::Input(format!("there is no rank {rank}; the cluster has ranks 0 to {}", ranks - 1))
    }
}

impl fmt::Display for CardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CardError::Input(text) | CardError::Failed(text) | CardError::Trapped(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for CardError {}

impl From<MemoryError> for CardError {
    fn from(error: MemoryError) -> CardError {
        CardError::Failed(error.to_string())
    }
}
