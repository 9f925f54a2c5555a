//! Reads words, numbers and other characters of a line.

/// An error in a line: its column, counted from 0, and its text.
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) text: String,
}

pub(super) type Scanned<T> = Result<T, Fault>;

/// A line, and the current position in it.
pub(super) struct Scan<'l> {
    line: &'l [u8],
    pub(super) at: usize,
}

impl<'l> Scan<'l> {
    pub(super) fn new(line: &'l [u8]) -> Scan<'l> {
        Scan { line, at: 0 }
    }

    #[cold]
    pub(super) fn fault<T>(&self, at: usize, text: impl Into<String>) -> Scanned<T> {
        Err(Fault { at, text: text.into() })
    }

    /// Returns an error at the next character. It names this character and the expected element `what`.
    #[cold]
    pub(super) fn expected<T>(&self, what: &str) -> Scanned<T> {
        let rest = &self.line[self.at..];
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len()).clamp(1, 24);
        let found = match rest.first() {
            None => "the end of the line".to_owned(),
            Some(_) => format!("'{}'", rest[..length.min(rest.len())].escape_ascii()),
        };
        self.fault(self.at, format!("{what} is expected, not {found}"))
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    /// Skips spaces and comments. Returns whether a comment continues on the next line.
    pub(super) fn skip(&mut self) -> bool {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'/') => match self.line.get(self.at + 1) {
                    Some(b'/') => self.at = self.line.len(),
                    Some(b'*') => {
                        self.at += 2;
                        if self.skip_comment() {
                            return true;
                        }
                    }
                    _ => return false,
                },
                _ => return false,
            }
        }
    }

    /// Skips the rest of a comment. Returns whether the comment continues on the next line.
    pub(super) fn skip_comment(&mut self) -> bool {
        match self.line[self.at..].windows(2).position(|pair| pair == b"*/") {
            Some(length) => self.at += length + 2,
            None => self.at = self.line.len(),
        }
        self.at == self.line.len() && !self.line.ends_with(b"*/")
    }

    /// Reads a word; `None` if there is no word at the position.
    pub(super) fn word(&mut self) -> Option<&'l [u8]> {
        let rest = &self.line[self.at..];
        if !rest.first()?.is_ascii_alphabetic() {
            return None;
        }
        let length = rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
        let word = &rest[..length.unwrap_or(rest.len())];
        self.at += word.len();
        Some(word)
    }

    /// Reads a whole number up to `most`.
    pub(super) fn number(&mut self, what: &str, most: u64) -> Scanned<u64> {
        let from = self.at;
        let mut value = 0_u64;
        let mut digits = &self.line[from..];
        while let [digit @ b'0'..=b'9', rest @ ..] = digits {
            let next = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')));
            match next {
                Some(next) if next <= most => value = next,
                _ => return self.fault(from, format!("{what} is at most {most}")),
            }
            digits = rest;
        }
        self.at = self.line.len() - digits.len();
        if self.at == from { self.expected(what) } else { Ok(value) }
    }

    /// Reads a whole number of 32 bits, or -1. A -1 is read as the largest 32-bit number, which is the wildcard.
    pub(super) fn number_or_any(&mut self, what: &str) -> Scanned<u32> {
        if self.peek() == Some(b'-') {
            let from = self.at;
            self.at += 1;
            return match self.number(what, u64::from(u32::MAX)) {
                Ok(1) => Ok(crate::ANY),
                _ => self.fault(from, format!("{what} is a whole number, or -1 for any")),
            };
        }
        self.number(what, u64::from(u32::MAX) - 1).map(|value| value as u32)
    }
}
