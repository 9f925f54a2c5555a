//! [`Recorder`]: the writer of rows.

use super::{HandlerRun, Level, NodeRecords, PacketArrived, PacketSent, Resource, Slice, Starter};
use crate::{Duration, MessageId, NodeId, Path, Stage, Time};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

#[derive(Default)]
struct Tables {
    rows: usize,
    records: NodeRecords,
    /// Maps an arrived message to the position of its row, until a program notices the message's completion.
    arriving: FxHashMap<MessageId, usize>,
    /// Maps a packet in the packet buffer to the position of its row. The key is its message and its offset in bytes.
    buffered: FxHashMap<(MessageId, u64), usize>,
    /// Maps a sent message to the position of its row, until the message's first byte leaves.
    leaving: FxHashMap<MessageId, usize>,
}

impl Tables {
    /// Whether a message is recorded. Sender and receiver decide alike, by the message's sequence number.
    fn keeps(&self, message: MessageId) -> bool {
        message.sequence < self.rows as u64
    }
}

/// Adds a row and returns its position if the table has room. Otherwise counts the row in `left_out`.
fn push<R>(table: &mut Vec<R>, rows: usize, left_out: &mut u64, row: R) -> Option<usize> {
    if table.len() < rows {
        table.push(row);
        Some(table.len() - 1)
    } else {
        *left_out += 1;
        None
    }
}

/// A writer of a node's rows. Clones write to the same tables. At [`Level::Summary`] a recorder keeps nothing, and a
/// call costs only a branch.
#[derive(Clone)]
pub struct Recorder {
    level: Level,
    tables: Option<Rc<RefCell<Tables>>>,
}

impl Recorder {
    /// Returns a recorder that keeps nothing.
    pub const fn off() -> Recorder {
        Recorder { level: Level::Summary, tables: None }
    }

    /// Returns a recorder that keeps up to `rows` rows in each table, and only counts later rows.
    pub fn new(level: Level, rows: usize) -> Recorder {
        match level {
            Level::Summary => Recorder::off(),
            _ => {
                Recorder { level, tables: Some(Rc::new(RefCell::new(Tables { rows, ..Tables::default() }))) }
            }
        }
    }

    /// Whether the recorder keeps rows of this level.
    #[inline]
    pub fn keeps(&self, level: Level) -> bool {
        self.level >= level
    }

    /// Begins a path that only a recording reads. The path is a clock if the recorder keeps no messages.
    #[inline]
    pub fn path(&self, origin: Time) -> Path {
        if self.keeps(Level::Messages) { Path::from(origin) } else { Path::clock(origin) }
    }

    #[inline]
    fn at(&self, level: Level, act: impl FnOnce(&mut Tables)) {
        if self.level >= level
            && let Some(tables) = &self.tables
        {
            act(&mut tables.borrow_mut());
        }
    }

    /// Records that this node begins to send a message.
    #[inline]
    pub fn sent(
        &self,
        message: MessageId,
        target: NodeId,
        bytes: u64,
        kind: &'static str,
        by: Starter,
        base: &Path,
    ) {
        self.at(Level::Messages, |tables| {
            if tables.keeps(message) {
                let row = tables.records.messages.send(message, target, bytes, kind, by, base);
                tables.leaving.insert(message, row);
            } else {
                tables.records.left_out.messages += 1;
            }
        });
    }

    /// Records that a packet of this node begins to go on the link at `sent`.
    #[inline]
    pub fn packet_sent(&self, message: MessageId, offset: u64, bytes: u64, sent: Time) {
        self.at(Level::Messages, |tables| {
            if offset == 0
                && let Some(row) = tables.leaving.remove(&message)
            {
                tables.records.messages.left(row, sent);
            }
        });
        self.at(Level::Packets, |tables| {
            let Tables { rows, records, .. } = tables;
            let row = PacketSent { message, offset, bytes, sent };
            push(&mut records.packets_sent, *rows, &mut records.left_out.packets, row);
        });
    }

    /// Records that a packet is whole in this node's packet buffer.
    #[inline]
    pub fn packet_arrived(&self, message: MessageId, offset: u64, arrived: Time) {
        self.at(Level::Packets, |tables| {
            let Tables { rows, records, buffered, .. } = tables;
            let row = PacketArrived { message, offset, arrived, matched: None, settled: None };
            let kept = push(&mut records.packets_arrived, *rows, &mut records.left_out.packets, row);
            if let Some(row) = kept {
                buffered.insert((message, offset), row);
            }
        });
    }

