//! A log of lost packets: how many for each cause, the first of them and the last.

use super::{Cause, LostPacket, Place};
use crate::Packet;
use nicety_types::{NodeId, Time};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Most packets lost by chance or for want of room that a log keeps, and most that a failure lost; the others are counted.
const LOST_KEPT: usize = 100;
/// Most of the last packets lost or damaged that a log keeps.
const RECENT_KEPT: usize = 1000;

/// Whether a packet carries data that nothing sends again.
pub(crate) type IsData = Rc<dyn Fn(&Packet) -> bool>;

/// Packets with data that nothing sends again, lost or damaged between two nodes for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostData {
    /// The first of them, with place and cause.
    pub first: LostPacket,
    /// Their number.
    pub packets: u64,
}

/// Packets that were lost in one place.
#[derive(Default)]
pub(crate) struct Losses {
    /// The first that were lost by chance, by name or for want of room, and the first that a failure lost.
    lost: [Vec<LostPacket>; 2],
    recent: VecDeque<LostPacket>,
    causes: Vec<(Place, Place, Cause, u64)>,
    /// Packets that found no room, by the node that sent them.
    dropped: BTreeMap<NodeId, u64>,
    /// By cause.
    data: Vec<LostData>,
    /// Any packet that takes buffer space, where none is set.
    is_data: Option<IsData>,
}

impl Losses {
    /// Sets the test for packets with data that nothing sends again.
    pub(crate) fn set_data(&mut self, is_data: IsData) {
        self.is_data = Some(is_data);
    }

    /// A packet was lost, or is about to be damaged.
    pub(crate) fn note(&mut self, lost: LostPacket, packet: &Packet) {
        let LostPacket { from, to, cause, source, .. } = lost;
        let is_data = self.is_data.as_ref().map_or(!packet.is_control(), |is_data| is_data(packet));
        if is_data {
            let same = |data: &&mut LostData| {
                (data.first.from, data.first.to, data.first.cause) == (from, to, cause)
            };
            match self.data.iter_mut().find(same) {
                Some(data) => data.packets += 1,
                None => self.data.push(LostData { first: lost, packets: 1 }),
            }
        }
        if cause.is_drop() {
            *self.dropped.entry(source).or_default() += 1;
        }
        match self.causes.iter_mut().find(|(a, b, known, _)| (*a, *b, *known) == (from, to, cause)) {
            Some((.., times)) => *times += 1,
            None => self.causes.push((from, to, cause, 1)),
        }
        let kept = &mut self.lost[usize::from(cause.is_failure())];
        if cause != Cause::Damaged && kept.len() < LOST_KEPT && !packet.is_control() {
            kept.push(lost);
        }
        if self.recent.len() == RECENT_KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(lost);
    }

    /// Packets with data that nothing sends again.
    pub(crate) fn data(&self) -> Vec<LostData> {
        self.data.clone()
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
