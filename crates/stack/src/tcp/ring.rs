//! A ring buffer for a stream. A byte's offset is its position modulo the buffer's length, so out-of-order bytes are
//! stored at their final places.

/// A ring buffer that allocates memory up to the last byte that was written: a connection with short messages needs little.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: Vec<u8>,
    capacity: usize,
    /// The position of the byte at the buffer's start.
    base: i64,
}

impl Ring {
    /// Returns a buffer for `capacity` bytes, at least one.
    pub fn new(capacity: usize) -> Ring {
        Ring { bytes: Vec::new(), capacity, base: 0 }
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Restarts an empty buffer: the next write begins at the buffer's start, which is in the processor's caches.
    pub fn restart(&mut self, position: i64) {
        self.base = position;
    }

    /// Frees the memory.
    pub fn clear(&mut self) {
        self.bytes = Vec::new();
    }

    /// Returns the offset of the first of `length` bytes from a position, and the number of bytes before the buffer's
    /// end. The remaining bytes are at the buffer's start.
    fn place(&self, position: i64, length: usize) -> (usize, usize) {
        debug_assert!(position >= self.base && length <= self.capacity);
        let offset = (position - self.base) as usize;
        let start = if offset < self.capacity { offset } else { offset % self.capacity };
        (start, length.min(self.capacity - start))
    }

    pub fn write(&mut self, position: i64, bytes: &[u8]) {
        let (start, first) = self.place(position, bytes.len());
        let end = start + first;
        if end > self.bytes.len() {
            // Doubled, so that a byte is moved about once.
            self.bytes.resize(end.next_power_of_two().min(self.capacity), 0);
        }
        self.bytes[start..start + first].copy_from_slice(&bytes[..first]);
        self.bytes[..bytes.len() - first].copy_from_slice(&bytes[first..]);
    }

    /// Returns `length` bytes from a position, in two parts. All of these bytes must have been written before.
    pub fn parts(&self, position: i64, length: usize) -> (&[u8], &[u8]) {
        if length == 0 {
            return (&[], &[]);
        }
        let (start, first) = self.place(position, length);
        (&self.bytes[start..start + first], &self.bytes[..length - first])
    }

    pub fn read(&self, position: i64, out: &mut [u8]) {
        let (first, second) = self.parts(position, out.len());
        let (a, b) = out.split_at_mut(first.len());
        a.copy_from_slice(first);
        b.copy_from_slice(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_memory_for_the_bytes_that_were_written() {
        let mut ring = Ring::new(1000);
        ring.write(0, &[1; 100]);
        assert_eq!(ring.bytes.len(), 128);
        // Out of order, and then around the end.
        ring.write(600, &[2; 100]);
        assert_eq!(ring.bytes.len(), 1000);
        ring.write(950, &[3; 100]);
        let mut out = [0; 100];
        ring.read(950, &mut out);
        assert_eq!((out, ring.bytes.len()), ([3; 100], 1000));
        ring.clear();
        assert_eq!(ring.bytes.capacity(), 0);
    }

    #[test]
    fn bytes_are_found_where_the_buffer_comes_round() {
        let mut ring = Ring::new(5);
        for (position, bytes) in [(0, &b"abc"[..]), (3, b"defg"), (7, b"h"), (1_000_000_004, b"xyz")] {
            ring.write(position, bytes);
            let mut out = vec![0; bytes.len()];
            ring.read(position, &mut out);
            assert_eq!(out, bytes);
        }
        assert_eq!(ring.parts(1_000_000_004, 3), (&b"x"[..], &b"yz"[..]));
        ring.restart(1_000_000_007);
        ring.write(1_000_000_007, b"again");
        assert_eq!(ring.parts(1_000_000_007, 5), (&b"again"[..], &b""[..]));
    }
}
