//! When a run looks whether to go on: where its interrupt is set, and, if its caller wants to be asked, every so often.

use nicety_kernel::Interrupt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Looks of the kernel, each of a thousand events or so, between two pauses.
const LOOKS: u32 = 256;

/// The interrupt of a run, and the pauses of one whose caller is asked.
pub(super) struct Pauses {
    interrupt: Option<Interrupt>,
    /// Whether there are pauses.
    pub(super) active: AtomicBool,
    looks: AtomicU32,
}

impl Pauses {
    pub(super) fn new(interrupt: Option<Interrupt>) -> Pauses {
        Pauses { interrupt, active: AtomicBool::new(false), looks: AtomicU32::new(0) }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(Interrupt::is_set)
    }

    /// Whether the kernel is to stop.
    pub(super) fn is_due(&self) -> bool {
        let pauses = || {
            self.active.load(Ordering::Relaxed)
                && self.looks.fetch_add(1, Ordering::Relaxed) % LOOKS == LOOKS - 1
        };
        self.is_interrupted() || pauses()
    }

    /// Whether a run that stopped may go on, as far as its interrupt says.
    pub(super) fn is_over(&self) -> bool {
        !self.is_interrupted()
    }
}
