//! The header before each message of a connection.

use nicety_nic_core::check_tag;
use nicety_types::{MessageId, NodeId};
use std::ops::Range;

/// The header of a message. All numbers are big-endian:
///
/// | bytes | field |
/// |---|---|
/// | 0 to 3 | "nice" |
/// | 4 to 7 | rank of the sender |
/// | 8 to 15 | tag |
/// | 16 to 21 | bytes of the message |
/// | 22 to 27 | number of the message at its sender |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) source: u32,
    pub(super) tag: u64,
    pub(super) bytes: u64,
    pub(super) number: u64,
}

impl Header {
    /// Length of a header in bytes.
    pub(super) const BYTES: usize = 28;

    pub(super) fn emit(self) -> [u8; Header::BYTES] {
        let mut bytes = [0; Header::BYTES];
        bytes[..4].copy_from_slice(b"nice");
        bytes[4..8].copy_from_slice(&self.source.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.tag.to_be_bytes());
        for (at, number) in [(16, self.bytes), (22, self.number)] {
            debug_assert!(number < 1 << 48, "more than memory has, or cards ever send");
            bytes[at..at + 6].copy_from_slice(&number.to_be_bytes()[2..]);
        }
        bytes
    }

    /// Parses a header. Returns `None` unless the bytes are the header of a message from this rank.
    pub(super) fn parse(bytes: &[u8; Header::BYTES], source: u32) -> Option<Header> {
        let number = |at: Range<usize>| bytes[at].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        let header = Header { source, tag: number(8..16), bytes: number(16..22), number: number(22..28) };
        let of_rank = bytes[..4] == *b"nice" && number(4..8) == u64::from(source);
        (of_rank && check_tag(header.tag).is_ok()).then_some(header)
    }

    pub(super) const fn message(self) -> MessageId {
        MessageId { source: NodeId(self.source), sequence: self.number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_bytes() {
        let header = Header { source: 3, tag: 0x0102_0304_0506_0708, bytes: 1 << 40, number: 7 };
        let mut bytes = header.emit();
        assert_eq!(Header::parse(&bytes, 3), Some(header));
        assert_eq!(Header::parse(&bytes, 2), None);
        assert_eq!(bytes[..8], *b"nice\0\0\0\x03");
        assert_eq!(bytes[8..], [1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        for (at, bit) in [(0, 1), (8, 0x80)] {
            bytes[at] ^= bit;
            assert_eq!(Header::parse(&bytes, 3), None);
            bytes[at] ^= bit;
        }
    }
}
