//! The contents of a mailbox, and their encoding.
//!
//! A mailbox has 64 bytes. It is one cache line, so no reader ever sees a partly written mailbox:
//!
//! | bytes | what |
//! |---|---|
//! | 0 | version, 1 |
//! | 1 | kind of message |
//! | 2 | length of the body in bytes, 0 to 56 |
//! | 3 | status of a reply, else 0 |
//! | 4, 5 | number of the exchange, in this direction of this channel |
//! | 6, 7 | stamp: the number of writes of this mailbox by its writer |
//! | 8 to 63 | body: 14 transfer registers of 4 bytes; the bytes after the body are zero |
//!
//! Integers are little-endian. A page entry is one word of 8 bytes:
//!
//! | bits | what |
//! |---|---|
//! | 0 to 39 | number of the page; with the offset of 12 bits, a bus address has 52 bits |
//! | 40 to 51 | offset in the page |
//! | 52 to 63 | number of bytes minus one |
//!
//! The body of a page list begins with two words of 4 bytes: the message's size, and the number of its bytes before
//! this list. The rest of the body has room for six page entries.

use crate::TargetId;
use std::fmt;
use std::ops::Deref;

/// Bytes of a mailbox.
pub const MAILBOX_BYTES: usize = 64;
/// Maximum length of a direct message in bytes: 14 transfer registers of 4 bytes.
pub const PAYLOAD_BYTES: usize = 56;
/// Maximum number of page entries in a list.
pub const LIST_PAGES: usize = 6;
/// Size of a page of host memory in bytes. One DMA moves at most this number of bytes.
pub const PAGE_BYTES: u32 = 4096;
/// Number of bits of an address on the host's bus.
pub const BUS_ADDRESS_BITS: u32 = 52;
/// Number of bits of an address in the card's memories.
pub const CARD_ADDRESS_BITS: u32 = 40;

const VERSION: u8 = 1;
const HEADER: usize = 8;

/// The bytes of a direct message, at most [`PAYLOAD_BYTES`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Payload {
    bytes: [u8; PAYLOAD_BYTES],
    length: u8,
}

impl Payload {
    /// The empty payload. All completions have it, except that of a receiver of a direct message.
    pub const EMPTY: Payload = Payload { bytes: [0; PAYLOAD_BYTES], length: 0 };

    /// Returns a copy of `bytes`, or `None` if they do not fit in a direct message.
    pub fn new(bytes: &[u8]) -> Option<Payload> {
        let mut payload = Payload { length: bytes.len().try_into().ok()?, ..Payload::EMPTY };
        payload.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(payload)
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A range of bytes in one page of host memory, with its bus address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Page {
    address: u64,
    bytes: u16,
}

impl Page {
    /// Returns the range of `bytes` bytes from a bus address on.
    ///
    /// # Errors
    /// [`MessageError::Page`] if `bytes` is zero, the range crosses into the next page, or the address has more than
    /// [`BUS_ADDRESS_BITS`] bits.
    pub const fn new(address: u64, bytes: u32) -> Result<Page, MessageError> {
        let offset = (address % PAGE_BYTES as u64) as u32;
        if bytes == 0 || bytes > PAGE_BYTES - offset || address >> BUS_ADDRESS_BITS != 0 {
            return Err(MessageError::Page { address, bytes });
        }
        Ok(Page { address, bytes: bytes as u16 })
    }

    /// Returns the bus address of the first byte.
    pub const fn address(self) -> u64 {
        self.address
    }

    /// Returns the number of bytes.
    pub const fn bytes(self) -> u32 {
        self.bytes as u32
    }

    const fn word(self) -> u64 {
        let page = PAGE_BYTES as u64;
        (self.address / page) | ((self.address % page) << 40) | ((self.bytes as u64 - 1) << 52)
    }

    const fn from_word(word: u64) -> Result<Page, MessageError> {
        let frame = word & ((1 << 40) - 1);
        Page::new(frame * PAGE_BYTES as u64 + (word >> 40 & 0xfff), (word >> 52) as u32 + 1)
    }
}

/// One to [`LIST_PAGES`] pages of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageList {
    /// Size of the whole message in bytes.
    pub size: u32,
    /// Number of the message's bytes before this list.
    pub before: u32,
    pages: [Page; LIST_PAGES],
    count: u8,
}

impl PageList {
    /// Returns the list of `pages` of a message of `size` bytes, after its first `before` bytes.
    ///
    /// # Errors
    /// [`MessageError::List`] if there is no page, or more than [`LIST_PAGES`], or the list extends beyond the message.
    pub fn new(size: u32, before: u32, pages: &[Page]) -> Result<PageList, MessageError> {
        let mut list = PageList { size, before, pages: Default::default(), count: 0 };
        let bytes = pages.iter().map(|p| u64::from(p.bytes)).sum::<u64>();
        if !(1..=LIST_PAGES).contains(&pages.len()) || u64::from(before) + bytes > u64::from(size) {
            return Err(MessageError::List { pages: pages.len(), size, before, bytes });
        }
        list.pages[..pages.len()].copy_from_slice(pages);
        list.count = pages.len() as u8;
        Ok(list)
    }

