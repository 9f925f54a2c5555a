//! A log of lost packets: the number of packets for each cause, and the first and the last lost packets.

use super::{Cause, LostPacket, Place};
use crate::Packet;
use nicety_types::{NodeId, Time};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Maximum number of packets in each of a log's two lists of first losses. One list has packets lost by a failure, and
/// the other list has all other lost packets. Further packets are only counted.
const LOST_KEPT: usize = 100;
/// Maximum number of packets in a log's list of recent losses and damages.
const RECENT_KEPT: usize = 1000;

/// A test for packets with data that is never sent again.
pub(crate) type IsData = Rc<dyn Fn(&Packet) -> bool>;

/// Lost or damaged packets with data that is never sent again, between two nodes and for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostData {
    /// The first of these packets.
    pub first: LostPacket,
    /// The number of these packets.
    pub packets: u64,
}

/// Packets lost at one place.
#[derive(Default)]
pub(crate) struct Losses {
    /// The first lost packets. List 0 has packets lost by chance, by configuration or for lack of room. List 1 has
    /// packets lost by a failure.
    lost: [Vec<LostPacket>; 2],
    recent: VecDeque<LostPacket>,
    causes: Vec<(Place, Place, Cause, u64)>,
    /// Number of dropped packets, by the node that sent them.
    dropped: BTreeMap<NodeId, u64>,
    /// Lost data, by place and cause.
    data: Vec<LostData>,
    /// The test for data that is never sent again. Without a test, any packet that takes buffer space counts.
    is_data: Option<IsData>,
}

impl Losses {
    /// Sets the test for packets with data that is never sent again.
    pub(crate) fn set_data(&mut self, is_data: IsData) {
        self.is_data = Some(is_data);
    }

    /// Records a packet that was lost, or is about to be damaged.
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

    /// Returns the lost or damaged packets with data that is never sent again, by place and cause.
    pub(crate) fn data(&self) -> Vec<LostData> {
        self.data.clone()
    }

    /// Returns the first lost packets, without control packets.
    pub(crate) fn first(&self) -> Vec<LostPacket> {
        self.lost.concat()
    }

    /// Returns the last lost or damaged packets, including control packets.
    pub(crate) fn recent(&self) -> Vec<LostPacket> {
        self.recent.iter().copied().collect()
    }

    /// Number of packets from `source` that were dropped.
    pub(crate) fn dropped_from(&self, source: NodeId) -> u64 {
        self.dropped.get(&source).copied().unwrap_or_default()
    }

    /// Number of lost or damaged packets for each pair of nodes and cause.
    pub(crate) fn causes(&self) -> Vec<(Place, Place, Cause, u64)> {
        self.causes.clone()
    }
}

impl LostPacket {
    /// Returns the record of a packet lost at `time` between two nodes.
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
