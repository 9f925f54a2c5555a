//! The card's memory: a fixed part, and a part for unexpected messages and for descriptors of Buffer Pools.

/// The use of a card's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardMemory {
    /// Size of the memory.
    pub size: u64,
    /// Size of the control program, the interfaces with their Context Regions, and the packet buffers.
    pub fixed: u64,
    /// Size of unexpected packets with their status, and of the descriptors of Buffer Pools.
    pub used: u64,
    /// The maximum of `used` so far.
    pub peak: u64,
}

impl CardMemory {
    pub(super) const fn new(size: u64, fixed: u64) -> CardMemory {
        CardMemory { size, fixed, used: 0, peak: 0 }
    }

    /// Returns the number of free bytes.
    pub const fn left(&self) -> u64 {
        self.size - self.fixed - self.used
    }

    /// Takes `bytes` bytes if that many are free. Returns whether it took them.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        if bytes > self.left() {
            return false;
        }
        self.used += bytes;
        self.peak = self.peak.max(self.used);
        true
    }

    pub(super) const fn give_back(&mut self, bytes: u64) {
        self.used -= bytes;
    }
}
