//! Rules on the words of a frame, which select the frame's handlers. Rules have two forms, as in PsPIN and FPsPIN:
//! names of header fields (`udp dport=53`), and the hardware's comparison (`word@36&ffff0000=00350000`).
//!
//! A rule is a list of alternatives, and one alternative has to match. An alternative is a list of words, and all words
//! have to match. A word compares 32 bits of the frame in network order, at a multiple of 4 bytes from the frame's
//! first byte. The word matches if the masked value lies between a start and an end.

mod overlap;
mod parse;

pub(super) use overlap::common;
use std::fmt;

/// The maximum number of words of a rule.
pub const MOST_WORDS: usize = 16;

/// A comparison of 32 bits of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// Offset from the frame's first byte in bytes: a multiple of 4.
    pub offset: u32,
    /// The compared bits.
    pub mask: u32,
    /// The least value of the compared bits that matches.
    pub start: u32,
    /// The greatest value of the compared bits that matches.
    pub end: u32,
}

impl Word {
    /// Whether a frame matches the rule.
    pub fn matches(&self, frame: &[u8]) -> bool {
        let bytes = frame.get(self.offset as usize..).and_then(<[u8]>::first_chunk);
        bytes.is_some_and(|bytes| {
            let found = u32::from_be_bytes(*bytes) & self.mask;
            (self.start..=self.end).contains(&found)
        })
    }
}

/// Prints the form that [`Rule::parse`] reads.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "word@{}", self.offset)?;
        if self.mask != u32::MAX {
            write!(f, "&{:08x}", self.mask)?;
        }
        write!(f, "={:08x}", self.start)?;
        if self.end != self.start {
            write!(f, "..{:08x}", self.end)?;
        }
        Ok(())
    }
}

/// A rule that selects frames for handlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    text: String,
    alternatives: Vec<Vec<Word>>,
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    /// The error in it, its place, and a correction.
    pub fn parse(text: &str) -> Result<Rule, RuleError> {
        let alternatives = parse::alternatives(text)?;
        let rule = Rule { text: text.trim().to_owned(), alternatives };
        let words = rule.words();
        if words > MOST_WORDS {
            let why =
                format!("it compares {words} words of a frame; the maximum of all cards is {MOST_WORDS}");
            return Err(RuleError::whole(text, why, "compare fewer words, or leave the rest to the handler"));
        }
        let possible = |words: &Vec<Word>| overlap::common(words, &[]).is_ok_and(|found| found.is_some());
        match rule.alternatives.iter().all(possible) {
            true => Ok(rule),
            false => Err(RuleError::whole(text, "it matches no frame".into(), "leave one of its terms out")),
        }
    }

    /// Returns the number of words in all alternatives.
    pub fn words(&self) -> usize {
        self.alternatives.iter().map(Vec::len).sum()
    }

    /// The words of each alternative.
    pub fn alternatives(&self) -> &[Vec<Word>] {
        &self.alternatives
    }

    /// Whether a frame matches the rule.
    pub fn matches(&self, frame: &[u8]) -> bool {
        self.alternatives.iter().any(|words| words.iter().all(|word| word.matches(frame)))
    }

    /// Returns words of a frame that matches both this rule and another one, if such a frame exists.
    ///
    /// # Errors
    /// When the search takes too long.
    pub fn overlap(&self, other: &Rule) -> Result<Option<Vec<Word>>, TooManyMasks> {
        for own in &self.alternatives {
            for others in &other.alternatives {
                if let Some(found) = common(own, others)? {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The error for rules with too many different masks to check for an overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyMasks;

/// An error in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    rule: String,
    /// The range of the error in bytes of the text. `None` for the whole rule.
    at: Option<(usize, usize)>,
    why: String,
    help: String,
}

impl RuleError {
    fn at(rule: &str, at: (usize, usize), why: impl Into<String>, help: impl Into<String>) -> RuleError {
        RuleError { rule: rule.to_owned(), at: Some(at), why: why.into(), help: help.into() }
    }

    fn whole(rule: &str, why: String, help: &str) -> RuleError {
        RuleError { rule: rule.to_owned(), at: None, why, help: help.to_owned() }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuleError { rule, at, why, help } = self;
        let shown = nicety_hpu::printable(rule);
        match at {
            Some((from, _)) => {
                let column = rule[..*from].chars().count() + 1;
                write!(f, "rule '{shown}', column {column}: {why}; {help}")
            }
            None => write!(f, "rule '{shown}': {why}; {help}"),
        }
    }
}

impl std::error::Error for RuleError {}

#[cfg(test)]
mod tests;