    /// Returns the pages, in the order of the message's bytes.
    pub fn pages(&self) -> &[Page] {
        &self.pages[..self.count as usize]
    }

    /// Returns the number of bytes in the list's pages.
    pub fn bytes(&self) -> u32 {
        self.pages().iter().map(|p| p.bytes()).sum()
    }
}

/// The outcome that a reply reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// The message or the page list has arrived, or the subscription or the close took effect.
    Ok = 0,
    /// The receiver expects another number of bytes than the sender named.
    SizeMismatch = 1,
    /// One end expects a direct message, the other an indirect message.
    KindMismatch = 2,
    /// The sender has withdrawn the message before the receiver called.
    Cancelled = 3,
    /// A DMA of this page list failed.
    DmaFailed = 4,
    /// The card has given the message up, after the host had done so.
    Abandoned = 5,
    /// The host could not pin its buffer.
    PinFailed = 6,
    /// No process of the card has this ID.
    UnknownTarget = 7,
    /// Another channel is subscribed to this target.
    TargetTaken = 8,
}

impl Status {
    const ALL: [Status; 9] = [
        Status::Ok,
        Status::SizeMismatch,
        Status::KindMismatch,
        Status::Cancelled,
        Status::DmaFailed,
        Status::Abandoned,
        Status::PinFailed,
        Status::UnknownTarget,
        Status::TargetTaken,
    ];
}

/// An answer to a message, a page list, a withdrawal or a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reply {
    /// The outcome.
    pub status: Status,
    /// Number of the message's bytes that were transferred.
    pub done: u32,
    /// Number of the message's bytes that are outstanding.
    pub outstanding: u32,
    /// Number of bytes that the receiver expects. Zero unless the two sizes differ.
    pub expected: u32,
}

impl Reply {
    pub(crate) const fn new(status: Status) -> Reply {
        Reply { status, done: 0, outstanding: 0, expected: 0 }
    }
}

/// The body of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// A direct message, in either direction.
    Direct(Payload),
    /// From the host: a page list of an indirect message. The card reads from these pages or writes to them.
    Pages(PageList),
    /// From the card: an indirect message of this size (in bytes) waits for the host's page lists.
    Offer(u32),
    /// In either direction: the sender of this exchange wants to withdraw its message.
    Cancel,
    /// From the host: the host gives the message up, and sends no further page lists.
    GiveUp,
    /// From the host: connect this channel to a target.
    Subscribe(TargetId),
    /// From the host: close this channel.
    Close,
    /// An answer, in either direction.
    Reply(Reply),
}

impl Body {
    /// Returns the body's name for a log.
    pub const fn name(&self) -> &'static str {
        match self {
            Body::Direct(_) => "direct message",
            Body::Pages(_) => "page list",
            Body::Offer(_) => "offer",
            Body::Cancel => "withdrawal",
            Body::GiveUp => "giving up",
            Body::Subscribe(_) => "subscription",
            Body::Close => "close",
            Body::Reply(_) => "reply",
        }
    }
}

/// The contents of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Number of the exchange, which the sender of the exchange counts. The number wraps.
    pub exchange: u16,
    /// Number of writes of this mailbox, which its writer counts. The number wraps. It shows the reader whether it has
    /// read the mailbox before.
    pub stamp: u16,
    /// The body.
    pub body: Body,
}

/// The reason why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageError {
    /// A version that this code does not support.
    Version(u8),
    /// An unknown kind of message.
    Kind(u8),
    /// An unknown status, or a status where the kind has none.
    Status(u8),
    /// A body length that this kind of message cannot have, in bytes.
    Length(u8),
    /// Bytes after the body are not zero.
    Padding,
    /// A size of zero.
    ZeroSize,
    /// A page entry that is empty, crosses its page's end, or has an invalid address.
    Page {
        /// The bus address of the first byte.
        address: u64,
        /// The number of bytes.
        bytes: u32,
    },
    /// A list that exceeds its message.
    List {
        /// Number of pages in the list.
        pages: usize,
        /// Size of the message in bytes.
        size: u32,
        /// Number of the message's bytes before the list.
        before: u32,
        /// Number of bytes in the list's pages.
        bytes: u64,
    },
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::Version(v) => {
                write!(f, "mailbox version {v} at byte 0; the known version is {VERSION}")
            }
            MessageError::Kind(v) => write!(f, "no message has kind {v} (byte 1 of a mailbox)"),
            MessageError::Status(v) => {
                write!(f, "a message of this kind has no status {v} (byte 3 of a mailbox)")
            }
            MessageError::Length(v) => {
                write!(f, "a message of this kind has no body of {v} bytes (byte 2 of a mailbox)")
            }
            MessageError::Padding => f.write_str("the bytes of a mailbox after its body must be zero"),
            MessageError::ZeroSize => f.write_str("a message has at least 1 byte, but this mailbox names 0"),
            MessageError::Page { address, bytes } => write!(
                f,
                "{bytes} bytes at bus address {address:#x} are not 1 to {PAGE_BYTES} bytes of one page below \
                 2^{BUS_ADDRESS_BITS}"
            ),
            MessageError::List { pages, size, before, bytes } => write!(
                f,
                "{pages} pages of {bytes} bytes, after {before}, are not 1 to {LIST_PAGES} pages of a message of \
                 {size} bytes"
            ),
        }
    }
}

