//! Failures of a host's call on a channel.

use nicety_channels::{Error, Failure};
use std::fmt;

/// The failure of a call on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelError {
    /// The call was refused, and had no effect.
    Refused(Error),
    /// The call failed after it began.
    Failed(Failure),
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChannelError::Refused(error) => error.fmt(f),
            ChannelError::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for ChannelError {}

impl From<Error> for ChannelError {
    fn from(error: Error) -> ChannelError {
        ChannelError::Refused(error)
    }
}

impl From<Failure> for ChannelError {
    fn from(failure: Failure) -> ChannelError {
        ChannelError::Failed(failure)
    }
}
