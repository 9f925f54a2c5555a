//! A generator of frames: a card without a host. It sends frames as fast as its link allows, and drops received frames.

use crate::card::Card;
use crate::wire;
use nicety_nic_core::parts::{DueTime, Offered, Pace};
use nicety_types::{NodeId, Starter};
use std::cell::Cell;
use std::rc::Rc;

impl Card {
    /// Sends frames to a station. A frame is sent when it is due, or as soon after that as the receiver permits. `next`
    /// writes a frame and returns its due time, or `None` at the end. The frame's Ethernet addresses become those of
    /// this station and of the receiver. Nothing is sent once `over` is true. From this call on, the card drops every
    /// received frame.
    ///
    /// # Panics
    /// When a frame is too short for its addresses.
    pub(super) async fn offer(
        self: &Rc<Card>,
        target: NodeId,
        mut next: impl FnMut(&mut Vec<u8>) -> Option<DueTime>,
        over: &Cell<bool>,
    ) -> Offered {
        self.discards.set(true);
        let mut pace = Pace::from(self.sim.now());
        let mut frame = Vec::new();
        while let Some(due) = next(&mut frame) {
            assert!(frame.len() >= 12, "a frame of {} bytes", frame.len());
            frame[..6].copy_from_slice(&wire::station(target));
            frame[6..12].copy_from_slice(&wire::station(self.node));
            self.sim.until(pace.next(due)).await;
            if over.get() {
                break;
            }
            let payload = crate::card::transmit::whole(&frame);
            let (bytes, interval) = (payload.len(), self.port.serialisation(payload.len()));
            let message = self.next_message();
            let path = self.recorder.path(self.sim.now());
            self.recorder.sent(message, target, bytes, "frame", Starter::Card, &path);
            let began = self.start_on_wire(target, message, payload, path).await;
            pace.sent(began, interval, bytes);
        }
        pace.end()
    }
}
