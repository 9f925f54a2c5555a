//! HPU memory of a card: allocation of pieces to all applications.

use super::application::Application;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Pieces are aligned to this many bytes, and so are their lengths.
const ALIGNMENT: u32 = 16;

/// The HPU memory of a card, allocated first fit.
pub(super) struct HpuMemory {
    size: u32,
    /// Start and length of allocated pieces, by address.
    taken: Vec<(u32, u32)>,
}

impl HpuMemory {
    pub(super) const fn new(size: u32) -> HpuMemory {
        HpuMemory { size, taken: Vec::new() }
    }

    /// Free bytes.
    pub(super) fn left(&self) -> u64 {
        u64::from(self.size) - self.taken.iter().map(|&(_, len)| u64::from(len)).sum::<u64>()
    }

    /// The gaps: index of the next piece, start and length.
    fn gaps(&self) -> impl Iterator<Item = (usize, u32, u32)> {
        let mut from = 0;
        let ends = self.taken.iter().copied().chain([(self.size, 0)]);
        ends.enumerate().map(move |(index, (start, len))| {
            let gap = (index, from, start - from);
            from = start + len;
            gap
        })
    }

    /// Bytes of the largest free gap.
    pub(super) fn largest(&self) -> u64 {
        self.gaps().map(|(.., len)| u64::from(len)).max().unwrap_or(0)
    }

    /// Allocates `len` bytes, rounded up; returns start and length.
    fn allocate(&mut self, len: u64) -> Option<(u32, u32)> {
        let len = u32::try_from(len).ok()?.checked_next_multiple_of(ALIGNMENT)?;
        let (index, start, _) = self.gaps().find(|&(.., gap)| gap >= len)?;
        self.taken.insert(index, (start, len));
        Some((start, len))
    }

    fn free(&mut self, start: u32) {
        let index = self.taken.binary_search_by_key(&start, |&(start, _)| start);
        self.taken.remove(index.expect("what is freed was taken"));
    }
}

/// An allocation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    /// Bytes left to the application or on the whole card.
    pub(super) left: u64,
    /// Bytes of the largest free gap.
    pub(super) largest: u64,
    /// Whether the application's own limit is the cause.
    pub(super) own: bool,
}

/// A piece of HPU memory of one application. Freed when dropped.
pub(super) struct Piece {
    pub(super) application: Rc<Application>,
    /// Its offset in the card's HPU memory.
    pub(super) start: u32,
    pub(super) bytes: RefCell<Vec<u8>>,
    taken: u32,
    from: Rc<RefCell<HpuMemory>>,
    /// Number of attached handlers with this state.
    pub(super) users: Cell<u32>,
}

impl Piece {
    /// Allocates a piece with these contents. An empty one takes no memory.
    pub(super) fn new(
        from: &Rc<RefCell<HpuMemory>>,
        application: &Rc<Application>,
        contents: Vec<u8>,
    ) -> Result<Piece, Short> {
        let (start, taken) = match contents.len() as u64 {
            0 => (0, 0),
            len => {
                let own = application.memory_left();
                if own.is_some_and(|left| left < len.next_multiple_of(ALIGNMENT.into())) {
                    let left = own.unwrap_or(0);
                    return Err(Short { left, largest: left, own: true });
                }
                let mut memory = from.borrow_mut();
                let short = Short { left: memory.left(), largest: memory.largest(), own: false };
                memory.allocate(len).ok_or(short)?
            }
        };
        application.memory_taken(taken);
        let (application, from, bytes) = (application.clone(), from.clone(), RefCell::new(contents));
        Ok(Piece { application, start, bytes, taken, from, users: Cell::new(0) })
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.application.memory_given_back(self.taken);
        if self.taken > 0 {
            self.from.borrow_mut().free(self.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_gap_that_is_large_enough_is_taken() {
        let mut memory = HpuMemory::new(128);
        assert_eq!(memory.allocate(17), Some((0, 32)));
        assert_eq!(memory.allocate(16), Some((32, 16)));
        assert_eq!(memory.allocate(64), Some((48, 64)));
        assert_eq!((memory.left(), memory.largest()), (16, 16));
        assert_eq!(memory.allocate(17), None);
        memory.free(32);
        assert_eq!((memory.left(), memory.largest()), (32, 16));
        assert_eq!(memory.allocate(32), None, "there are two halves of it");
        assert_eq!(memory.allocate(1), Some((32, 16)));
        memory.free(0);
        memory.free(32);
        assert_eq!(memory.allocate(33), Some((0, 48)));
        assert_eq!(memory.allocate(u64::MAX), None);
        assert_eq!(HpuMemory::new(64).largest(), 64);
    }

    proptest! {
        // After any sequence of allocations, pieces do not overlap, and the free bytes add up.
        #[test]
        fn pieces_never_overlap(steps in prop::collection::vec((any::<bool>(), 1u64..200), 1..200)) {
            let mut memory = HpuMemory::new(1024);
            let mut live: Vec<(u32, u32)> = Vec::new();
            for (take, number) in steps {
                if take {
                    let largest = memory.largest();
                    match memory.allocate(number) {
                        Some((start, len)) => {
                            prop_assert!(u64::from(len) >= number && start % ALIGNMENT == 0 && start + len <= 1024);
                            prop_assert!(live.iter().all(|&(s, l)| start + len <= s || s + l <= start));
                            live.push((start, len));
                        }
                        None => prop_assert!(largest < number.next_multiple_of(16)),
                    }
                } else if !live.is_empty() {
                    let (start, _) = live.swap_remove(number as usize % live.len());
                    memory.free(start);
                }
                let taken: u32 = live.iter().map(|&(_, len)| len).sum();
                prop_assert_eq!(memory.left(), u64::from(1024 - taken));
            }
        }
    }
}
