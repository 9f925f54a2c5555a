//! The recording of a run: messages, packets, handler runs, and the use of resources.
//!
//! A [`Recording`] is built after a run from the records of each node. Its rows are sorted, so that they do not depend on the
//! distribution of nodes over shards.
//!
//! - [`tables`]: the rows as Arrow columns.
//! - [`timeline`]: the rows as a timeline for the Perfetto viewer.

mod lanes;
mod proto;
pub mod tables;
pub mod timeline;

pub use nicety_types::{HandlerRun, LeftOut, Level, Recorder, Resource, Stage, Starter};

use nicety_types::{
    Arrived, Duration, MessageId, MessageRows, NodeId, NodeRecords, PacketArrived, Path, Sent, Slice, Time,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::mem;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its sender and number. Commands of the host to its card are numbered as messages.
    pub id: MessageId,
    /// Its target.
    pub target: NodeId,
    /// Payload in bytes.
    pub bytes: u64,
    /// Its kind in the card's protocol, such as `put` or `ack`.
    pub kind: &'static str,
    /// Its origin.
    pub by: Starter,
    /// The time at which its sender began to post it.
    pub posted: Time,
    /// The time at which its first byte went on the link.
    pub first_byte: Option<Time>,
    /// The time at which its first packet was matched; for a message on a channel, the arrival of its mailbox at the other end.
    pub matched: Option<Time>,
    /// The time at which its completion was visible to its target host; none if it was dropped, or still in flight at the end.
    pub completed: Option<Time>,
    /// The time at which a program of that host noticed the completion.
    pub noticed: Option<Time>,
    /// Its outcome.
    pub outcome: &'static str,
    /// The stages from `posted` to `completed`; they add up exactly.
    pub stages: Option<Vec<(Stage, Duration)>>,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRow {
    /// Its message.
    pub message: MessageId,
    /// The offset of its payload in the message's, in bytes.
    pub offset: u64,
    /// Payload in bytes.
    pub bytes: u64,
    /// The time at which its first byte went on the link.
    pub sent: Time,
    /// The time at which its last byte was in its target's packet buffer.
    pub arrived: Option<Time>,
    /// The time at which the matching unit had processed it.
    pub matched: Option<Time>,
    /// The time at which it left the packet buffer: deposited, handled or dropped.
    pub settled: Option<Time>,
}

/// A use of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The node.
    pub node: NodeId,
    /// Index among several: the processor, port, core or transfer.
    pub unit: u32,
    /// The use.
    pub slice: Slice,
}

/// The recording of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Level of recording.
    pub level: Level,
    /// The possible stages of messages on the cards of the run, in their usual order.
    pub stages: Vec<Stage>,
    /// Rows of messages at each node, sorted; from [`Level::Messages`] on.
    rows: Vec<(NodeId, MessageRows)>,
    /// Packets, by source in the order of sending; from [`Level::Packets`] on.
    pub packets: Vec<PacketRow>,
    /// Handler runs, by node in the order of their ends; from [`Level::Packets`] on.
    pub handler_runs: Vec<(NodeId, HandlerRun)>,
    /// Uses of resources, by node, resource, unit and time; at [`Level::Everything`].
    pub resources: Vec<Usage>,
    /// Rows left out because a table was full.
    pub left_out: LeftOut,
}

/// A stage of many messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageTotal {
    /// The stage.
    pub stage: Stage,
    /// Messages with time in it.
    pub messages: u64,
    /// The sum of their times in it.
    pub total: Duration,
}

impl Recording {
    /// Joins the records of the nodes, in the order of their numbers. `stages` are those of the cards.
    pub(crate) fn of(level: Level, stages: Vec<Stage>, mut nodes: Vec<(NodeId, NodeRecords)>) -> Recording {
        let packets = packets(&mut nodes);
        let mut recording = Recording { level, stages, packets, ..Recording::default() };
        for (node, mut records) in nodes {
            recording.left_out.add(&records.left_out);
            records.messages.sort();
            recording.rows.push((node, records.messages));
            recording.handler_runs.extend(records.handler_runs.into_iter().map(|run| (node, run)));
            recording.resources.extend(usages(node, records.slices));
        }
        recording
    }

