//! The payload of a packet: segments of real bytes, or phantom lengths for large timing runs.
//!
//! A bounded pool of the thread recycles buffers, so that a run in steady state allocates nothing for a packet.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// The smallest pooled buffer has 2^6 = 64 B. There is one class for each power of two from 64 B to 1 MiB.
const SMALLEST_CLASS: u32 = 6;
const CLASSES: usize = 15;
/// Maximum size of a thread's pool in each class, in bytes.
const POOLED_BYTES: usize = 8 << 20;

thread_local! {
    static POOL: RefCell<[Vec<Arc<[u8]>>; CLASSES]> = const { RefCell::new([const { Vec::new() }; CLASSES]) };
}

#[inline]
fn class_of(len: usize) -> usize {
    (len.max(1).next_power_of_two().ilog2().max(SMALLEST_CLASS) - SMALLEST_CLASS) as usize
}

/// Memory that buffers share, or none for an empty buffer. The last owner returns it to the thread's pool.
#[derive(Clone)]
struct Pooled(Option<Arc<[u8]>>);

impl Pooled {
    /// Returns memory for `len` bytes. The memory still has the contents of its previous use.
    fn new(len: usize) -> Pooled {
        let class = class_of(len);
        let pooled = if class < CLASSES { POOL.with_borrow_mut(|pool| pool[class].pop()) } else { None };
        let size = 1 << (class as u32 + SMALLEST_CLASS);
        Pooled(Some(pooled.unwrap_or_else(|| std::iter::repeat_n(0, size).collect())))
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let Some(bytes) = self.0.take() else { return };
        let class = class_of(bytes.len());
        if class < CLASSES && Arc::strong_count(&bytes) == 1 {
            // An ending thread has no pool any more; its buffers are freed.
            let _ = POOL.try_with(|pool| {
                let free = &mut pool.borrow_mut()[class];
                if (free.len() + 1) * bytes.len() <= POOLED_BYTES {
                    free.push(bytes);
                }
            });
        }
    }
}

/// Bytes of a payload, in recycled memory. A clone shares the memory. A write to the clone or the original first copies
/// the bytes if they are shared.
#[derive(Clone)]
pub struct Buffer {
    memory: Pooled,
    start: usize,
    len: usize,
}

impl Buffer {
    /// Returns a buffer of `len` zero bytes.
    pub fn zeroed(len: usize) -> Buffer {
        Buffer::filled_by(len, |bytes| bytes.fill(0))
    }

    /// Returns a buffer without bytes, which needs no memory.
    #[inline]
    pub const fn empty() -> Buffer {
        Buffer { memory: Pooled(None), start: 0, len: 0 }
    }

    /// Returns a buffer of `len` bytes. `write` must set every byte.
    #[inline]
    pub fn filled_by(len: usize, write: impl FnOnce(&mut [u8])) -> Buffer {
        let mut buffer = Buffer { memory: Pooled::new(len), start: 0, len };
        write(&mut buffer);
        buffer
    }

    /// Returns a copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Buffer {
        Buffer::filled_by(bytes.len(), |to| to.copy_from_slice(bytes))
    }

    /// Returns a part of the buffer, in the same memory.
    ///
    /// # Panics
    /// When the range is outside the buffer.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Buffer {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} bytes", self.len);
        Buffer { memory: self.memory.clone(), start: self.start + range.start, len: range.len() }
    }

    #[inline]
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.len
    }
}

impl Deref for Buffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.memory.0.as_ref().map_or(&[], |memory| &memory[self.range()])
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // A reference count of one cannot rise here: `self` is borrowed, and no other buffer exists to clone.
        if self.memory.0.as_ref().is_some_and(|memory| Arc::strong_count(memory) > 1) {
            *self = Buffer::copy_of(self);
        }
        let range = self.range();
        match &mut self.memory.0 {
            Some(memory) => &mut Arc::get_mut(memory).expect("no other buffer shares it")[range],
            None => &mut [],
        }
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

impl Serialize for Buffer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self)
    }
}

impl<'de> Deserialize<'de> for Buffer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Buffer, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Buffer;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Buffer, E> {
                Ok(Buffer::copy_of(bytes))
            }
        }
        from.deserialize_bytes(Bytes)
    }
}

/// A part of a payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Segment {
    /// Real bytes.
    Real(Buffer),
    /// A length in bytes, without contents. A read is an error.
    Phantom(u64),
}

impl Segment {
    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Segment::Real(buffer) => buffer.len as u64,
            Segment::Phantom(len) => *len,
        }
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An error: a read of phantom bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhantomRead;

impl fmt::Display for PhantomRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the payload is phantom: it has a length but no bytes to read")
    }
}

