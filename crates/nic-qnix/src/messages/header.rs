//! The header before a small message, in bytes.

use nicety_nic_core::check_tag;

/// Size of a header in bytes.
pub(super) const HEADER: u64 = 32;

/// The kind of a small message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A whole message.
    Whole,
    /// A request to send (RTS): it announces a long message.
    Rts,
    /// A clear to send (CTS): it requests the bytes of a long message.
    Cts,
}

/// The header of a small message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// The tag of the message.
    pub(super) tag: u64,
    /// Length of the message in bytes; in a CTS, the number of requested bytes.
    pub(super) bytes: u64,
    /// Number of a long message at its sender.
    pub(super) number: u64,
}

impl Header {
    pub(super) fn emit(&self) -> [u8; HEADER as usize] {
        let mut bytes = [0; HEADER as usize];
        let kind = match self.kind {
            Kind::Whole => 1_u64,
            Kind::Rts => 2,
            Kind::Cts => 3,
        };
        for (place, field) in bytes.chunks_exact_mut(8).zip([kind, self.tag, self.bytes, self.number]) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Parses the header of a message of `length` bytes. Returns `None` if the bytes are not a valid header.
    pub(super) fn parse(bytes: &[u8], length: u64) -> Option<Header> {
        let head = bytes.get(..HEADER as usize)?;
        let field = |at: usize| u64::from_le_bytes(head[8 * at..8 * at + 8].try_into().expect("eight bytes"));
        let kind = match field(0) {
            1 => Kind::Whole,
            2 => Kind::Rts,
            3 => Kind::Cts,
            _ => return None,
        };
        let header = Header { kind, tag: field(1), bytes: field(2), number: field(3) };
        let behind = if kind == Kind::Whole { header.bytes } else { 0 };
        (check_tag(header.tag).is_ok() && behind.checked_add(HEADER) == Some(length)).then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_nic_core::LARGEST_TAG;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emitted_headers_are_parsed(kind in 0..3_u8, tag in 0..=LARGEST_TAG, bytes in 0..4000_u64, number: u64) {
            let kind = [Kind::Whole, Kind::Rts, Kind::Cts][kind as usize];
            let header = Header { kind, tag, bytes, number };
            let length = HEADER + if kind == Kind::Whole { bytes } else { 0 };
            prop_assert_eq!(Header::parse(&header.emit(), length), Some(header));
            prop_assert_eq!(Header::parse(&header.emit(), length + 1), None);
            prop_assert_eq!(Header::parse(&header.emit()[..31], length), None);
        }
    }

    #[test]
    fn invalid_headers_are_refused() {
        assert_eq!(Header::parse(&[0; 32], 32), None);
        let large = Header { kind: Kind::Whole, tag: LARGEST_TAG + 1, bytes: 0, number: 0 };
        assert_eq!(Header::parse(&large.emit(), 32), None);
        let endless = Header { kind: Kind::Whole, tag: 0, bytes: u64::MAX, number: 0 };
        assert_eq!(Header::parse(&endless.emit(), 31), None);
    }
}
