//! Handles that become stale, and the bounded slabs that they index.

use crate::Error;

/// A handle: the index of a slot, and the number of allocations of that slot so far.
pub(crate) trait Handle: Copy {
    /// The name of the resource in error messages, and the field of [`crate::Limits`] that limits the resource.
    const NAMES: (&'static str, &'static str);
    fn new(index: u32, generation: u32) -> Self;
    fn index(self) -> u32;
    fn generation(self) -> u32;
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $limit:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name { index: u32, generation: u32 }

        impl Handle for $name {
            const NAMES: (&'static str, &'static str) = ($text, $limit);
            fn new(index: u32, generation: u32) -> Self { $name { index, generation } }
            fn index(self) -> u32 { self.index }
            fn generation(self) -> u32 { self.generation }
        }

        impl $name {
            /// Returns the handle as one number, for a host program or a packet.
            pub const fn to_bits(self) -> u64 {
                (self.generation as u64) << 32 | self.index as u64
            }

            /// Returns the handle for a number from [`Self::to_bits`]. Any other number gives a stale handle.
            pub const fn from_bits(bits: u64) -> Self {
                $name { index: bits as u32, generation: (bits >> 32) as u32 }
            }
        }
    )*};
}

handles! {
    /// A match entry.
    MeHandle = "match entry", "entries";
    /// A memory descriptor.
    MdHandle = "memory descriptor", "descriptors";
    /// A counting event.
    CtHandle = "counter", "counters";
    /// An event queue.
    EqHandle = "event queue", "event_queues";
    /// An operation of this initiator that has not ended. It was started or triggered, and is not yet sent or not yet
    /// answered.
    OperationHandle = "operation", "operations";
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// A table of at most `limit` values, plus those of the card's own software. A lookup by handle takes constant time.
pub(crate) struct Slab<H, T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    limit: u32,
    /// Number of values of the card's own software, which do not count against the limit.
    own: u32,
    _handle: std::marker::PhantomData<H>,
}

impl<H: Handle, T> Slab<H, T> {
    pub fn new(limit: u32) -> Self {
        Slab { slots: Vec::new(), free: Vec::new(), limit, own: 0, _handle: std::marker::PhantomData }
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn has_room(&self) -> Result<(), Error> {
        if self.len() >= self.limit as usize + self.own as usize {
            let (what, name) = H::NAMES;
            return Err(Error::NoSpace { what, name, limit: self.limit });
        }
        Ok(())
    }

    /// Makes room for one more value of the card's own software.
    pub const fn add_own(&mut self) {
        self.own += 1;
    }

    /// Removes the room of a freed value of the card's own software.
    pub const fn remove_own(&mut self) {
        self.own -= 1;
    }

    pub fn insert(&mut self, value: T) -> Result<H, Error> {
        self.has_room()?;
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.value = Some(value);
            return Ok(H::new(index, slot.generation));
        }
        let index = self.slots.len() as u32;
        // Generations begin at one, so zero bits are never a live handle.
        self.slots.push(Slot { generation: 1, value: Some(value) });
        Ok(H::new(index, 1))
    }

    pub fn get(&self, handle: H) -> Result<&T, Error> {
        match self.slots.get(handle.index() as usize) {
            Some(Slot { generation, value: Some(value) }) if *generation == handle.generation() => Ok(value),
            _ => Err(Error::Stale(H::NAMES.0)),
        }
    }

    pub fn get_mut(&mut self, handle: H) -> Result<&mut T, Error> {
        match self.slots.get_mut(handle.index() as usize) {
            Some(Slot { generation, value: Some(value) }) if *generation == handle.generation() => Ok(value),
            _ => Err(Error::Stale(H::NAMES.0)),
        }
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    pub fn remove(&mut self, handle: H) -> Result<T, Error> {
        self.get(handle)?;
        let slot = &mut self.slots[handle.index() as usize];
        slot.generation = slot.generation.wrapping_add(1).max(1);
        self.free.push(handle.index());
        Ok(slot.value.take().expect("the handle was just found to be live"))
    }
}
