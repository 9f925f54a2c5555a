//! Slots of packet buffers on a card with clusters: a packet lies in whole slots, one behind the other, and waits where there are
//! not as many.

use crate::parts::FirstFit;
use crate::spin::handlers::fate::{Run, Slots};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Which of them a buffer gives out.
type Which = fn(&mut Slots) -> &mut Option<u32>;

/// A buffer, and the runs whose packets wait for slots of it.
pub(in crate::spin) struct SlotBuffer {
    slots: RefCell<FirstFit>,
    waiting: RefCell<VecDeque<Run>>,
    which: Which,
}

impl SlotBuffer {
    /// A buffer of so many bytes in slots of so many.
    pub(in crate::spin) fn new(bytes: u64, slot: u64, which: Which) -> SlotBuffer {
        SlotBuffer { slots: RefCell::new(FirstFit::new(0..bytes, slot)), waiting: RefCell::default(), which }
    }

    /// Gives the packet of a run its slots, where it has none, and returns the run. None where it waits for them, behind others that do.
    pub(in crate::spin) fn admit(&self, mut run: Run) -> Option<Run> {
        if (self.which)(&mut run.slots).is_some() {
            return Some(run);
        }
        if run.packet_bytes() > 0 && (!self.waiting.borrow().is_empty() || !self.place(&mut run)) {
            self.waiting.borrow_mut().push_back(run);
            return None;
        }
        Some(run)
    }

    /// Frees the slots of a packet.
    pub(in crate::spin) fn free(&self, mut slots: Slots) {
        if let Some(start) = *(self.which)(&mut slots) {
            self.slots.borrow_mut().give_back(start.into());
        }
    }

    /// The next run that waited, and whose packet has its slots now.
    pub(in crate::spin) fn next(&self) -> Option<Run> {
        let mut waiting = self.waiting.borrow_mut();
        let has_slots = self.place(waiting.front_mut()?);
        if has_slots { waiting.pop_front() } else { None }
    }

    /// Whether there are slots for the packet of a run, which it has then.
    fn place(&self, run: &mut Run) -> bool {
        let taken = self.slots.borrow_mut().take(run.packet_bytes());
        *(self.which)(&mut run.slots) = taken.map(|(start, _)| start as u32);
        taken.is_some()
    }
}
