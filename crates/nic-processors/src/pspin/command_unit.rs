//! Commands in flight: those of a core that runs handlers written for PsPIN, and those of a handler.

use crate::commands::transfers::Arriving;
use nicety_kernel::{Signal, Sim};
use std::cell::{Cell, RefCell};

/// The places for commands of a core. A handle is the number of a place. The place is free when its command is done.
pub struct CommandUnit {
    busy: Box<[Cell<bool>]>,
    /// The handle that a handler has selected for a test.
    pub tested: Cell<u32>,
    /// Whether the core holds handlers' feedbacks, one at a time, and whether it holds one now.
    holds: bool,
    held: Cell<bool>,
    changed: Signal,
}

/// The commands of a handler. Its feedback waits for them.
pub struct Issued {
    in_flight: Cell<u32>,
    /// Bytes that have arrived from the host but are not yet in the handler's memory.
    pub arriving: RefCell<Vec<Arriving>>,
    changed: Signal,
}

impl CommandUnit {
    /// Returns a unit with `places` places, and with room for a feedback if feedbacks are limited.
    pub fn new(sim: &Sim, places: u32, feedbacks: u32) -> CommandUnit {
        CommandUnit {
            busy: (0..places).map(|_| Cell::new(false)).collect(),
            tested: Cell::new(0),
            holds: feedbacks > 0,
            held: Cell::new(false),
            changed: Signal::new(sim),
        }
    }

    /// Takes the first free place for a command of a handler. Waits for a place, and until the previous handler's
    /// feedback has left: a core never has commands of two handlers in flight (`hpu_driver.sv`:
    /// `disable_commands_o`).
    pub async fn take(&self, issued: &Issued) -> usize {
        self.changed.wait_until(|| !self.held.get()).await;
        let free = || self.busy.iter().position(|busy| !busy.get());
        self.changed.wait_until(|| free().is_some()).await;
        let place = free().expect("just seen");
        self.busy[place].set(true);
        issued.begins();
        place
    }

    /// Holds the feedback of an ended handler once the previous feedback has left. Returns whether it waited for
    /// that.
    pub async fn hold_feedback(&self) -> bool {
        let waits = self.held.get();
        self.changed.wait_until(|| !self.held.get()).await;
        self.held.set(self.holds);
        waits
    }

    /// Releases the held feedback.
    pub(crate) fn feedback_left(&self) {
        self.held.set(false);
        self.changed.notify_all();
    }

    /// Marks a command as done.
    pub fn done(&self, place: usize, issued: &Issued) {
        self.busy[place].set(false);
        self.changed.notify_all();
        issued.ends();
    }

    /// Returns whether a handle's command is done. None for an invalid handle.
    pub fn is_done(&self, handle: u32) -> Option<bool> {
        self.busy.get(handle as usize).map(|busy| !busy.get())
    }

    /// Waits until a handle's command is done.
    pub async fn wait(&self, handle: u32) {
        self.changed.wait_until(|| self.is_done(handle).unwrap_or(true)).await;
    }
}

impl Issued {
    /// Returns the commands of a handler that has issued none.
    pub fn new(sim: &Sim) -> Issued {
        Issued { in_flight: Cell::new(0), arriving: RefCell::default(), changed: Signal::new(sim) }
    }

    /// Counts an operation for which the handler's feedback waits.
    pub fn begins(&self) {
        self.in_flight.set(self.in_flight.get() + 1);
    }

    /// Ends such an operation.
    pub fn ends(&self) {
        self.in_flight.set(self.in_flight.get() - 1);
        self.changed.notify_all();
    }

    /// Waits until all are done.
    pub(crate) async fn all_done(&self) {
        self.changed.wait_until(|| self.in_flight.get() == 0).await;
    }
}
