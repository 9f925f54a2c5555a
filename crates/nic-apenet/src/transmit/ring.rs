//! The transmit ring: descriptors in host memory between the driver and the card.

use crate::transmit::Job;
use crate::transmit::posted::Known;
use crate::wire::Kind;
use nicety_kernel::{Credits, Server, Signal, Sim};
use nicety_types::NodeId;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

/// The transmit ring.
pub(crate) struct Ring {
    /// Serialises the driver, which writes the descriptors of one message after another.
    pub(crate) writer: Server,
    /// Credits for free entries of the ring.
    pub(crate) free: Credits,
    /// Descriptors announced to the card, in order.
    pub(crate) announced: RefCell<VecDeque<Job>>,
    /// Number of descriptors that the card has fetched so far.
    pub(crate) fetched: Cell<u64>,
    pub(crate) rung: Signal,
    /// Operations with descriptors in the ring.
    pub(crate) known: Known,
    /// Maps a node and a kind to the number of puts or gets to this node so far.
    sequences: RefCell<BTreeMap<(NodeId, Kind), u32>>,
    /// Slots for fetched descriptors on the card.
    pub(crate) places: Credits,
}

impl Ring {
    pub(crate) fn new(sim: &Sim, entries: u64, fetch: u64) -> Ring {
        Ring {
            writer: Server::new(sim),
            free: Credits::new(sim, entries),
            announced: RefCell::default(),
            fetched: Cell::new(0),
            rung: Signal::new(sim),
            known: Known::new(entries),
            sequences: RefCell::default(),
            places: Credits::new(sim, fetch),
        }
    }

    /// Returns the sequence number of the next put or get to a node.
    pub(crate) fn next_sequence(&self, to: NodeId, kind: Kind) -> u32 {
        let mut sequences = self.sequences.borrow_mut();
        let next = sequences.entry((to, kind)).or_default();
        std::mem::replace(next, next.wrapping_add(1))
    }
}