impl std::error::Error for PhantomRead {}

/// The payload of a packet: zero or more segments. A payload of one segment, the usual case, needs no list. A clone shares the
/// bytes until the clone or the original is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    first: Option<Segment>,
    rest: Vec<Segment>,
    /// Whether a phantom bit has been flipped.
    damaged: bool,
}

impl Payload {
    /// Returns an empty payload.
    #[inline]
    pub const fn empty() -> Payload {
        Payload { first: None, rest: Vec::new(), damaged: false }
    }

    /// Returns a payload of real bytes.
    #[inline]
    pub fn real(buffer: Buffer) -> Payload {
        Payload::from_segment(Segment::Real(buffer))
    }

    /// Returns a copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Payload {
        Payload::real(Buffer::copy_of(bytes))
    }

    /// Returns a payload of `len` phantom bytes.
    pub fn phantom(len: u64) -> Payload {
        Payload::from_segment(Segment::Phantom(len))
    }

    #[inline]
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

    /// The buffers of the real segments, each with its offset in the payload.
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
    #[inline]
    pub fn len(&self) -> u64 {
        let first = self.first.as_ref().map_or(0, Segment::len);
        if self.rest.is_empty() { first } else { first + self.rest_len() }
    }

    /// Length in bytes of the segments behind the first one.
    #[cold]
    fn rest_len(&self) -> u64 {
        self.rest.iter().map(Segment::len).sum()
    }

    /// Whether the payload has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns `len` bytes from `offset`, or fewer at the end, in the same memory.
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
                        Segment::Real(bytes.part(range))
                    }
                });
            }
            begin += segment.len();
        }
        part
    }

    /// Whether every byte is real.
    #[inline]
    pub fn is_real(&self) -> bool {
        let is_real = |segment: &Segment| matches!(segment, Segment::Real(_));
        self.first.as_ref().is_none_or(is_real) && (self.rest.is_empty() || self.rest.iter().all(is_real))
    }

    /// Flips the bits `mask` of byte `at`, as a faulty link does. For phantom bytes it only records the damage: see
    /// [`Payload::is_damaged`].
    ///
    /// # Panics
    /// When the payload has no byte `at`.
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

    /// Whether phantom bytes are damaged. Damage to real bytes is not recorded here: their checksum shows it.
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// Returns the bytes in one buffer. Copies only where the payload has several segments.
    ///
    /// # Errors
    /// [`PhantomRead`] where a segment is phantom.
    #[inline]
    pub fn into_buffer(mut self) -> Result<Buffer, PhantomRead> {
        if !self.is_real() {
            return Err(PhantomRead);
        }
        match (self.first.take(), self.rest.is_empty()) {
            (None, _) => Ok(Buffer::empty()),
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
        let mut sent = kept.clone();
        assert_eq!(sent, kept);
        sent.damage(7, 0x01);
        assert_ne!(sent, kept);
        assert!(!sent.is_damaged());
        sent.damage(8, 0x80);
        assert!(sent.is_damaged() && !kept.is_damaged());
        let bytes =
            |payload: &Payload| payload.pieces().flat_map(|(_, buffer)| buffer.to_vec()).collect::<Vec<u8>>();
        assert_eq!((bytes(&sent), bytes(&kept)), (b"abcdefgi".to_vec(), b"abcdefgh".to_vec()));
        // The last owner returns the memory.
        let first = Buffer::copy_of(&[7; 300]);
        let address = first.as_ptr();
        let second = first.clone();
        assert_eq!((second.as_ptr(), first.as_ptr()), (address, address));
        drop(first);
        assert_ne!(Buffer::zeroed(300).as_ptr(), address);
        drop(second);
        assert_eq!(Buffer::zeroed(300).as_ptr(), address);
    }

    #[test]
    fn a_part_is_in_the_same_memory_until_it_is_written() {
        let mut whole = Payload::copy_of(b"abcdef");
        whole.push(Segment::Phantom(2));
        whole.push(Segment::Real(Buffer::copy_of(b"gh")));
        let part = whole.part(2, 7);
        assert_eq!(
            part.pieces().map(|(at, bytes)| (at, bytes.to_vec())).collect::<Vec<_>>(),
            [(0, b"cdef".to_vec()), (6, b"g".to_vec())]
        );
        let all = whole.part(0, 4).into_buffer().unwrap();
        let mut inner = all.part(1..3);
        assert_eq!(inner.as_ptr(), all[1..].as_ptr());
        inner[0] = b'x';
        assert_eq!((&*inner, &*all), (&b"xc"[..], &b"abcd"[..]));
        drop(all);
        assert_eq!(&*whole.part(0, 6).into_buffer().unwrap(), b"abcdef");
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
