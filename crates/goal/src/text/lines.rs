//! The lines of a text that is read in pieces. The buffer holds at most the longest line and one piece.

use std::io::{self, Read};

/// Number of bytes read at once.
const PIECE: usize = 1 << 16;
/// Maximum length of a line.
pub(crate) const LONGEST: usize = 1 << 20;

pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// The start of the unread part of the buffer.
    from: usize,
    to: usize,
    ended: bool,
}

/// The next line, as [`Lines::next`] returns it.
pub(crate) enum Line {
    /// The start and the end of the line in the buffer, without the newline.
    At(usize, usize),
    /// The line is longer than [`LONGEST`].
    TooLong,
    /// The end of the text.
    End,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(source: R) -> Lines<R> {
        Lines { source, buffer: vec![0; PIECE], from: 0, to: 0, ended: false }
    }

    pub(crate) fn line(&self, from: usize, to: usize) -> &[u8] {
        &self.buffer[from..to]
    }

    pub(crate) fn next(&mut self) -> io::Result<Line> {
        let mut searched = self.from;
        loop {
            if let Some(length) = newline(&self.buffer[searched..self.to]) {
                let line = Line::At(self.from, searched + length);
                self.from = searched + length + 1;
                return Ok(line);
            }
            if self.ended {
                let line = if self.from == self.to { Line::End } else { Line::At(self.from, self.to) };
                self.from = self.to;
                return Ok(line);
            }
            searched = self.to - self.from;
            if searched > LONGEST {
                return Ok(Line::TooLong);
            }
            self.fill()?;
        }
    }

    /// Moves the unread part to the front, and reads the next piece.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        if self.buffer.len() - self.to < PIECE {
            self.buffer.resize(self.to + PIECE, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.to..]) {
                Ok(read) => {
                    self.to += read;
                    self.ended = read == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns the position of the first newline, searching eight bytes at a time.
fn newline(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut words = bytes.chunks_exact(8);
    for (number, word) in words.by_ref().enumerate() {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes")) ^ (ONES * 0x0a);
        let found = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if found != 0 {
            return Some(number * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let rest = words.remainder();
    let at = rest.iter().position(|byte| *byte == b'\n')?;
    Some(bytes.len() - rest.len() + at)
}
