//! The lines of a file, and the words in them.

use std::collections::VecDeque;

/// A word, with the number of its line.
pub(super) type Word<'t> = (&'t str, usize);

/// The lines of a file that are not yet read. Blank ones are left out, and so are spaces around a line.
pub(super) struct Lines<'t> {
    rest: Box<dyn Iterator<Item = (&'t str, usize)> + 't>,
    /// A line that was read too early.
    next: Option<(&'t str, usize)>,
    /// The number of the last line that was read.
    pub(super) last: usize,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Lines<'t> {
        // A mark of the encoding, which some editors write.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let numbered = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
        Lines { rest: Box::new(numbered.filter(|(line, _)| !line.is_empty())), next: None, last: 1 }
    }

    /// Returns the next line and its number.
    pub(super) fn next(&mut self) -> Option<(&'t str, usize)> {
        let line = self.next.take().or_else(|| self.rest.next())?;
        self.last = line.1;
        Some(line)
    }

    /// Skips lines that do not begin with a letter: those that are neither a keyword nor the end.
    pub(super) fn skip_numbers(&mut self) {
        while let Some((line, number)) = self.next() {
            if line.starts_with(|first: char| first.is_ascii_alphabetic()) {
                self.next = Some((line, number));
                return;
            }
        }
    }

    /// Returns the words of the next line; of several lines, if the first ones have fewer than `count`. None are left at the
    /// end of the file.
    pub(super) fn record(&mut self, count: usize) -> Vec<Word<'t>> {
        let mut words = Vec::new();
        while words.len() < count {
            let Some((line, number)) = self.next() else { break };
            words.extend(line.split_whitespace().map(|word| (word, number)));
        }
        words
    }

    /// Returns the words of the following lines, one after another.
    pub(super) fn words(&mut self) -> Words<'_, 't> {
        Words { lines: self, line: VecDeque::new() }
    }
}

/// Words over the ends of lines.
pub(super) struct Words<'l, 't> {
    lines: &'l mut Lines<'t>,
    /// The words of the present line that are left.
    line: VecDeque<Word<'t>>,
}

impl<'t> Words<'_, 't> {
    pub(super) fn next(&mut self) -> Option<Word<'t>> {
        if self.line.is_empty() {
            self.line = self.lines.record(1).into();
        }
        self.line.pop_front()
    }

    /// Returns the next word of the present line.
    pub(super) fn left(&self) -> Option<Word<'t>> {
        self.line.front().copied()
    }
}
