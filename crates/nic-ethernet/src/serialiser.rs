//! Serialisers of transmit rings: one thread at a time sends by a ring. It is the owner of the ring, and sends frames of
//! others. It hands the rest to a thread of the kernel.

use super::net::Net;
use super::transmit::Finish;
use nicety_host::threads::{Placement, Thread, Threads};
use nicety_types::Path;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The serialiser of a transmit ring.
pub(super) struct Serialiser {
    owned: Cell<bool>,
    waiting: RefCell<VecDeque<Waiting>>,
    worker: Thread,
}

/// A frame that waits for the ring's owner.
struct Waiting {
    frame: Vec<u8>,
    finish: Finish,
    path: Path,
}

/// The ownership of a ring. An owner that goes with frames left makes the kernel's thread send them.
struct Owner<'s>(&'s Serialiser);

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
}

impl Net {
    /// Sends a frame, or leaves it to the owner of its ring.
    pub(super) async fn send(self: &Rc<Net>, thread: &Thread, frame: &[u8], finish: Finish, path: &mut Path) {
        let number = self.card.transmit_ring(frame);
        let Some(serialiser) = self.serialisers.get(number) else {
            return self.send_by(number, thread, frame, finish, path).await;
        };
        if serialiser.owned.replace(true) {
            let waiting = Waiting { frame: frame.to_vec(), finish, path: path.clone() };
            serialiser.waiting.borrow_mut().push_back(waiting);
            return;
        }
        let owner = Owner(serialiser);
        self.send_by(number, thread, frame, finish, path).await;
        for _ in 1..self.spec.driver.serial {
            let Some(mut next) = owner.0.next() else { break };
            self.send_by(number, thread, &next.frame, next.finish, &mut next.path).await;
        }
        if !owner.0.waiting.borrow().is_empty() {
            thread.wake(&owner.0.worker, &mut path.clone()).await;
        }
    }

    /// The kernel's thread of a serialiser: sends all waiting frames.
    pub(super) async fn serve_serialiser(self: Rc<Net>, number: usize) {
        let serialiser = &self.serialisers[number];
        loop {
            serialiser.worker.sleep().await;
            while let Some(mut next) = serialiser.next() {
                self.send_by(number, &serialiser.worker, &next.frame, next.finish, &mut next.path).await;
            }
            serialiser.owned.set(false);
        }
    }
}

impl Serialiser {
    fn next(&self) -> Option<Waiting> {
        self.waiting.borrow_mut().pop_front()
    }
}
