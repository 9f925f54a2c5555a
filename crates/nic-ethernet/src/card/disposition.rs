//! Disposition of testers' frames at a card, and their latency.

use crate::card::Card;
use nicety_types::{Histogram, NodeId, Time};
use std::cell::RefCell;

/// Disposition of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    Host,
    /// The host had no buffer for the frame, or no buffer of sufficient length.
    NoRoom,
    Wire,
    /// Sent to an address without a station.
    UnknownDestination,
    Dropped,
    Failed,
    Damaged,
}

/// Frames of a tester at the card that it sends to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameDispositions {
    /// Frames that arrived and have left the card's buffer.
    pub handled: u64,
    /// Of these, frames for the host: those without a handler, and those that handlers sent there.
    pub to_host: u64,
    /// Of those for the host, frames without a buffer.
    pub dropped_at_host: u64,
    /// Frames that handlers sent on the wire.
    pub to_wire: u64,
    /// Of these, frames to addresses without a station.
    pub unknown_destination: u64,
    /// Frames that handlers dropped.
    pub dropped_by_handler: u64,
    /// Frames with failed handlers.
    pub failed: u64,
    /// Frames with a wrong check sequence.
    pub damaged: u64,
    /// Time from the arrival of each frame's last byte in the card's buffer until the frame left it, in picoseconds.
    pub latency: Histogram,
}

/// The watched testers.
#[derive(Default)]
pub(crate) struct Testers(RefCell<Vec<Tester>>);

struct Tester {
    node: NodeId,
    /// Whether the tester takes all frames on its wire, for any address.
    takes_all: bool,
    dispositions: FrameDispositions,
}

impl Testers {
    /// Counts the frames of a node from now on.
    pub(crate) fn watch(&self, node: NodeId, takes_all: bool) {
        self.0.borrow_mut().push(Tester { node, takes_all, dispositions: FrameDispositions::default() });
    }

    pub(crate) fn dispositions(&self, node: NodeId) -> Option<FrameDispositions> {
        self.0.borrow().iter().find(|tester| tester.node == node).map(|tester| tester.dispositions.clone())
    }

    pub(crate) fn takes_all(&self, node: NodeId) -> bool {
        self.0.borrow().iter().any(|tester| tester.node == node && tester.takes_all)
    }

    fn count(&self, source: NodeId, change: impl FnOnce(&mut FrameDispositions)) {
        let mut testers = self.0.borrow_mut();
        if let Some(tester) = testers.iter_mut().find(|tester| tester.node == source) {
            change(&mut tester.dispositions);
        }
    }
}

impl Card {
    /// Counts `frames` frames of a node with this disposition.
    pub(crate) fn count_frames(&self, source: NodeId, disposition: Disposition, frames: u64) {
        self.testers.count(source, |dispositions| match disposition {
            Disposition::Host => dispositions.to_host += frames,
            Disposition::NoRoom => {
                dispositions.to_host += frames;
                dispositions.dropped_at_host += frames;
            }
            Disposition::Wire => dispositions.to_wire += frames,
            Disposition::UnknownDestination => dispositions.unknown_destination += frames,
            Disposition::Dropped => dispositions.dropped_by_handler += frames,
            Disposition::Failed => dispositions.failed += frames,
            Disposition::Damaged => dispositions.damaged += frames,
        });
    }

    /// Counts a frame that has left the card's buffer. The frame's last byte arrived at `came`.
    pub(crate) fn settle(&self, source: NodeId, came: Time) {
        let now = self.sim.now();
        self.testers.count(source, |dispositions| {
            dispositions.handled += 1;
            dispositions.latency.add(now.saturating_since(came).ps());
        });
    }
}
