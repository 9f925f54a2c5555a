//! The transmit path of a port.

use crate::ethernet::{LEAST, Pause};
use crate::link::Line;
use crate::meter::Meter;
use crate::protocol::Framing;
use crate::spec::LinkSpec;
use nicety_types::{Gap, NodeId, Stream, Time};
use std::cell::RefCell;

/// The transmit path of a port.
pub(crate) struct Transmit {
    pub(crate) spec: LinkSpec,
    /// The framing of sent packets and the framing of received packets.
    pub(crate) framing: [Framing; 2],
    /// The minimum size of a packet on the wire, in bytes.
    pub(crate) least: u64,
    pub(crate) link: RefCell<Stream>,
    pub(crate) outgoing: RefCell<Line>,
    pub(crate) meter: Meter,
}

impl Transmit {
    /// The time at which the link's serialiser is free again.
    pub(crate) fn free(&self) -> Time {
        self.link.borrow().free()
    }

    /// Time per byte on the wire.
    pub(crate) fn gap(&self) -> Gap {
        self.spec.gap
    }

    /// The node at the far end.
    pub(crate) fn to(&self) -> NodeId {
        self.outgoing.borrow().to()
    }

    /// Size on the wire, in bytes, of a sent packet with this payload.
    pub(crate) fn bytes(&self, payload: u64) -> u64 {
        self.framing[0].bytes(payload).max(self.least)
    }

    /// Size on the wire, in bytes, of a received packet with this payload.
    pub(crate) fn received(&self, payload: u64) -> u64 {
        self.framing[1].bytes(payload).max(self.least)
    }

    /// Counts a received packet of `bytes` bytes. `in_buffer` is the buffer's occupancy with this packet.
    pub(crate) fn meter(&self, bytes: u64, in_buffer: u32) {
        self.meter.received(bytes, in_buffer);
    }

    /// Sends a pause frame after the packet that is being sent.
    pub(crate) fn pause(&self, pause: Pause, now: Time) {
        let took = self.spec.gap.cover(LEAST);
        let start = self.link.borrow_mut().occupy(now, took);
        self.outgoing.borrow().pause(pause, start, took);
    }
}
