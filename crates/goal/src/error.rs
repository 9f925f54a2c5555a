//! Errors in files: the problem, and its place.

use std::fmt;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A place in a text. Lines and columns are counted from 1.
    Text {
        /// The line.
        line: u64,
        /// The column, in bytes.
        column: usize,
    },
    /// A place in a binary file: the offset of a byte, from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Text { line, column } => write!(f, "line {line}, column {column}"),
            Place::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// The reason why a file is no schedule, or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The place.
    pub place: Place,
    /// The rank, if the place is in the block of a rank.
    pub rank: Option<u32>,
    /// The error.
    pub text: String,
    /// Whether reading stopped because the caller requested it.
    pub interrupted: bool,
}

impl ReadError {
    pub(crate) fn new(place: Place, rank: Option<u32>, text: impl Into<String>) -> ReadError {
        ReadError { place, rank, text: text.into(), interrupted: false }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(rank) = self.rank {
            write!(f, "rank {rank}: ")?;
        }
        f.write_str(&self.text)
    }
}

impl std::error::Error for ReadError {}
