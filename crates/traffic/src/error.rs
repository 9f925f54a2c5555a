//! Errors in an expression, with the place in the expression, and errors in a packet or a file.

use std::fmt;
use std::ops::Range;

/// An error of a traffic expression or a capture. The text names the place and a correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficError {
    /// The expression, and the range of its wrong bytes. `None` for an error in a capture.
    pub(crate) place: Option<(String, Range<usize>)>,
    /// The problem, and a correction.
    pub(crate) message: String,
}

impl TrafficError {
    /// Returns an error about a packet or a file.
    pub(crate) fn new(message: impl Into<String>) -> TrafficError {
        TrafficError { place: None, message: message.into() }
    }

    /// Returns the range of the wrong bytes in the expression, for an error in an expression.
    pub fn place(&self) -> Option<Range<usize>> {
        self.place.as_ref().map(|(_, bytes)| bytes.clone())
    }
}

impl fmt::Display for TrafficError {
    /// Writes one line with the message. For an error in an expression, writes two more lines that show the place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((text, bytes)) = &self.place else { return f.write_str(&self.message) };
        let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let column = text[..bytes.start].chars().count();
        let width = text[bytes.clone()].chars().count().max(1);
        writeln!(f, "column {}: {}", column + 1, self.message)?;
        writeln!(f, "  {shown}")?;
        write!(f, "  {}{}", " ".repeat(column), "^".repeat(width))
    }
}

impl std::error::Error for TrafficError {}
