//! Serialisers of transmit rings. One thread at a time sends by a ring. This thread is the owner of the ring, and also
//! sends frames of other threads. It leaves the remaining frames to a thread of the kernel.

use crate::card::transmit::Finish;
use nicety_host::threads::{Placement, Thread, Threads};
use nicety_types::Path;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// The serialiser of a transmit ring.
pub(super) struct Serialiser {
    owned: Cell<bool>,
    waiting: RefCell<VecDeque<Waiting>>,
    worker: Thread,
}

/// A frame that waits for the ring's owner.
pub(super) struct Waiting {
    pub(super) frame: Vec<u8>,
    pub(super) finish: Finish,
    pub(super) path: Path,
}

/// The ownership of a ring. If frames are left when the owner ends its ownership, the kernel's thread sends them.
pub(super) struct Owner<'s>(&'s Serialiser);

impl Owner<'_> {
    /// Returns the kernel's thread, if frames are left that this thread will send.
    pub(super) fn successor(&self) -> Option<&Thread> {
        (!self.0.waiting.borrow().is_empty()).then_some(&self.0.worker)
    }
}

impl Drop for Owner<'_> {
    fn drop(&mut self) {
        match self.0.waiting.borrow().is_empty() {
            true => self.0.owned.set(false),
            false => self.0.worker.interrupt(),
        }
    }
}

impl Serialiser {
    pub(super) fn new(threads: &Threads) -> Serialiser {
        let worker = threads.thread(Placement::Anywhere);
        Serialiser { owned: Cell::new(false), waiting: RefCell::default(), worker }
    }

    /// Returns the kernel's thread.
    pub(super) fn worker(&self) -> &Thread {
        &self.worker
    }

    /// Makes the caller the owner, if the ring has none.
    pub(super) fn enter(&self) -> Option<Owner<'_>> {
        (!self.owned.replace(true)).then(|| Owner(self))
    }

    /// Leaves a frame to the ring's owner.
    pub(super) fn leave(&self, frame: &[u8], finish: Finish, path: &Path) {
        self.waiting.borrow_mut().push_back(Waiting { frame: frame.to_vec(), finish, path: path.clone() });
    }

    /// Ends the ownership of the kernel's thread.
    pub(super) fn release(&self) {
        self.owned.set(false);
    }

    /// Returns the next frame that the owner has to send.
    pub(super) fn next(&self) -> Option<Waiting> {
        self.waiting.borrow_mut().pop_front()
    }
}
