//! The recording of a run: messages, packets, handler runs, and the use of resources.
//!
//! A [`Recording`] is built after a run from the records of all nodes. Its rows are sorted. Therefore they do not depend on the
//! distribution of nodes over shards.
//!
//! - [`tables`]: the rows in Arrow columns.
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
    /// The message's source, and its number at the source. Commands of a host to its card have such numbers, too.
    pub id: MessageId,
    /// The node that receives the message.
    pub target: NodeId,
    /// Payload in bytes.
    pub bytes: u64,
    /// The kind of message in the card's protocol, such as `put` or `ack`.
    pub kind: &'static str,
    /// The origin of the message: a program on the host, a handler, a process, or the card.
    pub by: Starter,
    /// The virtual time at which the sender began to post the message.
    pub posted: Time,
    /// The virtual time of the message's first byte on the link.
    pub first_byte: Option<Time>,
    /// The virtual time at which the first packet was matched. For a message on a channel, it is the arrival of the message's
    /// mailbox at the other end.
    pub matched: Option<Time>,
    /// The virtual time from which the target host could see the completion. `None` if the message was dropped, or was
    /// in flight when the run ended.
    pub completed: Option<Time>,
    /// The virtual time at which a program of the target host noticed the completion.
    pub noticed: Option<Time>,
    /// The outcome of the message.
    pub outcome: &'static str,
    /// The stages from `posted` to `completed`, with their times. The sum of these times is exactly the time from
    /// `posted` to `completed`.
    pub stages: Option<Vec<(Stage, Duration)>>,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRow {
    /// The message to which the packet belongs.
    pub message: MessageId,
    /// The offset of the packet's payload in the payload of the message, in bytes.
    pub offset: u64,
    /// Payload in bytes.
    pub bytes: u64,
    /// The virtual time of the packet's first byte on the link.
    pub sent: Time,
    /// The virtual time of the packet's last byte in the target's packet buffer.
    pub arrived: Option<Time>,
    /// The virtual time at which the matching unit had processed the packet.
    pub matched: Option<Time>,
    /// The virtual time at which the packet left the packet buffer, because it was deposited, handled or dropped.
    pub settled: Option<Time>,
}

/// A use of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The node.
    pub node: NodeId,
    /// The number of the unit among equal units, such as processors, ports, cores or concurrent transfers.
    pub unit: u32,
    /// The use.
    pub slice: Slice,
}

/// The recording of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Level of recording.
    pub level: Level,
    /// The stages that messages may have on the cards of the run, in the order of a message's path.
    pub stages: Vec<Stage>,
    /// The rows of messages at each node, sorted. They are recorded from [`Level::Messages`] on.
    rows: Vec<(NodeId, MessageRows)>,
    /// Packets by source, in the order of sending. Recorded from [`Level::Packets`] on.
    pub packets: Vec<PacketRow>,
    /// Handler runs by node, in the order of their ends. Recorded from [`Level::Packets`] on.
    pub handler_runs: Vec<(NodeId, HandlerRun)>,
    /// Uses of resources, by node, resource, unit and time. Recorded at [`Level::Everything`].
    pub resources: Vec<Usage>,
    /// The numbers of rows that were left out because a table was full.
    pub left_out: LeftOut,
}

/// The total time of one stage over many messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageTotal {
    /// The stage.
    pub stage: Stage,
    /// The number of messages that have this stage.
    pub messages: u64,
    /// The sum of the times that these messages spent in the stage.
    pub total: Duration,
}

impl Recording {
    /// Joins the records of all nodes, in the order of the nodes' numbers. `stages` are the stages of the cards.
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

    /// Returns the messages, sorted by source and number. They are recorded from [`Level::Messages`] on. The iterator
    /// joins the source's row and the target's row of each message.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        self.rows.iter().flat_map(|(_, rows)| rows.sent()).map(|sent| message(&sent, self.arrived(&sent)))
    }

    /// Returns the number of messages.
    pub fn message_count(&self) -> usize {
        self.rows.iter().map(|(_, rows)| rows.sent_count()).sum()
    }

    /// Returns the target's row of a message. For a message that failed at its source, returns the source's row.
    fn arrived(&self, sent: &Sent) -> Option<Arrived> {
        let mut ends = [sent.message.source, sent.target];
        ends.sort_unstable();
        ends.iter().rev().find_map(|end| {
            let at = self.rows.binary_search_by_key(end, |(node, _)| *node).ok()?;
            self.rows[at].1.arrived_of(sent.message)
        })
    }

    /// Returns the number of completed messages, and the sums of their stages, in the order of a message's path.
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

/// The name of a row in a table of stages: the time that belongs to no stage.
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

/// Removes the packets from the records, and joins each packet's rows of source and target. This frees the rows' memory
/// before other rows are copied.
fn packets(nodes: &mut [(NodeId, NodeRecords)]) -> Vec<PacketRow> {
    let arrived: Vec<Vec<PacketArrived>> =
        nodes.iter_mut().map(|(_, records)| mem::take(&mut records.packets_arrived)).collect();
    let mut ends: FxHashMap<(MessageId, u64), &PacketArrived> = FxHashMap::default();
    ends.reserve(arrived.iter().map(Vec::len).sum());
    // If a packet arrived several times, its last row is used.
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

/// Sorts the uses of a node's resources, and numbers the units of each resource.
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
    // The sort is stable, so the uses of a unit stay in the order of time.
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
