//! A process's Buffer Pool: host memory that is locked and translated once. The process allocates pieces of the pool.

use nicety_host::Allocation;
use nicety_nic_core::parts::FirstFit;

/// Alignment of pieces in bytes: the size of a cache line of most hosts.
const GRAIN: u64 = 64;

/// A Buffer Pool.
pub(crate) struct BufferPool {
    pub(crate) memory: Allocation,
    pieces: FirstFit,
}

impl BufferPool {
    pub(crate) fn new(memory: Allocation) -> BufferPool {
        let pieces = FirstFit::new(memory.address()..memory.address() + memory.len(), GRAIN);
        BufferPool { memory, pieces }
    }

    /// Whether the pool contains a range of addresses.
    pub(crate) fn holds(&self, address: u64, bytes: u64) -> bool {
        let (begin, end) = (self.pieces.range().start, self.pieces.range().end);
        (begin..=end).contains(&address) && bytes <= end - address
    }

    /// Returns the size of the longest free piece in bytes.
    pub(crate) fn longest(&self) -> u64 {
        self.pieces.largest()
    }

    /// Takes the first free piece of sufficient size. Returns its address.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        self.pieces.take(bytes).map(|(address, _)| address)
    }

    /// Frees a piece.
    pub(crate) fn give_back(&mut self, address: u64) {
        self.pieces.give_back(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_host::Memory;

    #[test]
    fn pieces_do_not_overlap_and_are_used_again() {
        let memory = Memory::new(1 << 20);
        let mut pool = BufferPool::new(memory.allocate(1024).unwrap());
        let start = pool.memory.address();
        assert_eq!(pool.longest(), 1024);
        assert_eq!([100, 1, 0].map(|bytes| pool.take(bytes)), [0, 128, 192].map(|at| Some(start + at)));
        assert_eq!((pool.longest(), pool.take(769)), (768, None));
        pool.give_back(start);
        assert_eq!(pool.take(128), Some(start));
        assert_eq!(pool.take(768), Some(start + 256));
        assert_eq!((pool.longest(), pool.take(1)), (0, None));
        assert!(pool.holds(start, 1024) && pool.holds(start + 1024, 0));
        assert!(!pool.holds(start, 1025) && !pool.holds(start - 1, 1));
    }
}
