//! LR/SC reservations of all cores that share a memory.

/// The reserved words of all harts. Cores that share a memory share its reservations. A hart id identifies a core.
///
/// A reservation is broken only by another hart's store or AMO to the word, and by [`invalidate`](Self::invalidate): an
/// SC to a reserved word never fails spuriously. Each stack belongs to one context and is excluded, so that two stacks
/// may have the same address.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    /// Hart, word address, and bytes of the word. A hart has at most one reservation.
    held: Vec<(u32, u32, u32)>,
}

impl Reservations {
    /// Nothing is reserved.
    pub const fn new() -> Reservations {
        Reservations { held: Vec::new() }
    }

    /// Whether nothing is reserved.
    pub const fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Breaks every reservation of `len` bytes at `address`, for a store by a writer other than a core, such as DMA.
    pub fn invalidate(&mut self, address: u32, len: u32) {
        self.held.retain(|&(_, word, size)| !overlaps(word, size, address, len));
    }

    /// Records that `hart` has written `len` bytes at `address`.
    pub(crate) fn stored(&mut self, hart: u32, address: u32, len: u32) {
        self.held.retain(|&(holder, word, size)| holder == hart || !overlaps(word, size, address, len));
    }

    /// Drops the reservation of a hart after its handler has ended.
    pub fn release(&mut self, hart: u32) {
        self.held.retain(|&(holder, ..)| holder != hart);
    }

    pub(crate) fn reserve(&mut self, hart: u32, word: u32, size: u32) {
        self.release(hart);
        self.held.push((hart, word, size));
    }

    /// Drops the reservation of `hart`. Returns whether it was for `word`, with this size.
    pub(crate) fn take(&mut self, hart: u32, word: u32, size: u32) -> bool {
        let held = self.held.contains(&(hart, word, size));
        self.release(hart);
        held
    }
}

fn overlaps(word: u32, size: u32, address: u32, len: u32) -> bool {
    let (word, address) = (u64::from(word), u64::from(address));
    word < address + u64::from(len) && address < word + u64::from(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_break_a_reservation_and_its_owner_does_not() {
        let mut reservations = Reservations::new();
        reservations.reserve(1, 0x100, 4);
        reservations.stored(1, 0x100, 4);
        reservations.stored(2, 0x104, 4);
        reservations.stored(2, 0xfc, 4);
        assert!(reservations.clone().take(1, 0x100, 4));
        assert!(!reservations.clone().take(1, 0x104, 4));
        reservations.stored(2, 0x103, 1);
        assert!(reservations.is_empty());
        reservations.reserve(1, 0x100, 4);
        reservations.reserve(1, 0x200, 4);
        reservations.reserve(2, 0x100, 4);
        reservations.invalidate(0xf0, 0x20);
        assert!(!reservations.take(2, 0x100, 4));
        assert!(reservations.take(1, 0x200, 4) && reservations.is_empty());
        reservations.reserve(1, 0xffff_fffc, 4);
        reservations.invalidate(0xffff_ffff, 1);
        assert!(reservations.is_empty());
        // A double word is held as a whole, and only an SC of its size takes it.
        reservations.reserve(1, 0x100, 8);
        assert!(!reservations.clone().take(1, 0x100, 4));
        assert!(reservations.clone().take(1, 0x100, 8));
        reservations.stored(2, 0x104, 4);
        assert!(reservations.is_empty());
    }
}
