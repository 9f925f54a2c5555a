//! The rings of an AF_XDP socket.

use crate::net::loans::Loan;
use crate::waiters::Waiters;
use nicety_types::Buffer;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The options of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XskOptions {
    /// The receive queue.
    pub queue: usize,
    /// Buffers of its memory.
    pub buffers: u64,
    /// Whether the card's receive ring has buffers of this memory.
    pub zero_copy: bool,
}

/// A socket in an entry of a map.
pub(crate) struct Xsk {
    /// The map's number, and the key.
    pub(super) entry: (usize, u32),
    pub(super) options: XskOptions,
    /// Buffers in the fill ring.
    pub(super) fill: Cell<u64>,
    /// Places of the card's ring without a buffer.
    pub(super) empty: RefCell<VecDeque<Loan>>,
    pub(super) received: RefCell<VecDeque<Buffer>>,
    pub(super) readers: Waiters,
}

impl Xsk {
    /// A socket with buffers in its fill ring.
    pub(super) fn new(entry: (usize, u32), options: XskOptions, fill: u64) -> Xsk {
        Xsk {
            entry,
            options,
            fill: Cell::new(fill),
            empty: RefCell::default(),
            received: RefCell::default(),
            readers: Waiters::default(),
        }
    }

    /// Takes a buffer from the fill ring. Returns whether there was one.
    pub(super) fn take_buffer(&self) -> bool {
        let left = self.fill.get();
        self.fill.set(left.saturating_sub(1));
        left > 0
    }

    /// Gives buffers back, each to an empty place of the card's ring, or to the fill ring.
    fn give_back(&self, buffers: u64) {
        for _ in 0..buffers {
            let empty = self.empty.borrow_mut().pop_front();
            match empty {
                Some(place) => drop(place),
                None => self.fill.set(self.fill.get() + 1),
            }
        }
    }
}

/// The buffers that a thread of the host's program has, of the frames that it took last. They go back when the thread ends.
#[derive(Default)]
pub struct XskReader {
    taken: RefCell<Vec<(Rc<Xsk>, u64)>>,
}

impl XskReader {
    /// Notes the buffers of taken frames.
    pub(super) fn take(&self, socket: &Rc<Xsk>, buffers: u64) {
        self.taken.borrow_mut().push((socket.clone(), buffers));
    }

    /// Gives the buffers of a socket's frames back.
    pub(super) fn give_back(&self, socket: &Rc<Xsk>) {
        let own = |(other, _): &mut (Rc<Xsk>, u64)| Rc::ptr_eq(other, socket);
        let given: u64 = self.taken.borrow_mut().extract_if(.., own).map(|(_, buffers)| buffers).sum();
        socket.give_back(given);
    }
}

impl Drop for XskReader {
    fn drop(&mut self) {
        self.taken.take().into_iter().for_each(|(socket, buffers)| socket.give_back(buffers));
    }
}
