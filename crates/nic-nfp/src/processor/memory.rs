//! The memories outside the microengines, each with a queue.
//!
//! A memory serves references one at a time, in the order of issue. The model reads or changes the bytes already when a
//! reference is issued. No context can observe this, because a context sleeps until its reference is done, and
//! references keep their order.

use crate::map::MemoryKind;
use crate::spec::MemorySpec;
use nicety_hpu::Reservations;
use std::cell::{Cell, RefCell};
use std::fmt;

/// The kind of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A read.
    Read,
    /// A write.
    Write,
    /// An atomic read-modify-write of a word.
    Atomic,
}

/// Counters of a memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounters {
    /// Number of references served.
    pub references: u64,
    /// Number of bytes that the references moved.
    pub bytes: u64,
    /// Number of busy cycles.
    pub busy: u64,
    /// Sum of the cycles for which references waited in the memory's queue.
    pub queued: u64,
}

/// The error for an access beyond the end of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The memory.
    pub kind: MemoryKind,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length of the access in bytes.
    pub len: u64,
    /// Size of the memory in bytes.
    pub size: u64,
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outside { kind, offset, len, size } = self;
        write!(
            f,
            "{len} bytes at offset {offset} reach past the end of {}, which has {size} bytes",
            kind.name()
        )
    }
}

impl std::error::Error for Outside {}

const PAGE: usize = 64 << 10;

/// A memory. Pages of its contents are allocated at their first write.
pub struct Memory {
    kind: MemoryKind,
    spec: MemorySpec,
    pages: RefCell<Vec<Option<Box<[u8]>>>>,
    /// The next cycle at which the memory is free.
    free: Cell<u64>,
    counters: Cell<MemoryCounters>,
    pub(super) reservations: RefCell<Reservations>,
}

impl Memory {
    pub(super) fn new(kind: MemoryKind, spec: &MemorySpec) -> Memory {
        let pages = (spec.size as usize).div_ceil(PAGE);
        Memory {
            kind,
            spec: spec.clone(),
            pages: RefCell::new(vec![None; pages]),
            free: Cell::new(0),
            counters: Cell::default(),
            reservations: RefCell::default(),
        }
    }

    /// Returns the memory's kind.
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// Returns the memory's size in bytes.
    pub fn size(&self) -> u64 {
        u64::from(self.spec.size)
    }

    /// Returns the memory's counters.
    pub fn counters(&self) -> MemoryCounters {
        self.counters.get()
    }

    /// Issues a reference to `len` bytes at `cycle`. Returns the cycle at which it is done.
    ///
    /// A reference begins when the memory has served the earlier references. It occupies the memory for `gap` cycles,
    /// or longer if the transfer of its bytes takes more cycles. It is done one latency after its beginning, plus the
    /// transfer cycles after the first.
    pub(crate) fn claim(&self, reference: Reference, cycle: u64, len: u64) -> u64 {
        let spec = &self.spec;
        let latency = match reference {
            Reference::Read => spec.read,
            Reference::Write => spec.write,
            Reference::Atomic => spec.atomic,
        };
        let start = cycle.max(self.free.get());
        let transfer = len.div_ceil(spec.width).max(1);
        let service = transfer.max(spec.gap);
        self.free.set(start + service);
        let before = self.counters.get();
        self.counters.set(MemoryCounters {
            references: before.references + 1,
            bytes: before.bytes + len,
            busy: before.busy + service,
            queued: before.queued + (start - cycle),
        });
        start + latency + (transfer - 1)
    }

    /// Returns the number of cycles for which a reference at `cycle` would wait for earlier ones.
    pub(super) fn queue(&self, cycle: u64) -> u64 {
        self.free.get().saturating_sub(cycle)
    }

    /// Returns the number of cycles from the last bytes of a write to its completion.
    pub(crate) fn write_latency(&self) -> u64 {
        self.spec.write
    }

    /// Copies bytes out of the memory. This takes no virtual time.
    ///
    /// # Errors
    /// When the access reaches beyond the memory.
    pub fn peek(&self, offset: u64, into: &mut [u8]) -> Result<(), Outside> {
        self.check(offset, into.len())?;
        let pages = self.pages.borrow();
        let mut at = offset as usize;
        let mut rest = into;
        while !rest.is_empty() {
            let (page, from) = (at / PAGE, at % PAGE);
            let (head, tail) = rest.split_at_mut(rest.len().min(PAGE - from));
            match &pages[page] {
                Some(bytes) => head.copy_from_slice(&bytes[from..from + head.len()]),
                None => head.fill(0),
            }
            at += head.len();
            rest = tail;
        }
        Ok(())
    }

