//! Slots of packet buffers on a card with clusters. A packet takes consecutive whole slots, and waits until enough of
//! them are free.

use crate::clusters::rings::Rings;
use crate::ready::{Run, Slots};
use nicety_nic_core::parts::FirstFit;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Selects the slots of a run in one of the two buffers.
type SlotSelector = fn(&mut Slots) -> &mut Option<u32>;

/// The allocation of slots in a buffer.
enum Memory {
    /// The first free slots.
    FirstFit(FirstFit),
    /// In rings.
    Rings(Rings),
}

/// A packet buffer, and the runs with packets that wait for its slots.
pub(crate) struct SlotBuffer {
    slots: RefCell<Memory>,
    waiting: RefCell<VecDeque<Run>>,
    which: SlotSelector,
}

impl SlotBuffer {
    /// Returns a buffer of `bytes` bytes with slots of `slot` bytes. It uses rings if `rings` is not 0.
    pub fn new(bytes: u64, slot: u64, rings: u64, which: SlotSelector) -> SlotBuffer {
        let slots = match rings {
            0 => Memory::FirstFit(FirstFit::new(0..bytes, slot)),
            _ => Memory::Rings(Rings::new(bytes, rings, slot)),
        };
        SlotBuffer { slots: RefCell::new(slots), waiting: RefCell::default(), which }
    }

    /// Returns the number of runs that wait for slots.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Allocates slots for the packet of a run, unless it has some, and returns the run. Returns none if the run must
    /// wait, behind other waiting runs.
    pub(crate) fn admit(&self, mut run: Run) -> Option<Run> {
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
    pub(crate) fn free(&self, mut slots: Slots) {
        if let Some(start) = *(self.which)(&mut slots) {
            match &mut *self.slots.borrow_mut() {
                Memory::FirstFit(slots) => slots.give_back(start.into()),
                Memory::Rings(rings) => rings.free(start.into()),
            }
        }
    }

    /// Returns the next waiting run, if it has its slots now.
    pub fn next(&self) -> Option<Run> {
        let mut waiting = self.waiting.borrow_mut();
        let has_slots = self.place(waiting.front_mut()?);
        if has_slots { waiting.pop_front() } else { None }
    }

    /// Allocates slots for the packet of a run. Returns whether they were free.
    fn place(&self, run: &mut Run) -> bool {
        let taken = match &mut *self.slots.borrow_mut() {
            Memory::FirstFit(slots) => slots.take(run.packet_bytes()).map(|(start, _)| start),
            Memory::Rings(rings) => rings.take(run.packet_bytes()),
        };
        *(self.which)(&mut run.slots) = taken.map(|start| start as u32);
        taken.is_some()
    }
}