    /// Messages, by source and number; from [`Level::Messages`] on. The two ends of each are joined during the read.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        self.rows.iter().flat_map(|(_, rows)| rows.sent()).map(|sent| message(&sent, self.arrived(&sent)))
    }

    /// Number of messages.
    pub fn message_count(&self) -> usize {
        self.rows.iter().map(|(_, rows)| rows.sent_count()).sum()
    }

    /// Returns a message's row at its target, or at its source if it failed there.
    fn arrived(&self, sent: &Sent) -> Option<Arrived> {
        let mut ends = [sent.message.source, sent.target];
        ends.sort_unstable();
        ends.iter().rev().find_map(|end| {
            let at = self.rows.binary_search_by_key(end, |(node, _)| *node).ok()?;
            self.rows[at].1.arrived_of(sent.message)
        })
    }

    /// The stages of all completed messages, in their usual order, and the number of these messages.
    pub fn breakdown(&self) -> (u64, Vec<StageTotal>) {
        let mut totals: BTreeMap<Stage, StageTotal> = BTreeMap::new();
        let mut messages = 0;
        for stages in self.messages().filter_map(|message| message.stages) {
            messages += 1;
            for (stage, time) in stages {
                let none = StageTotal { stage, messages: 0, total: Duration::ZERO };
                let total = totals.entry(stage).or_insert(none);
                total.messages += 1;
                total.total += time;
            }
        }
        (messages, totals.into_values().collect())
    }
}

/// The name of time in a table of stages that belongs to no stage.
pub const NOT_ACCOUNTED_FOR: &str = "not accounted for";

fn message(sent: &Sent, arrived: Option<Arrived>) -> Message {
    let arrived = arrived.as_ref();
    let completed = arrived.and_then(|row| row.completed.as_ref());
    Message {
        id: sent.message,
        target: sent.target,
        bytes: sent.bytes,
        kind: sent.kind,
        by: sent.by,
        posted: sent.base.at(),
        first_byte: sent.first_byte,
        matched: arrived.and_then(|row| row.matched),
        completed: completed.map(Path::at),
        noticed: arrived.and_then(|row| row.noticed),
        outcome: arrived.map_or("in flight", |row| row.outcome),
        stages: completed.and_then(|path| Some(path.since(&sent.base)?.collect())),
    }
}

/// Takes both ends' rows of packets out of the records, and joins them. They are freed before other rows are copied.
fn packets(nodes: &mut [(NodeId, NodeRecords)]) -> Vec<PacketRow> {
    let arrived: Vec<Vec<PacketArrived>> =
        nodes.iter_mut().map(|(_, records)| mem::take(&mut records.packets_arrived)).collect();
    let mut ends: FxHashMap<(MessageId, u64), &PacketArrived> = FxHashMap::default();
    ends.reserve(arrived.iter().map(Vec::len).sum());
    // The last row of a packet counts, if it arrived several times.
    ends.extend(arrived.iter().flatten().map(|row| ((row.message, row.offset), row)));
    let mut packets = Vec::new();
    for (_, records) in nodes {
        packets.extend(mem::take(&mut records.packets_sent).into_iter().map(|sent| {
            let there = ends.get(&(sent.message, sent.offset));
            PacketRow {
                message: sent.message,
                offset: sent.offset,
                bytes: sent.bytes,
                sent: sent.sent,
                arrived: there.map(|row| row.arrived),
                matched: there.and_then(|row| row.matched),
                settled: there.and_then(|row| row.settled),
            }
        }));
    }
    packets
}

/// Sorts the uses of a node's resources, and numbers equal resources.
fn usages(node: NodeId, mut slices: Vec<Slice>) -> Vec<Usage> {
    slices.sort_by_key(|slice| (slice.resource, slice.start, Reverse(slice.end)));
    let mut usages = Vec::with_capacity(slices.len());
    for group in slices.chunk_by(|a, b| a.resource == b.resource) {
        let units = match group[0].resource.number() {
            Some(number) => vec![number; group.len()],
            None => lanes::assign(group),
        };
        usages.extend(group.iter().zip(units).map(|(&slice, unit)| Usage { node, unit, slice }));
    }
    // Stable: within a unit the order of time stays.
    usages.sort_by_key(|usage| (usage.slice.resource, usage.unit));
    usages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_of_equal_resources_are_told_apart() {
        let slice = |resource, start, end| Slice {
            resource,
            start: Time::from_ps(start),
            end: Time::from_ps(end),
            message: None,
            what: "",
        };
        let hpu = nicety_nic_processors::resources::HPU.numbered(3);
        let slices = vec![
            slice(hpu, 4, 5),
            slice(Resource::HOST_CPU, 5, 20),
            slice(Resource::HOST_CPU, 0, 10),
            slice(hpu, 0, 9),
            slice(Resource::HOST_CPU, 10, 12),
        ];
        let found: Vec<_> = usages(NodeId(1), slices)
            .iter()
            .map(|u| (u.slice.resource, u.unit, u.slice.start.ps(), u.slice.end.ps()))
            .collect();
        let cpu = Resource::HOST_CPU;
        assert_eq!(
            found,
            [(cpu, 0, 0, 10), (cpu, 0, 10, 12), (cpu, 1, 5, 20), (hpu, 3, 0, 9), (hpu, 3, 4, 5)]
        );
    }
}