    /// Records that the matching unit has finished a packet.
    #[inline]
    pub fn packet_matched(&self, message: MessageId, offset: u64, at: Time) {
        self.at(Level::Packets, |tables| {
            if let Some(&row) = tables.buffered.get(&(message, offset)) {
                tables.records.packets_arrived[row].matched = Some(at);
            }
        });
    }

    /// Records that a packet has left the packet buffer.
    #[inline]
    pub fn packet_settled(&self, message: MessageId, offset: u64, at: Time) {
        self.at(Level::Packets, |tables| {
            if let Some(row) = tables.buffered.remove(&(message, offset)) {
                tables.records.packets_arrived[row].settled = Some(at);
            }
        });
    }

    /// Records that the matching unit has finished a message's first packet. `outcome` is the result known at this time.
    #[inline]
    pub fn message_matched(&self, message: MessageId, at: Time, outcome: &'static str) {
        self.at(Level::Messages, |tables| {
            if tables.keeps(message) {
                let row = tables.records.messages.arrive(message, Some(at), outcome);
                tables.arriving.insert(message, row);
            }
        });
    }

    /// Records that a message has failed. `outcome` names the kind of failure.
    #[inline]
    pub fn message_failed(&self, message: MessageId, outcome: &'static str) {
        self.at(Level::Messages, |tables| {
            if let Some(row) = tables.arriving.remove(&message) {
                tables.records.messages.end(row, None, outcome);
            } else if tables.keeps(message) {
                tables.records.messages.arrive(message, None, outcome);
            }
        });
    }

    /// Records that a message is complete, and visible to the host at the end of `path`.
    #[inline]
    pub fn message_completed(&self, message: MessageId, path: &Path, outcome: &'static str) {
        self.at(Level::Messages, |tables| {
            if let Some(&row) = tables.arriving.get(&message) {
                tables.records.messages.end(row, Some(path), outcome);
            }
        });
    }

    /// Records that a program has noticed a message's completion. Only the first call counts.
    #[inline]
    pub fn message_noticed(&self, message: MessageId, at: Time) {
        self.at(Level::Messages, |tables| {
            if let Some(row) = tables.arriving.remove(&message) {
                tables.records.messages.notice(row, at);
            }
        });
    }

    /// Records a handler run.
    #[inline]
    pub fn handler_run(&self, run: HandlerRun) {
        self.at(Level::Packets, |tables| {
            let Tables { rows, records, .. } = tables;
            push(&mut records.handler_runs, *rows, &mut records.left_out.handler_runs, run);
        });
    }

    /// Records a past, present or future use of a resource from `start` to `end`.
    #[inline]
    pub fn slice(
        &self,
        resource: Resource,
        start: Time,
        end: Time,
        message: Option<MessageId>,
        what: &'static str,
    ) {
        self.at(Level::Everything, |tables| {
            debug_assert!(start <= end, "{} is used for {what} from {start} to {end}", resource.name());
            let Tables { rows, records, .. } = tables;
            let row = Slice { resource, start, end, message, what };
            push(&mut records.slices, *rows, &mut records.left_out.slices, row);
        });
    }

    /// Takes the rows, and leaves the tables empty.
    pub fn take(&self) -> NodeRecords {
        match &self.tables {
            None => NodeRecords::default(),
            Some(tables) => {
                let mut tables = tables.borrow_mut();
                let rows = tables.rows;
                std::mem::replace(&mut *tables, Tables { rows, ..Tables::default() }).records
            }
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({})", self.level)
    }
}

/// A recorder of the claims of an occupancy.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    recorder: Recorder,
    resource: Resource,
}

impl Probe {
    /// Returns `None` if the recorder keeps no uses of resources. A claim then costs only a branch.
    pub(crate) fn new(recorder: &Recorder, resource: Resource) -> Option<Probe> {
        recorder.keeps(Level::Everything).then(|| Probe { recorder: recorder.clone(), resource })
    }

    pub(crate) fn claimed(&self, message: MessageId, start: Time, duration: Duration, stage: Stage) {
        // A command belongs to no message.
        let message = (message.sequence != u64::MAX).then_some(message);
        self.recorder.slice(self.resource, start, start + duration, message, stage.name());
    }
}

