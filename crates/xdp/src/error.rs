//! Errors of programs on cards: one line each.

use nicety_ebpf::ObjectError;
use std::fmt;

/// The reason why a program cannot be put on a card.
#[derive(Debug)]
pub enum XdpError {
    /// The object.
    Object(ObjectError),
    /// A map's entries: name and problem.
    Map(String, String),
    /// The linked program is not one of this crate's.
    Program(String),
}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XdpError::Object(error) => error.fmt(f),
            XdpError::Map(name, problem) => write!(f, "map {name}: {problem}"),
            XdpError::Program(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for XdpError {}

impl From<ObjectError> for XdpError {
    fn from(error: ObjectError) -> XdpError {
        XdpError::Object(error)
    }
}
