//! An observer of packets and handlers during a run, for statistics of runs that are too long to record.

use crate::Processors;
use nicety_types::{HandlerRun, MessageId, Time};
use std::rc::Rc;

/// Receives the packets and handlers of a card in the order of time. It takes no simulated time.
pub trait Watch {
    /// Reports that a packet of `message` with `bytes` bytes of payload is whole in the packet buffer.
    fn arrived(&self, message: MessageId, bytes: u64, at: Time);

    /// Reports that a packet of `message` leaves the packet buffer at time `at`: deposited, handled or dropped.
    fn settled(&self, message: MessageId, at: Time);

    /// Reports the end of a handler.
    fn ran(&self, run: &HandlerRun);
}

impl Processors {
    /// Reports packets and handlers to `watch` from now on.
    ///
    /// # Panics
    /// When the card already has a watch.
    pub fn watched_by(&self, watch: Rc<dyn Watch>) {
        assert!(self.watch.set(watch).is_ok(), "a card has one watch");
    }

    /// Records the arrival of a whole packet in the packet buffer.
    pub fn note_arrived(&self, message: MessageId, offset: u64, bytes: u64) {
        let now = self.sim.now();
        self.recorder.packet_arrived(message, offset, now);
        self.watch_arrived(message, bytes);
    }

    /// Reports the arrival to the watch alone.
    pub fn watch_arrived(&self, message: MessageId, bytes: u64) {
        if let Some(watch) = self.watch.get() {
            watch.arrived(message, bytes, self.sim.now());
        }
    }

    /// Records that a packet leaves the packet buffer at this time.
    pub fn note_settled(&self, message: MessageId, offset: u64, at: Time) {
        self.recorder.packet_settled(message, offset, at);
        self.watch_settled(message, at);
    }

    /// Reports that to the watch alone.
    pub fn watch_settled(&self, message: MessageId, at: Time) {
        if let Some(watch) = self.watch.get() {
            watch.settled(message, at);
        }
    }
}
