//! The rings of an AF_XDP socket.

use crate::net::loans::Loan;
use crate::waiters::Waiters;
use nicety_types::Buffer;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

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
    /// Frames that the program has, with their buffers.
    pub(super) taken: Cell<u64>,
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
            taken: Cell::new(0),
            readers: Waiters::default(),
        }
    }

    /// Takes a buffer from the fill ring. Returns whether there was one.
    pub(super) fn take_buffer(&self) -> bool {
        let left = self.fill.get();
        self.fill.set(left.saturating_sub(1));
        left > 0
    }

    /// Gives the buffers of the program's frames back, each to an empty place of the card's ring, or to the fill ring.
    pub(super) fn give_back(&self) {
        for _ in 0..self.taken.take() {
            let empty = self.empty.borrow_mut().pop_front();
            match empty {
                Some(place) => drop(place),
                None => self.fill.set(self.fill.get() + 1),
            }
        }
    }
}
