//! Errors of objects: one line each, with the place, the problem and the advice.

use std::fmt;

/// The reason why an object, or a program of it, is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectError {
    /// The file is of another format.
    Format {
        /// The format found.
        found: String,
        /// The command or the change that helps.
        advice: &'static str,
    },
    /// The file is damaged.
    Malformed {
        /// The damage.
        problem: String,
    },
    /// The object uses something that this machine lacks.
    Refused {
        /// A program with its line, a map or a section.
        place: String,
        /// The problem.
        problem: String,
        /// The change that helps.
        advice: String,
    },
}

impl ObjectError {
    pub(crate) fn refused(
        place: impl ToString,
        problem: impl ToString,
        advice: impl ToString,
    ) -> ObjectError {
        ObjectError::Refused {
            place: place.to_string(),
            problem: problem.to_string(),
            advice: advice.to_string(),
        }
    }

    pub(crate) fn malformed(problem: impl ToString) -> ObjectError {
        ObjectError::Malformed { problem: problem.to_string() }
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectError::Format { found, advice } => write!(f, "{found}; {advice}"),
            ObjectError::Malformed { problem } => {
                write!(f, "damaged eBPF object: {}; compile it again", printable(problem))
            }
            ObjectError::Refused { place, problem, advice } => {
                write!(f, "{}: {}; {}", printable(place), printable(problem), printable(advice))
            }
        }
    }
}

impl std::error::Error for ObjectError {}

/// A text of a file on one line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
