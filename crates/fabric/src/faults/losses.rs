//! A log of lost packets: how many for each cause, the first of them and the last.

use super::{Cause, LostPacket, Place};
use crate::Packet;
use nicety_types::{NodeId, Time};
use std::collections::{BTreeMap, VecDeque};

/// Most packets lost by chance or for want of room that a log keeps, and most that a failure lost; the others are counted.
const LOST_KEPT: usize = 100;
/// Most of the last packets lost or damaged that a log keeps.
const RECENT_KEPT: usize = 1000;

/// Packets that were lost in one place.
#[derive(Default)]
pub(crate) struct Losses {
    /// The first that were lost by chance, by name or for want of room, and the first that a failure lost.
    lost: [Vec<LostPacket>; 2],
    recent: VecDeque<LostPacket>,
    causes: Vec<(Place, Place, Cause, u64)>,
    /// Packets that found no room, by the node that sent them.
    dropped: BTreeMap<NodeId, u64>,
}

impl Losses {
    /// A packet was lost or damaged.
    pub(crate) fn note(&mut self, packet: LostPacket, is_control: bool) {
        let LostPacket { from, to, cause, source, .. } = packet;
        if cause.is_drop() {
            *self.dropped.entry(source).or_default() += 1;
        }
        match self.causes.iter_mut().find(|(a, b, known, _)| (*a, *b, *known) == (from, to, cause)) {
            Some((.., times)) => *times += 1,
            None => self.causes.push((from, to, cause, 1)),
        }
        let kept = &mut self.lost[usize::from(cause.is_failure())];
        if cause != Cause::Damaged && kept.len() < LOST_KEPT && !is_control {
            kept.push(packet);
        }
        if self.recent.len() == RECENT_KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(packet);
    }

    /// The first packets that were lost, control packets not among them.
    pub(crate) fn first(&self) -> Vec<LostPacket> {
        self.lost.concat()
    }

    /// The last packets that were lost or damaged, control packets among them.
    pub(crate) fn recent(&self) -> Vec<LostPacket> {
        self.recent.iter().copied().collect()
    }

    /// How many packets of a node found no room.
    pub(crate) fn dropped_from(&self, source: NodeId) -> u64 {
        self.dropped.get(&source).copied().unwrap_or_default()
    }

    /// How many packets were lost or damaged for each cause, and between which nodes.
    pub(crate) fn causes(&self) -> Vec<(Place, Place, Cause, u64)> {
        self.causes.clone()
    }
}

impl LostPacket {
    /// A packet that is lost at `time` on the way between two nodes.
    pub(crate) fn new(packet: &Packet, time: Time, (from, to): (Place, Place), cause: Cause) -> LostPacket {
        LostPacket {
            time,
            from,
            to,
            source: packet.label.message.source,
            destination: packet.label.destination,
            message: packet.label.message,
            offset: packet.label.offset,
            bytes: packet.payload.len(),
            cause,
        }
    }
}
