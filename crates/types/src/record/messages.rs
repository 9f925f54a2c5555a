//! [`MessageRows`]: a node's packed rows of messages.
//!
//! A run may have millions of messages. Each message keeps two paths until the rows of its sender and receiver are joined. So all
//! rows share one array of bytes. A path takes a few bytes of this array, and a row holds the path's position.

use super::{Arrived, Sent, Starter};
use crate::{Duration, MessageId, NodeId, Path, Stage, Time};

/// The rows of messages at a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageRows {
    sent: Vec<SentRow>,
    arrived: Vec<ArrivedRow>,
    paths: Vec<u8>,
    /// The stages. `paths` refers to a stage by its index in this list.
    stages: Vec<Stage>,
    /// The texts. Rows refer to a text by its index in this list.
    texts: Vec<&'static str>,
}

/// An optional instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OptionalTime(u64);

impl OptionalTime {
    const NOT: OptionalTime = OptionalTime(u64::MAX);

    fn get(self) -> Option<Time> {
        (self != OptionalTime::NOT).then(|| Time::from_ps(self.0))
    }
}

impl From<Time> for OptionalTime {
    fn from(time: Time) -> OptionalTime {
        OptionalTime(time.ps())
    }
}

/// The position of a path in `paths`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PathAt(u32);

impl PathAt {
    const NONE: PathAt = PathAt(u32::MAX);
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SentRow {
    message: MessageId,
    bytes: u64,
    by: Starter,
    first_byte: OptionalTime,
    target: NodeId,
    base: PathAt,
    kind: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ArrivedRow {
    message: MessageId,
    matched: OptionalTime,
    noticed: OptionalTime,
    completed: PathAt,
    outcome: u16,
}

impl MessageRows {
    /// Messages that the node sent, in the order in which it began to send them. After a [sort](MessageRows::sort), in
    /// the order of their numbers.
    pub fn sent(&self) -> impl ExactSizeIterator<Item = Sent> + '_ {
        self.sent.iter().map(|row| Sent {
            message: row.message,
            target: row.target,
            bytes: row.bytes,
            kind: self.texts[usize::from(row.kind)],
            by: row.by,
            base: self.path(row.base).expect("every message has a beginning"),
            first_byte: row.first_byte.get(),
        })
    }

    /// Messages that reached the node, in the order of matching. After a [sort](MessageRows::sort), in the order of
    /// their numbers.
    pub fn arrived(&self) -> impl ExactSizeIterator<Item = Arrived> + '_ {
        self.arrived.iter().map(|row| self.unpacked(row))
    }

    /// The last row of a message that reached the node. The rows must be [sorted](MessageRows::sort).
    pub fn arrived_of(&self, message: MessageId) -> Option<Arrived> {
        let behind = self.arrived.partition_point(|row| row.message <= message);
        let row = &self.arrived[behind.checked_sub(1)?];
        (row.message == message).then(|| self.unpacked(row))
    }

    /// Sorts the rows by message. Rows of one message keep their order.
    pub fn sort(&mut self) {
        self.sent.sort_by_key(|row| row.message);
        self.arrived.sort_by_key(|row| row.message);
    }

    /// The number of messages that the node sent.
    pub fn sent_count(&self) -> usize {
        self.sent.len()
    }

    fn unpacked(&self, row: &ArrivedRow) -> Arrived {
        Arrived {
            message: row.message,
            matched: row.matched.get(),
            completed: self.path(row.completed),
            noticed: row.noticed.get(),
            outcome: self.texts[usize::from(row.outcome)],
        }
    }

    /// Adds a message that the node sends, and returns its row number.
    pub(super) fn send(
        &mut self,
        message: MessageId,
        target: NodeId,
        bytes: u64,
        kind: &'static str,
        by: Starter,
        base: &Path,
    ) -> usize {
        let (base, kind) = (self.pack(base), self.text(kind));
        self.sent.push(SentRow { message, bytes, by, first_byte: OptionalTime::NOT, target, base, kind });
        self.sent.len() - 1
    }

    /// Sets the time at which the first byte of a message went on the link.
    pub(super) fn left(&mut self, row: usize, at: Time) {
        self.sent[row].first_byte = at.into();
    }

    /// Adds a message that reached the node, or failed, and returns its row number.
    pub(super) fn arrive(
        &mut self,
        message: MessageId,
        matched: Option<Time>,
        outcome: &'static str,
    ) -> usize {
        let outcome = self.text(outcome);
        let matched = matched.map_or(OptionalTime::NOT, OptionalTime::from);
        let (noticed, completed) = (OptionalTime::NOT, PathAt::NONE);
        self.arrived.push(ArrivedRow { message, matched, noticed, completed, outcome });
        self.arrived.len() - 1
    }

