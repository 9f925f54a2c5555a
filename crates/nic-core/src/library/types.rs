//! The types of a card's design in the library.

use crate::CardError;

/// The types of a card's design in the library of a host.
pub trait Types: Sized + 'static {
    /// The design's part of a message that has arrived, such as the place of its bytes.
    type Body;
    /// The design's part of a posted receive.
    type Progress: Default;
    /// The reason why the library has failed. A failure ends all later calls.
    type Failure: Clone;
    /// The error of a call.
    type Error: Into<CardError>;

    /// The error of a call that finds the library failed.
    fn failed(failure: &Self::Failure) -> Self::Error;
}
