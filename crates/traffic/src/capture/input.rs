//! Reads the bytes of a file, one record at a time.

use std::io::{self, Read};

/// Maximum length of a record in bytes. Usual tools write packets of at most 256 KiB.
pub(super) const LONGEST: usize = 16 << 20;

/// Number of bytes per read of the file.
const CHUNK: usize = 256 << 10;

/// A reader with a buffer for bytes that were read and not yet taken. The buffer grows to the size of the longest
/// record.
pub(super) struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The bytes not yet taken are `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Number of bytes taken so far.
    taken: u64,
}

/// Whether requested bytes are available.
pub(super) enum Look {
    /// All requested bytes are available.
    Whole,
    /// The file ends too early. Only this number of bytes is available.
    Short(usize),
}

impl<R: Read> Input<R> {
    pub(super) fn new(reader: R) -> Input<R> {
        Input { reader, buffer: vec![0; CHUNK], start: 0, end: 0, taken: 0 }
    }

    /// The position of the next byte in the file.
    pub(super) fn position(&self) -> u64 {
        self.taken
    }

    /// Reads until `count` bytes are available, or the file ends. `count` is at most [`LONGEST`].
    pub(super) fn look(&mut self, count: usize) -> io::Result<Look> {
        while self.end - self.start < count {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            }
            if self.buffer.len() - self.start < count {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
                if self.buffer.len() < count {
                    self.buffer.resize(count.next_power_of_two(), 0);
                }
            }
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(Look::Short(self.end - self.start)),
                Ok(more) => self.end += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Look::Whole)
    }

    /// Returns the next `count` bytes, after [`Input::look`] has found them.
    pub(super) fn peek(&self, count: usize) -> &[u8] {
        &self.buffer[self.start..self.start + count]
    }

    /// Takes `count` bytes, after [`Input::look`] has found them. Returns their range in the buffer.
    pub(super) fn take(&mut self, count: usize) -> std::ops::Range<usize> {
        assert!(count <= self.end - self.start, "bytes are looked for before they are taken");
        let at = self.start..self.start + count;
        self.start += count;
        self.taken += count as u64;
        at
    }

    /// Returns taken bytes, from a range of [`Input::take`]. The range is valid until the next call of [`Input::look`].
    pub(super) fn bytes(&self, at: std::ops::Range<usize>) -> &[u8] {
        &self.buffer[at]
    }
}