impl std::error::Error for MessageError {}

impl Message {
    /// Encodes the message as the bytes of a mailbox.
    pub fn encode(&self) -> [u8; MAILBOX_BYTES] {
        let mut bytes = [0; MAILBOX_BYTES];
        let (head, body) = bytes.split_at_mut(HEADER);
        let mut status = Status::Ok;
        let words = |body: &mut [u8], words: &[u32]| {
            for (slot, word) in body.chunks_exact_mut(4).zip(words) {
                slot.copy_from_slice(&word.to_le_bytes());
            }
            4 * words.len()
        };
        let (kind, length) = match &self.body {
            Body::Direct(payload) => {
                body[..payload.len()].copy_from_slice(payload);
                (1, payload.len())
            }
            Body::Pages(list) => {
                words(body, &[list.size, list.before]);
                for (slot, page) in body[8..].chunks_exact_mut(8).zip(list.pages()) {
                    slot.copy_from_slice(&page.word().to_le_bytes());
                }
                (2, 8 + 8 * list.pages().len())
            }
            Body::Offer(size) => (3, words(body, &[*size])),
            Body::Cancel => (4, 0),
            Body::GiveUp => (5, 0),
            Body::Subscribe(target) => (6, words(body, &[target.0])),
            Body::Close => (7, 0),
            Body::Reply(reply) => {
                status = reply.status;
                (8, words(body, &[reply.done, reply.outstanding, reply.expected]))
            }
        };
        head[..4].copy_from_slice(&[VERSION, kind, length as u8, status as u8]);
        head[4..6].copy_from_slice(&self.exchange.to_le_bytes());
        head[6..8].copy_from_slice(&self.stamp.to_le_bytes());
        bytes
    }

    /// Decodes the message in a mailbox.
    ///
    /// # Errors
    /// [`MessageError`] names the invalid bytes.
    pub fn decode(bytes: &[u8; MAILBOX_BYTES]) -> Result<Message, MessageError> {
        let [version, kind, length, status, e0, e1, s0, s1, ..] = *bytes;
        if version != VERSION {
            return Err(MessageError::Version(version));
        }
        let body = &bytes[HEADER..];
        let word = |i: usize| u32::from_le_bytes(*body[4 * i..].first_chunk().expect("inside the mailbox"));
        let lengths = match kind {
            1 => 1..=PAYLOAD_BYTES as u8,
            2 => 16..=PAYLOAD_BYTES as u8,
            3 | 6 => 4..=4,
            4 | 5 | 7 => 0..=0,
            8 => 12..=12,
            _ => return Err(MessageError::Kind(kind)),
        };
        if !lengths.contains(&length) || kind == 2 && length % 8 != 0 {
            return Err(MessageError::Length(length));
        }
        if body[length as usize..].iter().any(|b| *b != 0) {
            return Err(MessageError::Padding);
        }
        let known = Status::ALL.into_iter().find(|s| *s as u8 == status);
        let status = known.filter(|s| kind == 8 || *s == Status::Ok).ok_or(MessageError::Status(status))?;
        let body = match kind {
            1 => Body::Direct(Payload::new(&body[..length as usize]).expect("the length was checked")),
            2 => {
                let mut pages = [Page::default(); LIST_PAGES];
                let count = length as usize / 8 - 1;
                for (page, entry) in pages.iter_mut().zip(body[8..length as usize].chunks_exact(8)) {
                    *page = Page::from_word(u64::from_le_bytes(*entry.first_chunk().expect("8 bytes")))?;
                }
                Body::Pages(PageList::new(word(0), word(1), &pages[..count])?)
            }
            3 if word(0) == 0 => return Err(MessageError::ZeroSize),
            3 => Body::Offer(word(0)),
            4 => Body::Cancel,
            5 => Body::GiveUp,
            6 => Body::Subscribe(TargetId(word(0))),
            7 => Body::Close,
            _ => Body::Reply(Reply { status, done: word(0), outstanding: word(1), expected: word(2) }),
        };
        Ok(Message { exchange: u16::from_le_bytes([e0, e1]), stamp: u16::from_le_bytes([s0, s1]), body })
    }
}

/// The reason why the contents of a mailbox were dropped. A call that waits for this mailbox continues to wait, until
/// the call's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The bytes are not a message.
    Malformed(MessageError),
    /// A message with this name is invalid in the current state.
    Unexpected(&'static str),
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DropReason::Malformed(error) => error.fmt(f),
            DropReason::Unexpected(what) => write!(f, "an unexpected {what}"),
        }
    }
}
