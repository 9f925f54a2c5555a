//! The checks of a run: for its interrupt, and for a pause if the caller wants one at intervals.

use nicety_kernel::Interrupt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Checks by the kernel, one per thousand events or so, between two pauses.
const LOOKS: u32 = 256;

/// The interrupt of a run, and its pauses for the caller.
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

    /// Whether the kernel must stop.
    pub(super) fn is_due(&self) -> bool {
        let pauses = || {
            self.active.load(Ordering::Relaxed)
                && self.looks.fetch_add(1, Ordering::Relaxed) % LOOKS == LOOKS - 1
        };
        self.is_interrupted() || pauses()
    }

    /// Whether a stopped run may continue: its interrupt is not set.
    pub(super) fn is_over(&self) -> bool {
        !self.is_interrupted()
    }
}