    /// Sets the end of a message: its outcome, and its path if the message is complete.
    pub(super) fn end(&mut self, row: usize, path: Option<&Path>, outcome: &'static str) {
        let (completed, outcome) = (path.map(|path| self.pack(path)), self.text(outcome));
        let row = &mut self.arrived[row];
        row.completed = completed.unwrap_or(row.completed);
        row.outcome = outcome;
    }

    /// Sets the time at which a program noticed a message's completion.
    pub(super) fn notice(&mut self, row: usize, at: Time) {
        self.arrived[row].noticed = at.into();
    }

    fn text(&mut self, text: &'static str) -> u16 {
        number(&mut self.texts, text)
    }

    /// Packs a path: its begin, the number of stages, and each stage with its time. A clock has its begin, `UNKNOWN` and its total
    /// time.
    fn pack(&mut self, path: &Path) -> PathAt {
        let at = PathAt(u32::try_from(self.paths.len()).expect("less than 4 GiB of paths at a node"));
        put(&mut self.paths, path.origin().ps());
        if path.is_clock() {
            self.paths.push(UNKNOWN);
            put(&mut self.paths, path.at().since(path.origin()).ps());
            return at;
        }
        let count = u8::try_from(path.stages().count()).expect("fewer than 255 stages");
        self.paths.push(count);
        for (stage, took) in path.stages() {
            put(&mut self.paths, number(&mut self.stages, stage).into());
            put(&mut self.paths, took.ps());
        }
        at
    }

    fn path(&self, at: PathAt) -> Option<Path> {
        let bytes = &mut self.paths.get(at.0 as usize..)?;
        let origin = Time::from_ps(get(bytes));
        let (&count, rest) = bytes.split_first().expect("a path has a count");
        *bytes = rest;
        if count == UNKNOWN {
            let mut path = Path::clock(origin);
            path.advance(Stage::POST, origin + Duration::from_ps(get(bytes)));
            return Some(path);
        }
        let mut path = Path::from(origin);
        for _ in 0..count {
            let stage = self.stages[get(bytes) as usize];
            path.advance(stage, path.at() + Duration::from_ps(get(bytes)));
        }
        Some(path)
    }
}

/// The stage count of a path that records no stages.
const UNKNOWN: u8 = u8::MAX;

/// Returns the position of `entry` in a short list without repetitions. Appends `entry` if the list lacks it.
fn number<T: PartialEq>(list: &mut Vec<T>, entry: T) -> u16 {
    let found = list.iter().position(|known| *known == entry).unwrap_or_else(|| {
        list.push(entry);
        list.len() - 1
    });
    u16::try_from(found).expect("a short list")
}

/// Appends a number to `bytes`, seven bits per byte, lowest bits first. The top bit of a byte is set if another byte
/// follows.
fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Removes a number that [`put`] appended from the front of `bytes`, and returns the number.
fn get(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return value;
        }
    }
    unreachable!("a number ends")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_out_as_they_went_in() {
        let mut rows = MessageRows::default();
        let mut path = Path::from(Time::from_ps(300));
        let mut paths = vec![path.clone()];
        for (stage, until) in [(Stage::LINK, 301), (Stage::POST, 428), (Stage::BUS, u64::MAX - 1)] {
            path.advance(stage, Time::from_ps(until));
            paths.push(path.clone());
        }
        let mut clock = Path::clock(Time::from_ps(7));
        paths.push(clock.clone());
        clock.advance(Stage::BUS, Time::from_ps(70_000));
        paths.push(clock);
        let kept: Vec<PathAt> = paths.iter().map(|path| rows.pack(path)).collect();
        for (at, path) in kept.into_iter().zip(&paths) {
            assert_eq!(rows.path(at).as_ref(), Some(path));
        }
        assert_eq!(rows.path(PathAt::NONE), None);
    }

    #[test]
    fn the_last_row_of_a_message_is_found_among_sorted_ones() {
        let mut rows = MessageRows::default();
        let message = |sequence| MessageId { source: NodeId(2), sequence };
        for (sequence, outcome) in [(5, "first"), (3, "other"), (5, "last"), (9, "end")] {
            rows.arrive(message(sequence), None, outcome);
        }
        rows.sort();
        let found = |sequence| rows.arrived_of(message(sequence)).map(|row| row.outcome);
        assert_eq!(
            [2, 3, 5, 6, 9, 10].map(found),
            [None, Some("other"), Some("last"), None, Some("end"), None]
        );
    }

    #[test]
    fn a_message_takes_little() {
        assert!(size_of::<SentRow>() + size_of::<ArrivedRow>() <= 112);
    }
}
