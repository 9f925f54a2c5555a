//! Keeps a host's calls to its card in order. Each call occupies a CPU for a time, so a later call on another CPU could
//! be ready first.

use nicety_kernel::{Signal, Sim};
use nicety_types::{Path, Stage};
use std::cell::{Cell, RefCell};

/// The calls in progress. Calls of one lane keep their order.
pub(crate) struct InOrder {
    /// The number of each call, and its lane.
    posting: RefCell<Vec<(u64, u32)>>,
    calls: Cell<u64>,
    posted: Signal,
    sim: Sim,
}

/// A call in progress. A drop of this value ends the call.
pub(crate) struct Posting<'o> {
    all: &'o InOrder,
    number: u64,
    lane: u32,
}

impl InOrder {
    pub(crate) fn new(sim: &Sim) -> InOrder {
        InOrder {
            posting: RefCell::default(),
            calls: Cell::new(0),
            posted: Signal::new(sim),
            sim: sim.clone(),
        }
    }

    /// Starts a call.
    pub(crate) fn begin(&self, lane: u32) -> Posting<'_> {
        let number = self.calls.replace(self.calls.get() + 1);
        self.posting.borrow_mut().push((number, lane));
        Posting { all: self, number, lane }
    }
}

impl Posting<'_> {
    /// Waits, after a CPU has posted the call, until earlier calls of its lane have been posted, too.
    pub(crate) async fn turn(&self, path: &mut Path) {
        let InOrder { posting, posted, sim, .. } = self.all;
        let before = |&(number, lane): &(u64, u32)| lane == self.lane && number < self.number;
        posted.wait_until(|| !posting.borrow().iter().any(before)).await;
        path.advance(Stage::CPU_QUEUED, sim.now());
    }
}

impl Drop for Posting<'_> {
    fn drop(&mut self) {
        self.all.posting.borrow_mut().retain(|&(number, _)| number != self.number);
        self.all.posted.notify_all();
    }
}
