//! Storage of messages in flight on wires.

use crate::prefetch::prefetch;
use std::cell::RefCell;
use std::rc::Rc;

/// The messages on all wires that end in a shard, by slot. A new message gets the most recently freed slot, which is
/// still in a CPU cache.
pub(crate) struct Messages<M>(RefCell<Slots<M>>);

struct Slots<M> {
    slots: Vec<Option<M>>,
    free: Vec<u32>,
}

impl<M> Messages<M> {
    pub(crate) fn new() -> Rc<Messages<M>> {
        Rc::new(Messages(RefCell::new(Slots { slots: Vec::new(), free: Vec::new() })))
    }

    pub(crate) fn put(&self, message: M) -> u32 {
        let Slots { slots, free } = &mut *self.0.borrow_mut();
        match free.pop() {
            Some(slot) => {
                slots[slot as usize] = Some(message);
                slot
            }
            None => {
                slots.push(Some(message));
                // Reserves room for the case that all slots are free, so that freeing a slot never allocates.
                free.reserve(slots.capacity());
                u32::try_from(slots.len() - 1).expect("fewer than 2^32 messages on wires")
            }
        }
    }

    pub(crate) fn prefetch(&self, slot: u32) {
        prefetch(&self.0.borrow().slots[slot as usize]);
    }

    pub(crate) fn look(&self, slot: u32, look: impl FnOnce(&M)) {
        if let Some(message) = &self.0.borrow().slots[slot as usize] {
            look(message);
        }
    }

    pub(crate) fn take(&self, slot: u32) -> M {
        let Slots { slots, free } = &mut *self.0.borrow_mut();
        free.push(slot);
        slots[slot as usize].take().expect("a message is taken once")
    }
}
