//! Decides when a running simulation stops: at its interrupt, and at intervals if the caller wants to be called during
//! the run.

use nicety_kernel::Interrupt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Number of checks between two pauses. The kernel checks about once per thousand events.
const LOOKS: u32 = 256;

/// The interrupt of a run, and the pauses during which the caller is called.
pub(super) struct Pauses {
    interrupt: Option<Interrupt>,
    /// Whether the run pauses at intervals.
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

    /// Whether a stopped run may continue, because its interrupt is not set.
    pub(super) fn is_over(&self) -> bool {
        !self.is_interrupted()
    }
}
