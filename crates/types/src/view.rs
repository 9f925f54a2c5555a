//! Views over the bytes of headers.

/// Reads and writes little-endian numbers at fixed offsets of a header. The methods panic beyond the end of the header.
/// So the caller first checks the length of bytes from a network.
#[derive(Clone, Copy, Debug)]
pub struct View<B>(pub B);

impl<B: AsRef<[u8]>> View<B> {
    /// Returns the number in the four bytes at `at`.
    ///
    /// # Panics
    /// When fewer than four bytes remain from `at` on.
    pub fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.chunk(at))
    }

    /// Returns the number in the eight bytes at `at`.
    ///
    /// # Panics
    /// When fewer than eight bytes remain from `at` on.
    pub fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.chunk(at))
    }

    fn chunk<const N: usize>(&self, at: usize) -> [u8; N] {
        *self.0.as_ref()[at..].first_chunk().expect("the header is that long")
    }
}

impl<B: AsMut<[u8]>> View<B> {
    /// Writes a number into the four bytes at `at`.
    ///
    /// # Panics
    /// When fewer than four bytes remain from `at` on.
    pub fn put_u32(&mut self, at: usize, number: u32) {
        self.0.as_mut()[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    /// Writes a number into the eight bytes at `at`.
    ///
    /// # Panics
    /// When fewer than eight bytes remain from `at` on.
    pub fn put_u64(&mut self, at: usize, number: u64) {
        self.0.as_mut()[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_little_endian_and_stay_in_their_places() {
        let mut bytes = [0xff; 16];
        View(&mut bytes).put_u32(1, 0x0403_0201);
        View(&mut bytes).put_u64(6, 0x0807_0605_0403_0201);
        assert_eq!(bytes, [0xff, 1, 2, 3, 4, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff]);
        assert_eq!((View(&bytes).u32(1), View(&bytes).u64(6)), (0x0403_0201, 0x0807_0605_0403_0201));
    }
}
