//! Errors of traffic: of an expression, with the place in it, or of a packet.

use std::fmt;
use std::ops::Range;

/// Why there is no such traffic. The text says where, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficError {
    /// The expression, and the bytes of it that are wrong; none for what a capture has in it.
    pub(crate) place: Option<(String, Range<usize>)>,
    /// The problem, and a correction.
    pub(crate) message: String,
}

impl TrafficError {
    /// Of a packet, or of a file.
    pub(crate) fn new(message: impl Into<String>) -> TrafficError {
        TrafficError { place: None, message: message.into() }
    }

    /// The bytes of the expression that are wrong, if it is the expression.
    pub fn place(&self) -> Option<Range<usize>> {
        self.place.as_ref().map(|(_, bytes)| bytes.clone())
    }
}

impl fmt::Display for TrafficError {
    /// A line; for an expression two more, which show the place.
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
