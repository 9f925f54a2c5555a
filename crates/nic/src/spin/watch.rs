//! A witness of what becomes of packets, told as it happens: for figures of runs too long to be recorded.

use super::Processors;
use nicety_types::{HandlerRun, MessageId, Time};
use std::rc::Rc;

/// Is told of packets and handlers of a card, in the order of time. What it does takes no time of the simulation.
pub trait Watch {
    /// A packet of this message, with so many bytes of payload, is whole in the packet buffer.
    fn arrived(&self, message: MessageId, bytes: u64, at: Time);

    /// A packet of this message has left, or leaves then, the packet buffer: deposited, handled or dropped.
    fn settled(&self, message: MessageId, at: Time);

    /// A handler has ended.
    fn ran(&self, run: &HandlerRun);
}

impl Processors {
    /// Has this told of packets and handlers from now on.
    ///
    /// # Panics
    /// When another one is told already.
    pub fn watched_by(&self, watch: Rc<dyn Watch>) {
        assert!(self.watch.set(watch).is_ok(), "a card has one watch");
    }

    /// A packet is whole in the packet buffer.
    pub(in crate::spin) fn note_arrived(&self, message: MessageId, offset: u64, bytes: u64) {
        let now = self.sim.now();
        self.recorder.packet_arrived(message, offset, now);
        self.watch_arrived(message, bytes);
    }

    /// The same, told to the witness alone.
    pub(crate) fn watch_arrived(&self, message: MessageId, bytes: u64) {
        if let Some(watch) = self.watch.get() {
            watch.arrived(message, bytes, self.sim.now());
        }
    }

    /// A packet has left the packet buffer at this time.
    pub(in crate::spin) fn note_settled(&self, message: MessageId, offset: u64, at: Time) {
        self.recorder.packet_settled(message, offset, at);
        self.watch_settled(message, at);
    }

    /// The same, told to the witness alone.
    pub(crate) fn watch_settled(&self, message: MessageId, at: Time) {
        if let Some(watch) = self.watch.get() {
            watch.settled(message, at);
        }
    }
}
