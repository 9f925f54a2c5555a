//! The card's memory: what is given away for good, and what is left for messages that nobody receives yet.

/// How a card's memory is used, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardMemory {
    /// All of it.
    pub size: u64,
    /// The control program, the interfaces with their Context Regions, and the packets that come and go.
    pub fixed: u64,
    /// Packets that wait for a receive with their status, and descriptors of Buffer Pools.
    pub used: u64,
    /// The most that was used at a time.
    pub peak: u64,
}

impl CardMemory {
    pub(super) const fn new(size: u64, fixed: u64) -> CardMemory {
        CardMemory { size, fixed, used: 0, peak: 0 }
    }

    /// What is left.
    pub const fn left(&self) -> u64 {
        self.size - self.fixed - self.used
    }

    /// Takes bytes, if they are left.
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
