//! Traps: the reason why a program stopped, with its place.

use std::fmt;

/// The kind of a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrapKind {
    /// An access outside the memory that the program has.
    Access,
    /// A write to memory that it may only read.
    ReadOnly,
    /// An argument that no helper takes.
    Argument,
    /// More instructions than the budget.
    Budget,
    /// More calls inside calls than there are frames.
    Depth,
    /// A lock or a record that the program keeps.
    Kept,
}

/// The end of a program that did something forbidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The kind.
    pub kind: TrapKind,
    /// The program, its instruction, and the line of the source.
    pub place: String,
    /// The forbidden operation.
    pub problem: String,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for Trap {}

/// A problem before its place is known, or a trap of a callback.
#[derive(Debug)]
pub(crate) enum Fault {
    Here(TrapKind, Box<str>),
    Inner(Box<Trap>),
}

impl Fault {
    #[cold]
    pub(crate) fn new(kind: TrapKind, problem: impl Into<String>) -> Fault {
        Fault::Here(kind, problem.into().into_boxed_str())
    }
}
