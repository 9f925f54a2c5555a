//! Rules on the words of a frame, which choose the handlers that it goes to: in words of the headers' fields
//! (`udp dport=53`), and in the form that hardware compares (`word@36&ffff0000=00350000`), as PsPIN and FPsPIN have them.
//!
//! A rule is alternatives, of which one has to match; an alternative is words, all of which have to. A word is 32 bits of the
//! frame in network order, at a multiple of 4 bytes from its first byte on; masked, it lies between a start and an end.

mod overlap;
mod parse;

pub(super) use overlap::common;
use std::fmt;

/// Most words of a rule.
pub const MOST_WORDS: usize = 16;

/// 32 bits of a frame that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// Bytes from the frame's first one: a multiple of 4.
    pub offset: u32,
    /// The bits that count.
    pub mask: u32,
    /// The least value of these.
    pub start: u32,
    /// The greatest.
    pub end: u32,
}

impl Word {
    /// Whether a frame has it.
    pub fn matches(&self, frame: &[u8]) -> bool {
        let bytes = frame.get(self.offset as usize..).and_then(<[u8]>::first_chunk);
        bytes.is_some_and(|bytes| {
            let found = u32::from_be_bytes(*bytes) & self.mask;
            (self.start..=self.end).contains(&found)
        })
    }
}

/// The form that [`Rule::parse`] reads.
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

/// What frames handlers want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    text: String,
    alternatives: Vec<Vec<Word>>,
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    /// What is wrong in it, where, and what to write instead.
    pub fn parse(text: &str) -> Result<Rule, RuleError> {
        let alternatives = parse::alternatives(text)?;
        let rule = Rule { text: text.trim().to_owned(), alternatives };
        let words = rule.words();
        if words > MOST_WORDS {
            let why = format!("it compares {words} words of a frame, and no card more than {MOST_WORDS}");
            return Err(RuleError::whole(text, why, "ask for less, or leave the rest to the handler"));
        }
        let possible = |words: &Vec<Word>| overlap::common(words, &[]).is_ok_and(|found| found.is_some());
        match rule.alternatives.iter().all(possible) {
            true => Ok(rule),
            false => Err(RuleError::whole(text, "it matches no frame".into(), "leave one of its terms out")),
        }
    }

    /// Its words in all.
    pub fn words(&self) -> usize {
        self.alternatives.iter().map(Vec::len).sum()
    }

    /// The words of each alternative.
    pub fn alternatives(&self) -> &[Vec<Word>] {
        &self.alternatives
    }

    /// Whether a frame is one of those.
    pub fn matches(&self, frame: &[u8]) -> bool {
        self.alternatives.iter().any(|words| words.iter().all(|word| word.matches(frame)))
    }

    /// Words of a frame that this rule and another one match, if there is such a frame.
    ///
    /// # Errors
    /// When that is too much to find out.
    pub fn overlap(&self, other: &Rule) -> Result<Option<Vec<Word>>, Intricate> {
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

/// Rules whose words have so many different masks that it would take too long to find out whether they overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intricate;

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    rule: String,
    /// Where, in bytes; none if it is the whole.
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