#[cfg(test)]
mod tests {
    use super::super::LeftOut;
    use super::*;

    fn message(sequence: u64) -> MessageId {
        MessageId { source: NodeId(3), sequence }
    }

    fn t(ps: u64) -> Time {
        Time::from_ps(ps)
    }

    fn send(recorder: &Recorder, sequence: u64) {
        let path = Path::from(t(1));
        recorder.sent(message(sequence), NodeId(1), 8, "put", Starter::Host, &path);
    }

    #[test]
    fn levels_are_ordered_and_have_names() {
        assert!(Level::ALL.is_sorted());
        for level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
        let error = "all".parse::<Level>().unwrap_err();
        assert_eq!(error, "no recording level 'all'; the levels are summary, messages, packets, everything");
    }

    #[test]
    fn a_level_keeps_what_those_before_it_keep() {
        let mut kept = Vec::new();
        for level in Level::ALL {
            let recorder = Recorder::new(level, 10);
            send(&recorder, 0);
            recorder.packet_sent(message(0), 0, 8, t(2));
            recorder.packet_arrived(message(0), 0, t(3));
            recorder.message_matched(message(0), t(4), "matched");
            recorder.slice(Resource::LINK, t(2), t(3), None, "link");
            let r = recorder.take();
            kept.push([
                r.messages.sent().len(),
                r.messages.arrived().len(),
                r.packets_sent.len(),
                r.packets_arrived.len(),
                r.slices.len(),
            ]);
        }
        assert_eq!(kept, [[0; 5], [1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [1; 5]]);
    }

    #[test]
    fn rows_are_completed_as_things_happen() {
        let recorder = Recorder::new(Level::Packets, 10);
        send(&recorder, 0);
        recorder.packet_sent(message(0), 0, 8, t(2));
        recorder.packet_sent(message(0), 8, 8, t(3));
        recorder.message_matched(message(0), t(4), "matched");
        recorder.packet_arrived(message(0), 8, t(4));
        recorder.packet_matched(message(0), 8, t(5));
        recorder.packet_settled(message(0), 8, t(6));
        let mut path = Path::from(t(1));
        path.advance(Stage::DEPOSIT, t(9));
        recorder.message_completed(message(0), &path, "ok");
        recorder.message_noticed(message(0), t(11));
        recorder.message_noticed(message(0), t(12));
        let records = recorder.take();
        assert_eq!(records.messages.sent().next().unwrap().first_byte, Some(t(2)));
        let arrived = PacketArrived {
            message: message(0),
            offset: 8,
            arrived: t(4),
            matched: Some(t(5)),
            settled: Some(t(6)),
        };
        assert_eq!(records.packets_arrived, [arrived]);
        let row = records.messages.arrived().next().unwrap();
        assert_eq!((row.completed, row.noticed, row.outcome), (Some(path), Some(t(11)), "ok"));
        assert_eq!(recorder.take(), NodeRecords::default());
    }

    #[test]
    fn tables_end_and_count_what_they_leave_out() {
        let recorder = Recorder::new(Level::Everything, 2);
        for n in 0..5 {
            send(&recorder, n);
            recorder.message_matched(message(n), t(n), "matched");
            recorder.packet_sent(message(n), 0, 8, t(n));
            recorder.packet_arrived(message(n), 0, t(n));
            recorder.slice(Resource::BUS_TO_HOST, t(n), t(n), Some(message(n)), "match");
        }
        // This message's number is beyond the table, so the receiver has no row for it. The sending node counts it as
        // left out.
        recorder.message_completed(message(4), &Path::from(t(1)), "ok");
        let records = recorder.take();
        let messages = &records.messages;
        let lengths = [
            messages.sent().len(),
            messages.arrived().len(),
            records.packets_sent.len(),
            records.slices.len(),
        ];
        assert_eq!(lengths, [2; 4]);
        let left_out = LeftOut { messages: 3, packets: 6, handler_runs: 0, slices: 3 };
        assert_eq!(records.left_out, left_out);
        let mut twice = left_out;
        twice.add(&left_out);
        assert_eq!((twice.messages, twice.slices, twice.is_empty()), (6, 6, false));
    }
}
