//! Bytes that are held back from a reader until there are enough, or until the peer has pushed them. One wake-up of a
//! reader then serves several frames.

use crate::net::{Connection, Net};
use crate::stages;
use nicety_host::threads::Thread;
use nicety_stack::Arrival;
use nicety_types::{Path, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// The bytes that a connection holds back from its reader.
#[derive(Default)]
pub(crate) struct Held {
    bytes: Cell<usize>,
    /// The deadline for the notification of a reader.
    until: Cell<Option<Time>>,
}

/// Connections that hold back bytes, in the order of their deadlines.
#[derive(Default)]
pub(crate) struct Holding(RefCell<VecDeque<(Time, Weak<Connection>)>>);

impl Held {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Releases all held bytes.
    pub(crate) fn release(&self) {
        self.bytes.set(0);
        self.until.set(None);
    }
}

impl Holding {
    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Time> {
        self.0.borrow().front().map(|(until, _)| *until)
    }
}

impl Net {
    /// Handles a frame with bytes for a reader. Returns whether the reader must be notified of the bytes.
    pub(crate) fn is_told(&self, connection: &Rc<Connection>, arrival: &Arrival, pushed: bool) -> bool {
        let (sockets, held) = (&self.spec.sockets, &connection.held);
        let bytes = held.bytes.get() + arrival.readable;
        // A frame that fills a gap releases later frames, and one of them may have been pushed.
        let filled = arrival.readable > arrival.payload;
        let many = |part| bytes as u64 >= sockets.receive_buffer / part;
        if pushed || filled || sockets.push == 0 || many(sockets.push) {
            held.release();
            return true;
        }
        held.bytes.set(bytes);
        if held.until.get().is_none() {
            let until = self.sim.now() + sockets.push_time;
            held.until.set(Some(until));
            self.holding.0.borrow_mut().push_back((until, Rc::downgrade(connection)));
        }
        false
    }

    /// Records that readers may read the held bytes. Returns the threads to wake.
    pub(crate) fn told(&self, connection: &Connection, path: &Path) -> Vec<Thread> {
        connection.path.replace(path.clone());
        let mut threads = connection.readers.all();
        threads.extend(self.came_for(&connection.watched));
        threads
    }

    /// Notifies readers of bytes past their deadline.
    pub(crate) async fn tell_late(&self, thread: &Thread) {
        let now = self.sim.now();
        while self.holding.next().is_some_and(|until| until <= now) {
            let first = self.holding.0.borrow_mut().pop_front();
            let Some((until, connection)) = first else { return };
            let Some(connection) = connection.upgrade() else { continue };
            if connection.held.until.get() == Some(until) {
                connection.held.release();
                let mut path = connection.path.borrow().clone();
                path.advance(stages::PUSH_TIMER, self.sim.now());
                let woken = self.told(&connection, &path);
                self.wake(thread, woken, &path).await;
            }
        }
    }
}
