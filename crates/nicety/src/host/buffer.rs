//! Buffers in host memory, for programs.

use crate::Error;
use nicety_host::{Allocation, HostBytes};
use std::sync::Arc;

/// A buffer in host memory, or a part of one. Cheap to clone; a clone is the same memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub(super) allocation: Allocation,
    pub(super) start: u64,
    pub(super) len: u64,
}

impl Buffer {
    /// Address in host memory.
    pub fn address(&self) -> u64 {
        self.allocation.address() + self.start
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a part of the buffer. It shares the buffer's memory.
    ///
    /// # Errors
    /// When the part reaches beyond the end of the buffer.
    pub fn slice(&self, offset: u64, len: u64) -> Result<Buffer, Error> {
        match offset.checked_add(len).is_some_and(|end| end <= self.len) {
            true => Ok(Buffer { allocation: self.allocation.clone(), start: self.start + offset, len }),
            false => Err(Error::Program(format!(
                "{len} bytes from offset {offset} on reach past the end of a buffer of {} bytes",
                self.len
            ))),
        }
    }

    /// The shared memory of the whole allocation, or `None` if the allocation is phantom.
    pub fn shared(&self) -> Option<&Arc<HostBytes>> {
        self.allocation.bytes()
    }

    /// Returns a copy of `len` bytes from `offset` on. This takes no virtual time.
    ///
    /// # Panics
    /// When the range is outside the buffer, or the buffer is phantom.
    pub fn read(&self, offset: u64, len: u64) -> Vec<u8> {
        let mut copy = vec![0; len as usize];
        self.bytes(offset, len).read((self.start + offset) as usize, &mut copy);
        copy
    }

    /// Writes bytes from `offset` on. This takes no virtual time.
    ///
    /// # Panics
    /// When the range is outside the buffer, or the buffer is phantom.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        self.bytes(offset, bytes.len() as u64).write((self.start + offset) as usize, bytes);
    }

    fn bytes(&self, offset: u64, len: u64) -> &HostBytes {
        assert!(offset + len <= self.len, "{len} bytes at {offset} of a buffer of {} bytes", self.len);
        self.allocation.bytes().expect("only a phantom buffer has no bytes, and it is never read")
    }
}
