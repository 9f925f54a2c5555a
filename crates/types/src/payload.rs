//! The payload of a packet: segments of real bytes, or phantom lengths for large timing runs.
//!
//! Buffers are recycled through a bounded pool of the thread, so that a run in steady state allocates nothing
//! for a packet.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The smallest buffer kept, and how many powers of two above it are pooled (64 B to 1 MiB).
const SMALLEST_CLASS: u32 = 6;
const CLASSES: usize = 15;
/// How many bytes a thread keeps of each class.
const POOLED_BYTES: usize = 8 << 20;

thread_local! {
    static POOL: RefCell<[Vec<Box<[u8]>>; CLASSES]> = const { RefCell::new([const { Vec::new() }; CLASSES]) };
}

fn class_of(len: usize) -> usize {
    (len.max(1).next_power_of_two().ilog2().max(SMALLEST_CLASS) - SMALLEST_CLASS) as usize
}

/// Memory that goes back to the thread's pool.
struct Pooled(Box<[u8]>);

impl Drop for Pooled {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        let class = class_of(bytes.len());
        if !bytes.is_empty() && class < CLASSES {
            // A thread that is ending has no pool any more; its buffers are simply freed.
            let _ = POOL.try_with(|pool| {
                let free = &mut pool.borrow_mut()[class];
                if (free.len() + 1) * bytes.len() <= POOLED_BYTES {
                    free.push(bytes);
                }
            });
        }
    }
}

/// The owners of a buffer's memory.
enum Store {
    /// This buffer alone.
    Owned(Pooled),
    /// Several buffers, which only read it.
    Shared(Arc<Pooled>),
}

/// Bytes of a payload, in recycled memory.
pub struct Buffer {
    store: Store,
    len: usize,
}

impl Buffer {
    /// A buffer of `len` bytes with the contents of its last use.
    fn recycled(len: usize) -> Buffer {
        let class = class_of(len);
        let pooled = if class < CLASSES { POOL.with_borrow_mut(|pool| pool[class].pop()) } else { None };
        let bytes =
            pooled.unwrap_or_else(|| vec![0; 1 << (class as u32 + SMALLEST_CLASS)].into_boxed_slice());
        Buffer { store: Store::Owned(Pooled(bytes)), len }
    }

    /// A buffer of `len` zero bytes.
    pub fn zeroed(len: usize) -> Buffer {
        let mut buffer = Buffer::recycled(len);
        buffer.fill(0);
        buffer
    }

    /// A buffer of `len` bytes that `write` fills; `write` must set every byte.
    pub fn filled_by(len: usize, write: impl FnOnce(&mut [u8])) -> Buffer {
        let mut buffer = Buffer::recycled(len);
        write(&mut buffer);
        buffer
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Buffer {
        Buffer::filled_by(bytes.len(), |to| to.copy_from_slice(bytes))
    }

    /// Another buffer of the same bytes, in the same memory. A write to either copies it first.
    pub fn share(&mut self) -> Buffer {
        let shared = match std::mem::replace(&mut self.store, Store::Owned(Pooled(Box::default()))) {
            Store::Owned(pooled) => Arc::new(pooled),
            Store::Shared(shared) => shared,
        };
        self.store = Store::Shared(shared.clone());
        Buffer { store: Store::Shared(shared), len: self.len }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.store {
            Store::Owned(pooled) => &pooled.0[..self.len],
            Store::Shared(shared) => &shared.0[..self.len],
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        if matches!(self.store, Store::Shared(_)) {
            *self = Buffer::copy_of(self);
        }
        match &mut self.store {
            Store::Owned(pooled) => &mut pooled.0[..self.len],
            Store::Shared(_) => unreachable!("just copied"),
        }
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Buffer {
        Buffer::copy_of(self)
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        **self == **other
    }
}

impl Eq for Buffer {}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} B)", self.len)
    }
}

/// A part of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Bytes that exist.
    Real(Buffer),
    /// A length in bytes whose contents were never made; reading it is an error.
    Phantom(u64),
}

impl Segment {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Segment::Real(buffer) => buffer.len() as u64,
            Segment::Phantom(len) => *len,
        }
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A read of bytes that a phantom payload does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhantomRead;

impl fmt::Display for PhantomRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the payload is phantom: it has a length but no bytes to read")
    }
}

impl std::error::Error for PhantomRead {}

/// The payload of a packet: no, one or several segments. The usual single segment costs no list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    first: Option<Segment>,
    rest: Vec<Segment>,
    /// Whether a phantom bit has been flipped.
    damaged: bool,
}

impl Payload {
    /// No bytes.
    pub const fn empty() -> Payload {
        Payload { first: None, rest: Vec::new(), damaged: false }
    }

    /// Real bytes.
    pub fn real(buffer: Buffer) -> Payload {
        Payload::from_segment(Segment::Real(buffer))
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Payload {
        Payload::real(Buffer::copy_of(bytes))
    }

    /// `len` phantom bytes.
    pub fn phantom(len: u64) -> Payload {
        Payload::from_segment(Segment::Phantom(len))
    }

    fn from_segment(segment: Segment) -> Payload {
        let first = (!segment.is_empty()).then_some(segment);
        Payload { first, ..Payload::empty() }
    }

    /// Adds a segment at the end.
    pub fn push(&mut self, segment: Segment) {
        if segment.is_empty() {
            return;
        }
        match self.first {
            None => self.first = Some(segment),
            Some(_) => self.rest.push(segment),
        }
    }

    /// The segments in order.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.first.iter().chain(self.rest.iter())
    }

