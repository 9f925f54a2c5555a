//! Errors of a spec: the place, the problem and a correction.

use serde::Serialize;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The text of a spec, and its name in messages.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path that the user gave, or `specs/NAME.toml` for a shipped spec.
    pub(crate) file: String,
    text: String,
    /// The byte offset of each line's start, so that a lookup need not count lines.
    lines: Vec<usize>,
}

impl Source {
    pub(crate) fn new(file: &str, text: &str) -> Source {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Source { file: file.to_owned(), text: text.to_owned(), lines }
    }

    /// Returns the line of a byte. Lines are counted from 0.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at) - 1
    }
}

/// A range of bytes in a source.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) source: Arc<Source>,
    pub(crate) bytes: Range<usize>,
}

impl Span {
    pub(crate) fn place(&self) -> Place {
        let text = &self.source.text;
        let start = floor(text, self.bytes.start);
        let end = floor(text, self.bytes.end).max(start);
        let number = self.source.line(start);
        let line_start = self.source.lines[number];
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let line = text[line_start..line_end].trim_end();
        let within = |from: usize, to: usize| text[from..to].chars().count();
        let last = line_start + line.len();
        Place {
            file: self.source.file.clone(),
            line: number + 1,
            column: within(line_start, start) + 1,
            width: within(start, end.min(last).max(start)).max(1),
            text: line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
        }
    }

    /// Returns the place as `file:line`, as in a listing.
    pub(crate) fn line(&self) -> String {
        format!("{}:{}", self.source.file, self.source.line(self.bytes.start) + 1)
    }
}

/// Returns the nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// A place in a spec: the wrong characters of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The path that the user gave, or `specs/NAME.toml` for a shipped spec.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The number of wrong characters, at least one.
    pub width: usize,
    /// The text of the whole line.
    pub text: String,
}

/// An error of a spec or of an override.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpecError {
    /// The problem, as a sentence without a full stop.
    pub message: String,
    /// The dotted path of the key.
    pub key: Option<String>,
    /// The place in the file, for an error in a file.
    pub place: Option<Place>,
    /// The override, as `--set KEY=VALUE`, for an error in an override.
    pub option: Option<String>,
    /// Suggestions, one per line.
    pub help: Vec<String>,
}

impl SpecError {
    pub(crate) fn new(message: impl Into<String>) -> SpecError {
        SpecError { message: message.into(), key: None, place: None, option: None, help: Vec::new() }
    }

    pub(crate) fn at(mut self, span: &Span) -> SpecError {
        self.place = Some(span.place());
        self
    }

    pub(crate) fn about(mut self, key: impl Into<String>) -> SpecError {
        self.key = Some(key.into());
        self
    }

    pub(crate) fn help(mut self, line: impl Into<String>) -> SpecError {
        self.help.push(line.into());
        self
    }

    fn order(&self) -> impl Ord + use<'_> {
        (&self.option, self.place.as_ref().map(|p| (&p.file, p.line, p.column)))
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(option) = &self.option {
            write!(f, "error: {option}: {}", self.message)?;
            return self.help.iter().try_for_each(|line| write!(f, ", {line}"));
        }
        f.write_str("error: ")?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)?;
        let mut margin = 1;
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            margin = number.len();
            write!(f, "\n{:margin$}--> {}:{}:{}", "", place.file, place.line, place.column)?;
            write!(f, "\n{:margin$} |\n{number} | {}", "", place.text)?;
            write!(
                f,
                "\n{:margin$} | {:indent$}{}",
                "",
                "",
                "^".repeat(place.width),
                indent = place.column - 1
            )?;
        }
        self.help.iter().try_for_each(|line| write!(f, "\n{:margin$} = help: {line}", ""))
    }
}

impl std::error::Error for SpecError {}

/// All errors of a spec, in the order of the file. The errors of overrides come last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SpecErrors {
    errors: Vec<SpecError>,
}

impl SpecErrors {
    /// Makes a list of errors. There must be at least one.
    pub(crate) fn new(mut errors: Vec<SpecError>) -> SpecErrors {
        assert!(!errors.is_empty(), "a failure has at least one error");
        errors.sort_by(|a, b| a.order().cmp(&b.order()));
        SpecErrors { errors }
    }

    /// Returns the errors. There is at least one.
    pub fn iter(&self) -> std::slice::Iter<'_, SpecError> {
        self.errors.iter()
    }
}

impl<'a> IntoIterator for &'a SpecErrors {
    type Item = &'a SpecError;
    type IntoIter = std::slice::Iter<'a, SpecError>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<SpecError> for SpecErrors {
    fn from(error: SpecError) -> SpecErrors {
        SpecErrors::new(vec![error])
    }
}

impl fmt::Display for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.errors.iter().enumerate() {
            // An error with a place has several lines, so a blank line separates the errors.
            match n {
                0 => write!(f, "{error}")?,
                _ if error.place.is_some() => write!(f, "\n\n{error}")?,
                _ => write!(f, "\n{error}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for SpecErrors {}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str, bytes: Range<usize>) -> Span {
        Span { source: Arc::new(Source::new("my.toml", text)), bytes }
    }

    #[test]
    fn a_caret_points_at_characters_not_bytes() {
        let text = "a = 1\r\nb\t= \"\u{b5}s\" # \u{b5}\r\n";
        let at = text.find('"').unwrap();
        let error = SpecError::new("bad").at(&span(text, at..at + 5)).about("b").help("write 2");
        let expected = "error: b: bad\n --> my.toml:2:5\n  |\n2 | b = \"\u{b5}s\" # \u{b5}\n  |     ^^^^\n  = help: write 2";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn any_range_has_a_place() {
        let text = "a = 1\nb = \u{b5}\n";
        for start in 0..20 {
            for end in 0..20 {
                let place = span(text, start..end).place();
                assert!(place.width >= 1 && place.line <= 3, "{place:?}");
            }
        }
        assert_eq!(span("", 0..0).line(), "my.toml:1");
    }

    #[test]
    fn errors_stand_in_the_order_of_the_file_and_options_last() {
        let text = "a = 1\nb = 2\n";
        let mut option = SpecError::new("third");
        option.option = Some("--set a=1".to_owned());
        let late = SpecError::new("second").at(&span(text, 6..7));
        let errors = SpecErrors::new(vec![option, late, SpecError::new("first").at(&span(text, 0..1))]);
        let messages: Vec<_> = errors.iter().map(|e| e.message.as_str()).collect();
        assert_eq!(messages, ["first", "second", "third"]);
        assert!(errors.to_string().ends_with("^\nerror: --set a=1: third"));
        assert_eq!((&errors).into_iter().count(), 3);
    }
}
