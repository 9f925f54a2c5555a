//! Checksums of the Internet protocols.

/// Returns the sum of the big-endian 16-bit words of bytes (RFC 1071).
pub(crate) fn sum_of(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    let last = words.remainder().first().map_or(0, |&byte| u64::from(byte) << 8);
    words.map(|word| u64::from(word[0]) << 8 | u64::from(word[1])).sum::<u64>() + last
}

/// Returns the checksum of bytes with [`sum_of`] equal to `sum`.
pub(crate) fn checksum(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