    /// The real bytes, piece by piece, each with its offset.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, &Buffer)> {
        let mut at = 0;
        self.segments().filter_map(move |segment| {
            let offset = at;
            at += segment.len();
            match segment {
                Segment::Real(bytes) => Some((offset, bytes)),
                Segment::Phantom(_) => None,
            }
        })
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.segments().map(Segment::len).sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// A copy of `len` bytes from `offset` on, or of as many as there are.
    #[must_use]
    pub fn part(&self, offset: u64, len: u64) -> Payload {
        let (mut part, mut begin, end) = (Payload::empty(), 0, offset.saturating_add(len));
        for segment in self.segments() {
            let (from, to) = (begin.max(offset), (begin + segment.len()).min(end));
            if from < to {
                part.push(match segment {
                    Segment::Phantom(_) => Segment::Phantom(to - from),
                    Segment::Real(bytes) => {
                        let range = (from - begin) as usize..(to - begin) as usize;
                        Segment::Real(Buffer::copy_of(&bytes[range]))
                    }
                });
            }
            begin += segment.len();
        }
        part
    }

    /// Whether every byte is real.
    pub fn is_real(&self) -> bool {
        self.segments().all(|s| matches!(s, Segment::Real(_)))
    }

    /// Another payload of the same bytes, in the same memory; see [`Buffer::share`].
    pub fn share(&mut self) -> Payload {
        let share = |segment: &mut Segment| match segment {
            Segment::Real(buffer) => Segment::Real(buffer.share()),
            Segment::Phantom(len) => Segment::Phantom(*len),
        };
        Payload {
            first: self.first.as_mut().map(share),
            rest: self.rest.iter_mut().map(share).collect(),
            damaged: self.damaged,
        }
    }

    /// Flips the bits `mask` of byte `at`, as a bad wire does. For phantom bytes only the fact is kept: see
    /// [`Payload::is_damaged`].
    ///
    /// # Panics
    /// When there is no such byte.
    pub fn damage(&mut self, at: u64, mask: u8) {
        let mut begin = 0;
        for segment in self.first.iter_mut().chain(self.rest.iter_mut()) {
            let end = begin + segment.len();
            if at < end {
                match segment {
                    Segment::Real(buffer) => buffer[(at - begin) as usize] ^= mask,
                    Segment::Phantom(_) => self.damaged = true,
                }
                return;
            }
            begin = end;
        }
        panic!("byte {at} of a payload of {begin}");
    }

    /// Whether phantom bytes have been damaged: real ones would fail a checksum.
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// The bytes in one piece, copied only where they lie in several segments.
    ///
    /// # Errors
    /// [`PhantomRead`] where a segment is phantom.
    pub fn into_buffer(mut self) -> Result<Buffer, PhantomRead> {
        if !self.is_real() {
            return Err(PhantomRead);
        }
        match (self.first.take(), self.rest.is_empty()) {
            (None, _) => Ok(Buffer::zeroed(0)),
            (Some(Segment::Real(buffer)), true) => Ok(buffer),
            (first, _) => {
                self.first = first;
                let len = self.len() as usize;
                Ok(Buffer::filled_by(len, |mut to| {
                    for segment in self.segments() {
                        if let Segment::Real(from) = segment {
                            let (head, tail) = to.split_at_mut(from.len());
                            head.copy_from_slice(from);
                            to = tail;
                        }
                    }
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_join_in_order() {
        let mut payload = Payload::copy_of(b"abc");
        payload.push(Segment::Real(Buffer::copy_of(b"")));
        payload.push(Segment::Real(Buffer::copy_of(b"defg")));
        assert_eq!(payload.len(), 7);
        assert_eq!(&*payload.into_buffer().unwrap(), b"abcdefg");
    }

    #[test]
    fn a_phantom_has_a_length_but_cannot_be_read() {
        let mut payload = Payload::copy_of(b"abc");
        payload.push(Segment::Phantom(1 << 40));
        payload.push(Segment::Real(Buffer::copy_of(b"d")));
        assert_eq!(payload.len(), (1 << 40) + 4);
        assert!(
            payload.pieces().map(|(at, bytes)| (at, &**bytes)).eq([(0, &b"abc"[..]), ((1 << 40) + 3, b"d")])
        );
        assert_eq!(payload.into_buffer(), Err(PhantomRead));
    }

    #[test]
    fn shared_bytes_are_copied_before_they_are_written() {
        let mut kept = Payload::copy_of(b"abcdef");
        kept.push(Segment::Real(Buffer::copy_of(b"gh")));
        kept.push(Segment::Phantom(3));
        let mut sent = kept.share();
        assert_eq!(sent, kept);
        sent.damage(7, 0x01);
        assert_ne!(sent, kept);
        assert!(!sent.is_damaged());
        sent.damage(8, 0x80);
        assert!(sent.is_damaged() && !kept.is_damaged());
        let bytes =
            |payload: &Payload| payload.pieces().flat_map(|(_, buffer)| buffer.to_vec()).collect::<Vec<u8>>();
        assert_eq!((bytes(&sent), bytes(&kept)), (b"abcdefgi".to_vec(), b"abcdefgh".to_vec()));
        // The last one gives the memory back.
        let mut first = Buffer::copy_of(&[7; 300]);
        let address = first.as_ptr();
        let second = first.share();
        assert_eq!((second.as_ptr(), first.as_ptr()), (address, address));
        drop(first);
        assert_ne!(Buffer::zeroed(300).as_ptr(), address);
        drop(second);
        assert_eq!(Buffer::zeroed(300).as_ptr(), address);
    }

    #[test]
    fn memory_is_recycled() {
        let buffer = Buffer::copy_of(&[7; 4096]);
        let address = buffer.as_ptr();
        drop(buffer);
        let again = Buffer::zeroed(4000);
        assert_eq!(again.as_ptr(), address);
        assert!(again.iter().all(|&b| b == 0));
    }
}
