//! The ways in which a run can end before its programs do.

use nicety_types::{NodeId, Time};
use std::fmt;

/// A program that waits for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The node on which it runs.
    pub node: NodeId,
    /// The program's name.
    pub program: String,
    /// The description of its wait, by [`describe`](crate::describe).
    pub why: String,
    /// The time of the program's last step.
    pub since: Time,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, program '{}', waits since {} for {}", self.node, self.program, self.since, self.why)
    }
}

/// Maximum number of waiting programs in the text of a deadlock.
const LISTED: usize = 8;

/// The reason why a run ended before its programs did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// No event is left, and programs still wait.
    Deadlock {
        /// The time of the last event.
        at: Time,
        /// The programs, sorted by node and then in order of their start.
        waiting: Vec<Waiting>,
    },
    /// [`Config::interrupt`](crate::Config::interrupt) was set.
    Interrupted {
        /// The time that the run had reached.
        at: Time,
    },
    /// The run reached [`Config::max_time`](crate::Config::max_time), or the end of time, with events left.
    TimeLimit {
        /// The time limit.
        at: Time,
    },
    /// Another [part](crate::World::part) of the world was dropped before the end of its run.
    Left {
        /// The time that this part had reached.
        at: Time,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Deadlock { at, waiting } => {
                let programs = match waiting.len() {
                    1 => "a program waits".to_owned(),
                    n => format!("{n} programs wait"),
                };
                write!(f, "deadlock at {at}: nothing can happen any more, and {programs}")?;
                waiting.iter().take(LISTED).try_for_each(|w| write!(f, "\n  {w}"))?;
                match waiting.len().saturating_sub(LISTED) {
                    0 => Ok(()),
                    more => write!(f, "\n  and {more} more"),
                }
            }
            RunError::Interrupted { at } => write!(f, "interrupted at {at} of virtual time"),
            RunError::Left { at } => write!(f, "another part of the run ended early, this one at {at}"),
            RunError::TimeLimit { at: Time::MAX } => {
                f.write_str("virtual time came to its end, 2^64 ps (213 days), and there was more to happen")
            }
            RunError::TimeLimit { at } => {
                write!(f, "the run came to its limit of {at} of virtual time, and there was more to happen")
            }
        }
    }
}

impl std::error::Error for RunError {}
