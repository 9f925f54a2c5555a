//! Slots of packet buffers on a card with clusters: a packet lies in whole slots, one behind the other, and waits where there are
//! not as many.

use crate::parts::FirstFit;
use crate::spin::handlers::clusters::rings::Rings;
use crate::spin::handlers::fate::{Run, Slots};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Which of them a buffer gives out.
type Which = fn(&mut Slots) -> &mut Option<u32>;

/// How a buffer gives out its slots.
enum Memory {
    /// The first that are free.
    FirstFit(FirstFit),
    /// In rings.
    Rings(Rings),
}

/// A buffer, and the runs whose packets wait for slots of it.
pub(in crate::spin) struct SlotBuffer {
    slots: RefCell<Memory>,
    waiting: RefCell<VecDeque<Run>>,
    which: Which,
}

impl SlotBuffer {
    /// A buffer of so many bytes in slots of so many, in rings, if their number is not 0.
    pub(in crate::spin) fn new(bytes: u64, slot: u64, rings: u64, which: Which) -> SlotBuffer {
        let slots = match rings {
            0 => Memory::FirstFit(FirstFit::new(0..bytes, slot)),
            _ => Memory::Rings(Rings::new(bytes, rings, slot)),
        };
        SlotBuffer { slots: RefCell::new(slots), waiting: RefCell::default(), which }
    }

    /// Runs that wait for slots.
    pub(in crate::spin) fn waiting(&self) -> usize {
        self.waiting.borrow().len()
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
            match &mut *self.slots.borrow_mut() {
                Memory::FirstFit(slots) => slots.give_back(start.into()),
                Memory::Rings(rings) => rings.free(start.into()),
            }
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
        let taken = match &mut *self.slots.borrow_mut() {
            Memory::FirstFit(slots) => slots.take(run.packet_bytes()).map(|(start, _)| start),
            Memory::Rings(rings) => rings.take(run.packet_bytes()),
        };
        *(self.which)(&mut run.slots) = taken.map(|start| start as u32);
        taken.is_some()
    }
}
