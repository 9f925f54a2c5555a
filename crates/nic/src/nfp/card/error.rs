//! Why a host's call on a channel failed.

use nicety_channels::{Error, Failure};
use std::fmt;

/// Why a call on a channel failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelError {
    /// It was refused; nothing has changed.
    Refused(Error),
    /// It was begun, and failed.
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
