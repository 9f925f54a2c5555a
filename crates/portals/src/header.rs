//! The header of a message and its bytes on the wire: 64 bytes, little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | version, 1 |
//! | 1 | kind |
//! | 2 | requested acknowledgement |
//! | 3 | outcome of the operation (answers only) |
//! | 4..8, 8..12 | source and target rank |
//! | 12..16 | portal table index |
//! | 16..24 | match bits |
//! | 24..32 | length in bytes |
//! | 32..40 | remote offset in bytes |
//! | 40..48 | header data |
//! | 48..56 | the initiator's operation (handle) |
//! | 56 | operator of an atomic operation, counted from 1; 0 for other kinds |
//! | 57 | type of its items, counted from 1; 0 for other kinds |
//! | 58 | list of the match entry that the message matched (acknowledgements only): 0 priority, 1 overflow |
//! | 59 | zero |
//! | 60..64 | user of the operation |
//!
//! The payload follows: see [`Header::payload_bytes`].

use crate::{AckRequest, Atomic, AtomicOp, Datatype, FailType, List};
use nicety_types::NodeId;
use std::fmt;

/// Length of an encoded header in bytes.
pub const HEADER_BYTES: usize = 64;
const VERSION: u8 = 1;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum HeaderKind {
    /// A put: data for a match entry of the target.
    Put = 1,
    /// A get: a request for data of a match entry of the target.
    Get = 2,
    /// The answer to a get, a fetch-and-atomic or a swap, with data.
    Reply = 3,
    /// The answer to a put or an atomic, without data.
    Ack = 4,
    /// An atomic operation on memory of the target.
    Atomic = 5,
    /// An atomic operation that returns the target's previous bytes.
    FetchAtomic = 6,
    /// A swap, conditional or not, that returns the target's previous bytes.
    Swap = 7,
}

impl HeaderKind {
    const ALL: [HeaderKind; 7] = [
        HeaderKind::Put,
        HeaderKind::Get,
        HeaderKind::Reply,
        HeaderKind::Ack,
        HeaderKind::Atomic,
        HeaderKind::FetchAtomic,
        HeaderKind::Swap,
    ];

    /// Returns whether the answer to this kind is a reply, and not an acknowledgement.
    pub const fn wants_reply(self) -> bool {
        matches!(self, HeaderKind::Get | HeaderKind::FetchAtomic | HeaderKind::Swap)
    }

    /// Returns whether this kind begins an operation, and does not answer one.
    pub const fn is_request(self) -> bool {
        !matches!(self, HeaderKind::Reply | HeaderKind::Ack)
    }

    const fn is_atomic(self) -> bool {
        matches!(self, HeaderKind::Atomic | HeaderKind::FetchAtomic | HeaderKind::Swap)
    }
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind.
    pub kind: HeaderKind,
    /// The requested acknowledgement. In an acknowledgement, its own kind; `None` ends the operation without an event
    /// or a count (`ACK_DISABLE`).
    pub ack: AckRequest,
    /// In an answer, the outcome of the operation.
    pub fail: FailType,
    /// In an acknowledgement, the list on which the message matched.
    pub list: List,
    /// The sender.
    pub source: NodeId,
    /// The receiver.
    pub target: NodeId,
    /// The portal table index of the operation, at its target.
    pub pt: u32,
    /// The match bits.
    pub match_bits: u64,
    /// In a request, the number of bytes requested. In an answer, the number of bytes kept.
    pub length: u64,
    /// In a request, the requested offset in bytes. In an answer, the offset used.
    pub remote_offset: u64,
    /// The initiator's word (`hdr_data`) for the event at the target.
    pub hdr_data: u64,
    /// The handle of the initiator's operation. The target copies it into the answer.
    pub operation: u64,
    /// The user of the operation. In an answer, zero.
    pub uid: u32,
    /// Operator and type of an atomic, fetch-and-atomic or swap.
    pub atomic: Option<Atomic>,
}

/// The reason why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// There are fewer than [`HEADER_BYTES`] bytes. The value is their number.
    Short(usize),
    /// A version that this code does not support.
    Version(u8),
    /// An unknown kind of message.
    Kind(u8),
    /// An unknown acknowledgement request.
    Ack(u8),
    /// An unknown failure type.
    Fail(u8),
    /// An unknown list of match entries.
    List(u8),
    /// Byte 59 is not zero.
    Reserved,
    /// Operator and type are invalid for this kind of message. The values are bytes 56 and 57.
    Atomic(u8, u8),
    /// An invalid length in bytes for this operator and type.
    AtomicLength(u64),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::Short(n) => write!(f, "a Portals header has {HEADER_BYTES} bytes, not {n}"),
            HeaderError::Version(v) => {
                write!(f, "Portals header version {v} at byte 0; the known version is {VERSION}")
            }
            HeaderError::Kind(v) => write!(f, "no message has kind {v} (byte 1 of a Portals header)"),
            HeaderError::Ack(v) => {
                write!(f, "no acknowledgement has number {v} (byte 2 of a Portals header)")
            }
            HeaderError::Fail(v) => write!(f, "no failure has number {v} (byte 3 of a Portals header)"),
            HeaderError::List(v) => write!(f, "no list has number {v} (byte 58 of a Portals header)"),
            HeaderError::Reserved => f.write_str("byte 59 of a Portals header must be zero"),
            HeaderError::Atomic(op, datatype) => write!(
                f,
                "operator {op} on type {datatype} (bytes 56 and 57 of a Portals header) does not belong to a \
                 message of this kind"
            ),
            HeaderError::AtomicLength(n) => {
                write!(
                    f,
                    "{n} bytes (bytes 24 to 31 of a Portals header) are not the whole items of its type"
                )
            }
        }
    }
}