    /// Copies bytes into the memory. This takes no virtual time.
    ///
    /// # Errors
    /// When the access reaches beyond the memory.
    pub fn poke(&self, offset: u64, from: &[u8]) -> Result<(), Outside> {
        self.check(offset, from.len())?;
        self.replace(offset, from);
        let mut reservations = self.reservations.borrow_mut();
        if !reservations.is_empty() {
            reservations.invalidate(self.kind.base() + offset as u32, from.len() as u32);
        }
        Ok(())
    }

    /// Copies bytes into the memory without a change of reservations. An atomic instruction calls this after it has
    /// handled the reservations.
    pub(super) fn replace(&self, offset: u64, from: &[u8]) {
        let mut pages = self.pages.borrow_mut();
        let (mut at, mut rest) = (offset as usize, from);
        while !rest.is_empty() {
            let (page, to) = (at / PAGE, at % PAGE);
            let (head, tail) = rest.split_at(rest.len().min(PAGE - to));
            let bytes = pages[page].get_or_insert_with(|| vec![0; PAGE].into());
            bytes[to..to + head.len()].copy_from_slice(head);
            at += head.len();
            rest = tail;
        }
    }

    /// Reads a word. This takes no virtual time.
    ///
    /// # Errors
    /// When the access reaches beyond the memory.
    pub fn peek_u32(&self, offset: u64) -> Result<u32, Outside> {
        let mut word = [0; 4];
        self.peek(offset, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    fn check(&self, offset: u64, len: usize) -> Result<(), Outside> {
        let (len, size) = (len as u64, self.size());
        let inside = offset.checked_add(len).is_some_and(|end| end <= size);
        if inside { Ok(()) } else { Err(Outside { kind: self.kind, offset, len, size }) }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} of {} bytes)", self.kind.name(), self.spec.size)
    }
}

/// The memories of a microengine.
#[derive(Clone, Debug)]
pub(super) struct Memories(pub(super) [std::rc::Rc<Memory>; 4]);

impl Memories {
    /// Returns the memory that contains all bytes of a range, and the range's offset in that memory.
    pub(super) fn find(&self, address: u32, len: u32) -> Option<(&Memory, u64)> {
        self.0.iter().find_map(|memory| {
            let offset = u64::from(address.checked_sub(memory.kind.base())?);
            (offset + u64::from(len) <= memory.size()).then_some((&**memory, offset))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        let spec = MemorySpec { size: 256 << 10, read: 40, write: 30, atomic: 50, gap: 2, width: 8 };
        Memory::new(MemoryKind::Ctm, &spec)
    }

    #[test]
    fn references_wait_for_each_other() {
        let memory = memory();
        assert_eq!(memory.claim(Reference::Read, 100, 4), 140); // occupies 100 and 101
        assert_eq!(memory.claim(Reference::Write, 100, 4), 132); // starts at 102
        assert_eq!(memory.claim(Reference::Atomic, 103, 4), 154); // at 104
        assert_eq!(memory.claim(Reference::Read, 200, 64), 247); // eight beats, the last seven cycles later
        assert_eq!(memory.claim(Reference::Read, 201, 4), 248); // at 208
        let counters = memory.counters();
        assert_eq!(counters, MemoryCounters { references: 5, bytes: 80, busy: 16, queued: 2 + 1 + 7 });
    }

    #[test]
    fn bytes_cross_pages_and_end_where_the_memory_does() {
        let memory = memory();
        let bytes: Vec<u8> = (0..100).collect();
        memory.poke(PAGE as u64 - 50, &bytes).unwrap();
        let mut back = [0; 102];
        memory.peek(PAGE as u64 - 51, &mut back).unwrap();
        assert_eq!((back[0], &back[1..101], back[101]), (0, &bytes[..], 0));
        assert_eq!(memory.pages.borrow().iter().flatten().count(), 2);
        let error = memory.poke((256 << 10) - 3, &[0; 4]).unwrap_err().to_string();
        assert!(error.contains("262141 reach past the end of CTM, which has 262144 bytes"), "{error}");
        assert!(memory.peek(u64::MAX, &mut [0]).is_err());
    }
}
