//! The types that a card's design defines for the library.

use crate::CardError;

/// The types that a card's design defines for the library of a host.
pub trait Types: Sized + 'static {
    /// The design's part of a message that has arrived, such as the location of its bytes.
    type Body;
    /// The design's part of a posted receive.
    type Progress: Default;
    /// The reason for which the library has failed. After a failure, all calls return errors.
    type Failure: Clone;
    /// The error of a call.
    type Error: Into<CardError>;

    /// Returns the error of a call, for a library that has failed.
    fn failed(failure: &Self::Failure) -> Self::Error;
}