impl std::error::Error for HeaderError {}

impl Header {
    /// Returns the header of a put that a card sends for a handler. The put requests no acknowledgement, and is no
    /// operation of [`crate::Interface`]. Offset and header data are zero.
    pub const fn put(source: NodeId, target: NodeId, pt: u32, match_bits: u64, length: u64) -> Header {
        Header {
            kind: HeaderKind::Put,
            ack: AckRequest::None,
            fail: FailType::Ok,
            list: List::Priority,
            source,
            target,
            pt,
            match_bits,
            length,
            remote_offset: 0,
            hdr_data: 0,
            operation: 0,
            uid: 0,
            atomic: None,
        }
    }

    /// Returns the header of the reply to this request.
    pub(crate) const fn reply(&self, fail: FailType, length: u64, remote_offset: u64) -> Header {
        let answer = self.acknowledgement(AckRequest::None, fail, length, remote_offset);
        Header { kind: HeaderKind::Reply, ..answer }
    }

    /// Returns the header of the acknowledgement of this request.
    pub(crate) const fn acknowledgement(
        &self,
        ack: AckRequest,
        fail: FailType,
        length: u64,
        remote_offset: u64,
    ) -> Header {
        Header {
            kind: HeaderKind::Ack,
            ack,
            fail,
            source: self.target,
            target: self.source,
            length,
            remote_offset,
            hdr_data: 0,
            uid: 0,
            atomic: None,
            ..*self
        }
    }

    /// Returns the number of payload bytes after the header. The payload of a put, an atomic or a reply is its data.
    /// That of a swap is its operand, if any, and then the data. A get or an acknowledgement has no payload.
    pub const fn payload_bytes(&self) -> u64 {
        match (self.kind, self.atomic) {
            (HeaderKind::Get | HeaderKind::Ack, _) => 0,
            (HeaderKind::Swap, Some(atomic)) => self.length.saturating_add(atomic.operand_bytes() as u64),
            _ => self.length,
        }
    }

    /// Checks that operator, type and length suit the kind.
    pub(crate) fn check(&self) -> Result<(), HeaderError> {
        let Some(atomic) = self.atomic else {
            return if self.kind.is_atomic() { Err(HeaderError::Atomic(0, 0)) } else { Ok(()) };
        };
        if !self.kind.is_atomic() || atomic.op().is_swap() != (self.kind == HeaderKind::Swap) {
            return Err(HeaderError::Atomic(atomic.op() as u8 + 1, atomic.datatype() as u8 + 1));
        }
        if !atomic.takes_length(self.length) {
            return Err(HeaderError::AtomicLength(self.length));
        }
        Ok(())
    }

    /// Encodes the header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&[VERSION, self.kind as u8, self.ack as u8, self.fail as u8]);
        for (i, word) in [self.source.0, self.target.0, self.pt].into_iter().enumerate() {
            bytes[4 + 4 * i..8 + 4 * i].copy_from_slice(&word.to_le_bytes());
        }
        let words = [self.match_bits, self.length, self.remote_offset, self.hdr_data, self.operation];
        for (i, word) in words.into_iter().enumerate() {
            bytes[16 + 8 * i..24 + 8 * i].copy_from_slice(&word.to_le_bytes());
        }
        if let Some(atomic) = self.atomic {
            bytes[56..58].copy_from_slice(&[atomic.op() as u8 + 1, atomic.datatype() as u8 + 1]);
        }
        bytes[58] = self.list as u8;
        bytes[60..].copy_from_slice(&self.uid.to_le_bytes());
        bytes
    }

    /// Decodes the header in the first [`HEADER_BYTES`] of `bytes`.
    ///
    /// # Errors
    /// [`HeaderError`] names the invalid byte.
    pub fn decode(bytes: &[u8]) -> Result<Header, HeaderError> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(HeaderError::Short(bytes.len()))?;
        let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("inside the header"));
        let long = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("inside the header"));
        if bytes[0] != VERSION {
            return Err(HeaderError::Version(bytes[0]));
        }
        let kind = HeaderKind::ALL.into_iter().find(|k| *k as u8 == bytes[1]);
        if bytes[59] != 0 {
            return Err(HeaderError::Reserved);
        }
        let atomic = match (bytes[56], bytes[57]) {
            (0, 0) => None,
            (op, datatype) => Some(atomic(op, datatype).ok_or(HeaderError::Atomic(op, datatype))?),
        };
        let header = Header {
            kind: kind.ok_or(HeaderError::Kind(bytes[1]))?,
            ack: *AckRequest::ALL.get(bytes[2] as usize).ok_or(HeaderError::Ack(bytes[2]))?,
            fail: *FailType::ALL.get(bytes[3] as usize).ok_or(HeaderError::Fail(bytes[3]))?,
            list: *[List::Priority, List::Overflow]
                .get(bytes[58] as usize)
                .ok_or(HeaderError::List(bytes[58]))?,
            source: NodeId(word(4)),
            target: NodeId(word(8)),
            pt: word(12),
            match_bits: long(16),
            length: long(24),
            remote_offset: long(32),
            hdr_data: long(40),
            operation: long(48),
            uid: word(60),
            atomic,
        };
        header.check()?;
        Ok(header)
    }
}

fn atomic(op: u8, datatype: u8) -> Option<Atomic> {
    let op = *AtomicOp::ALL.get(usize::from(op).checked_sub(1)?)?;
    let datatype = *Datatype::ALL.get(usize::from(datatype).checked_sub(1)?)?;
    Atomic::new(op, datatype).ok()
}
