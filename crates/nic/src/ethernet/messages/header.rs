//! The header before each message of a connection.

use nicety_types::{MessageId, NodeId};

/// The header of a message, all numbers big-endian:
///
/// | bytes | field |
/// |---|---|
/// | 0 to 3 | "nice" |
/// | 4 to 7 | rank of the sender |
/// | 8 to 11 | tag |
/// | 12 to 19 | bytes of the message |
/// | 20 to 27 | number of the message at its sender |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) source: u32,
    pub(super) tag: u32,
    pub(super) bytes: u64,
    pub(super) number: u64,
}

impl Header {
    /// Bytes of a header.
    pub(super) const BYTES: usize = 28;

    pub(super) fn emit(self) -> [u8; Header::BYTES] {
        let mut bytes = [0; Header::BYTES];
        bytes[..4].copy_from_slice(b"nice");
        bytes[4..8].copy_from_slice(&self.source.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.tag.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.bytes.to_be_bytes());
        bytes[20..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    /// The header in these bytes, if there is one of a message of this rank's.
    pub(super) fn parse(bytes: &[u8; Header::BYTES], source: u32) -> Option<Header> {
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let header = Header { source: word(4), tag: word(8), bytes: long(12), number: long(20) };
        (bytes[..4] == *b"nice" && header.source == source).then_some(header)
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
        let header = Header { source: 3, tag: 0x0102_0304, bytes: 1 << 40, number: 7 };
        let mut bytes = header.emit();
        assert_eq!(Header::parse(&bytes, 3), Some(header));
        assert_eq!(Header::parse(&bytes, 2), None);
        assert_eq!((&bytes[..8], &bytes[20..]), (&b"nice\0\0\0\x03"[..], &[0, 0, 0, 0, 0, 0, 0, 7][..]));
        bytes[0] ^= 1;
        assert_eq!(Header::parse(&bytes, 3), None);
    }
}
