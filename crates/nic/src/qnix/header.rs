//! The header of a packet, as bytes.

use super::Endpoint;
use nicety_fabric::HeaderBytes;
use nicety_types::NodeId;

/// Bytes of a header.
pub(super) const BYTES: usize = 24;

/// The fields of a packet's header. Node, message and offset are the network's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The sender's interface.
    pub(super) from: u32,
    /// The receiver's interface.
    pub(super) to: u32,
    /// Bytes of the message.
    pub(super) bytes: u64,
    /// Tag of the message.
    pub(super) tag: u64,
}

impl Header {
    pub(super) fn encode(&self) -> HeaderBytes {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.from.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.to.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[16..].copy_from_slice(&self.tag.to_le_bytes());
        HeaderBytes::new(&bytes)
    }

    /// Parses a header; none if it is invalid.
    pub(super) fn decode(header: &HeaderBytes) -> Option<Header> {
        let bytes: &[u8; BYTES] = header.as_slice().try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Some(Header { from: word(0), to: word(4), bytes: long(8), tag: long(16) })
    }

    /// The sender.
    pub(super) const fn source(&self, node: NodeId) -> Endpoint {
        Endpoint { node, vni: self.from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_comes_out_as_it_went_in(from: u32, to: u32, bytes: u64, tag: u64) {
            let header = Header { from, to, bytes, tag };
            prop_assert_eq!(Header::decode(&header.encode()), Some(header));
        }
    }

    #[test]
    fn what_is_no_header_is_none() {
        assert_eq!(Header::decode(&HeaderBytes::new(&[0; BYTES - 1])), None);
    }
}
