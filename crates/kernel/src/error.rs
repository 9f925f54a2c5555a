//! The ways a run can end before its programs do.

use nicety_types::{NodeId, Time};
use std::fmt;

/// A program that waits for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The node it runs on.
    pub node: NodeId,
    /// Its name.
    pub program: String,
    /// The description of its wait, by [`describe`](crate::describe).
    pub why: String,
    /// When it last did something.
    pub since: Time,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, program '{}', waits since {} for {}", self.node, self.program, self.since, self.why)
    }
}

/// Most waiting programs that the text of a deadlock lists.
const LISTED: usize = 8;

/// Why a run ended before its programs did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// No event is left, and programs still wait.
    Deadlock {
        /// When the last event happened.
        at: Time,
        /// The programs, by node and then in the order in which they were started.
        waiting: Vec<Waiting>,
    },
    /// [`Config::interrupt`](crate::Config::interrupt) was set.
    Interrupted {
        /// How far the run had come.
        at: Time,
    },
    /// The run came to [`Config::max_time`](crate::Config::max_time), or to the end of time, and events were
    /// left.
    TimeLimit {
        /// The limit.
        at: Time,
    },
    /// Another [part](crate::World::part) of the world has been dropped before its end.
    Left {
        /// How far this one had come.
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
