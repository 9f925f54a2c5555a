//! Bytes sent and not acknowledged, with a record for each segment. A record is marked if the peer reports its bytes as
//! received (RFC 2018), or if its bytes are considered lost.

use nicety_types::Time;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// On its way.
    Sent,
    /// Received by the peer, beyond missing bytes.
    Sacked,
    /// Considered lost, and to be retransmitted.
    Lost,
}

/// Bytes that were sent together: at most one frame, or one packet that a card segments. Its FIN counts as one byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub start: i64,
    pub end: i64,
    /// The time of the last transmission of the bytes.
    pub sent: Time,
    /// Bytes in each frame except the last frame.
    size: usize,
    /// Whether the bytes were retransmitted.
    pub again: bool,
    pub mark: Mark,
}

impl Record {
    fn length(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn segments(&self) -> usize {
        self.length().div_ceil(self.size)
    }
}

/// The bytes that one acknowledgement reports as delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub bytes: usize,
    /// The earliest send time of bytes that were sent only once: `in_order` for bytes acknowledged in order, `early`
    /// for bytes beyond holes.
    pub in_order: Option<Time>,
    pub early: Option<Time>,
    /// Whether some bytes acknowledged in order were retransmitted. The acknowledgement of the other bytes may have
    /// waited for the retransmission.
    pub resent: bool,
    /// The send time and the end of the delivered record that was sent last, and whether it was retransmitted.
    pub last: Option<(Time, i64, bool)>,
    /// The lowest end of a delivered record that was sent only once.
    pub lowest: Option<i64>,
}

impl Delivered {
    fn add(&mut self, record: &Record) {
        self.bytes += record.length();
        if self.last.is_none_or(|(sent, end, _)| (sent, end) < (record.sent, record.end)) {
            self.last = Some((record.sent, record.end, record.again));
        }
        if !record.again {
            self.lowest = Some(self.lowest.map_or(record.end, |lowest| lowest.min(record.end)));
        }
    }
}

fn earlier(place: &mut Option<Time>, record: &Record) {
    if !record.again {
        *place = Some(place.map_or(record.sent, |time| time.min(record.sent)));
    }
}

/// Records in order, without gaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    records: VecDeque<Record>,
    sacked: usize,
    sacked_segments: usize,
    lost: usize,
    /// No record before this position is marked as lost.
    lost_from: i64,
}

impl Flight {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes that the peer has received beyond holes.
    pub fn sacked(&self) -> usize {
        self.sacked
    }

    /// Segments that the peer has received beyond holes.
    pub fn sacked_segments(&self) -> usize {
        self.sacked_segments
    }

    /// Bytes to be retransmitted.
    pub fn lost(&self) -> usize {
        self.lost
    }

    pub fn first(&self) -> Option<&Record> {
        self.records.front()
    }

    /// Adds a record of bytes sent for the first time, in frames of `size` bytes.
    pub fn push(&mut self, now: Time, start: i64, end: i64, size: usize) {
        debug_assert!(start < end && self.records.back().is_none_or(|last| last.end == start));
        let size = size.max(1);
        self.records.push_back(Record { start, end, sent: now, size, again: false, mark: Mark::Sent });
    }

    fn count(&mut self, record: &Record) {
        match record.mark {
            Mark::Sent => {}
            Mark::Sacked => {
                self.sacked += record.length();
                self.sacked_segments += record.segments();
            }
            Mark::Lost => {
                self.lost += record.length();
                self.lost_from = self.lost_from.min(record.start);
            }
        }
    }

    fn discount(&mut self, record: &Record) {
        match record.mark {
            Mark::Sent => {}
            Mark::Sacked => {
                self.sacked -= record.length();
                self.sacked_segments -= record.segments();
            }
            Mark::Lost => self.lost -= record.length(),
        }
    }

    /// Removes the records of all bytes before a position, which the peer has acknowledged. Adds the bytes without an
    /// earlier SACK to `delivered`.
    pub fn acknowledge(&mut self, position: i64, delivered: &mut Delivered) {
        while let Some(&record) = self.records.front()
            && record.start < position
        {
            self.discount(&record);
            let done = Record { end: record.end.min(position), ..record };
            if record.mark != Mark::Sacked {
                delivered.add(&done);
                delivered.resent |= done.again;
                earlier(&mut delivered.in_order, &done);
            }
            if record.end <= position {
                self.records.pop_front();
            } else {
                self.records[0].start = position;
                let rest = self.records[0];
                self.count(&rest);
            }
        }
    }

    /// Splits a record, if necessary, so that a record begins at `position`. Returns the index of that record.
    fn cut(&mut self, position: i64) -> usize {
        let index = self.records.partition_point(|record| record.end <= position);
        match self.records.get(index).copied() {
            Some(record) if record.start < position => {
                self.discount(&record);
                let parts = [Record { end: position, ..record }, Record { start: position, ..record }];
                self.records[index] = parts[0];
                self.records.insert(index + 1, parts[1]);
                parts.iter().for_each(|part| self.count(part));
                index + 1
            }
            _ => index,
        }
    }

    fn mark(&mut self, index: usize, mark: Mark) {
        let record = self.records[index];
        self.discount(&record);
        self.records[index].mark = mark;
        self.count(&Record { mark, ..record });
    }

    /// Marks the records from `start` to `end` as received by the peer, beyond a hole. It ignores parts of frames, so
    /// the number of records is at most the number of frames sent.
    pub fn sack(&mut self, start: i64, end: i64, delivered: &mut Delivered) {
        let mut at = start;
        loop {
            let index = self.records.partition_point(|record| record.end <= at);
            let Some(record) = self.records.get(index).copied().filter(|record| record.start < end) else {
                break;
            };
            at = record.end;
            if record.mark == Mark::Sacked {
                continue;
            }
            let size = record.size as i64;
            let first = record.start + ((start - record.start).max(0) + size - 1) / size * size;
            let last = if end >= record.end {
                record.end
            } else {
                record.start + (end - record.start) / size * size
            };
            if first < last {
                let index = self.cut(first);
                self.cut(last);
                let record = self.records[index];
                delivered.add(&record);
                earlier(&mut delivered.early, &record);
                self.mark(index, Mark::Sacked);
                self.join(index);
                self.join(index.wrapping_sub(1));
            }
        }
    }

    /// Merges two adjacent records that the peer has received.
    fn join(&mut self, index: usize) {
        let pair = [index, index.wrapping_add(1)].map(|n| self.records.get(n).copied());
        if let [Some(first), Some(second)] = pair
            && [first.mark, second.mark] == [Mark::Sacked; 2]
        {
            [first, second].iter().for_each(|record| self.discount(record));
            self.records.remove(index + 1);
            self.records[index].end = second.end;
            let joined = self.records[index];
            self.count(&joined);
        }
    }

    /// Marks as lost the records in flight for which `is_lost` returns true. Returns whether it marked any.
    pub fn lose(&mut self, mut is_lost: impl FnMut(&Record) -> bool) -> bool {
        let before = self.lost;
        for index in 0..self.records.len() {
            let record = &self.records[index];
            if record.mark == Mark::Sent && is_lost(record) {
                self.mark(index, Mark::Lost);
            }
        }
        self.lost > before
    }

    /// Marks the first segment as lost. Returns whether it was in flight.
    pub fn lose_first(&mut self, size: usize) -> bool {
        let Some(&first) = self.records.front() else { return false };
        self.cut(first.start + size as i64);
        let is_sent = first.mark == Mark::Sent;
        if is_sent {
            self.mark(0, Mark::Lost);
        }
        is_sent
    }

    /// Returns the start and the end of the last segment.
    pub fn last(&self, size: usize) -> Option<(i64, i64)> {
        let last = self.records.back()?;
        let before = (last.length() - 1) / size * size;
        Some((last.start + before as i64, last.end))
    }

    /// Marks as lost all bytes that the peer reported beyond holes: the peer has discarded them, as RFC 2018, 8,
    /// allows.
    pub fn forget_sacks(&mut self) {
        for index in 0..self.records.len() {
            if self.records[index].mark == Mark::Sacked {
                self.mark(index, Mark::Lost);
            }
        }
    }

    /// Returns the start and the end of the first bytes to retransmit, at most `most` bytes.
    pub fn next_lost(&self, most: usize) -> Option<(i64, i64)> {
        if self.lost == 0 {
            return None;
        }
        let from = self.records.partition_point(|record| record.end <= self.lost_from);
        let index = (from..self.records.len()).find(|&n| self.records[n].mark == Mark::Lost)?;
        let start = self.records[index].start;
        let run = self.records.range(index..).take_while(|record| record.mark == Mark::Lost);
        let end = run.map(|record| record.end).take_while(|&end| end - start <= most as i64).last();
        Some((start, end.unwrap_or(start + most as i64)))
    }

    /// Records the retransmission of bytes in frames of `size` bytes. [`Flight::next_lost`] or [`Flight::last`]
    /// returned `start` and `end`.
    pub fn sent_again(&mut self, now: Time, start: i64, end: i64, size: usize) {
        if self.next_lost(1).is_some_and(|(first, _)| first == start) {
            self.lost_from = end;
        }
        let first = self.cut(start);
        let after = self.cut(end);
        for index in first..after {
            let record = self.records[index];
            self.discount(&record);
        }
        self.records.drain(first + 1..after);
        self.records[first] =
            Record { start, end, sent: now, size: size.max(1), again: true, mark: Mark::Sent };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::from_ps(us * 1_000_000)
    }

    fn of_ten(frames: i64) -> Flight {
        let mut flight = Flight::default();
        (0..frames).for_each(|n| flight.push(at(n as u64), n * 10, n * 10 + 10, 10));
        flight
    }

    fn marks(flight: &Flight) -> Vec<(i64, i64, Mark)> {
        flight.records.iter().map(|record| (record.start, record.end, record.mark)).collect()
    }

    #[test]
    fn holes_are_found_and_filled() {
        let mut flight = of_ten(6);
        let mut delivered = Delivered::default();
        flight.sack(20, 40, &mut delivered);
        assert_eq!((flight.sacked(), flight.sacked_segments(), delivered.bytes), (20, 2, 20));
        assert_eq!((delivered.early, delivered.last), (Some(at(2)), Some((at(3), 40, false))));
        assert!(flight.lose(|record| record.end <= 30));
        assert_eq!((flight.lost(), flight.next_lost(10)), (20, Some((0, 10))));
        assert_eq!(flight.next_lost(100), Some((0, 20)), "two frames for a card to cut");
        flight.sent_again(at(9), 0, 20, 10);
        assert_eq!((flight.lost(), flight.next_lost(10)), (0, None));
        let mut delivered = Delivered::default();
        flight.acknowledge(45, &mut delivered);
        assert_eq!((delivered.bytes, flight.sacked(), flight.sacked_segments()), (25, 0, 0));
        assert_eq!(delivered.in_order, Some(at(4)), "of those that were sent once");
        assert_eq!(delivered.last, Some((at(9), 20, true)));
        assert_eq!(marks(&flight), [(45, 50, Mark::Sent), (50, 60, Mark::Sent)]);
    }

    #[test]
    fn a_packet_that_a_card_cuts_is_lost_frame_by_frame() {
        let mut flight = Flight::default();
        flight.push(at(0), 0, 95, 10);
        let mut delivered = Delivered::default();
        flight.sack(15, 58, &mut delivered);
        assert_eq!((flight.sacked(), flight.sacked_segments()), (30, 3), "20 to 50: whole frames");
        flight.sack(70, 95, &mut delivered);
        assert_eq!((flight.sacked(), flight.sacked_segments()), (55, 6));
        flight.lose(|record| record.start < 60);
        assert_eq!(flight.lost(), 40);
        assert_eq!(flight.next_lost(10), Some((0, 10)));
        flight.sent_again(at(1), 0, 10, 10);
        assert_eq!(flight.next_lost(10), Some((10, 20)));
        flight.forget_sacks();
        assert_eq!((flight.sacked(), flight.lost(), flight.next_lost(1000)), (0, 85, Some((10, 95))));
    }

    #[test]
    fn small_segments_are_sent_again_in_one() {
        let mut flight = Flight::default();
        (0..10).for_each(|n| flight.push(at(0), n, n + 1, 1));
        flight.lose(|_| true);
        assert_eq!(flight.next_lost(8), Some((0, 8)));
        flight.sent_again(at(1), 0, 8, 8);
        assert_eq!((flight.lost(), flight.next_lost(8)), (2, Some((8, 10))));
        assert_eq!(marks(&flight)[0], (0, 8, Mark::Sent));
    }

    #[test]
    fn the_first_and_the_last_segment_can_be_lost_alone() {
        let mut flight = Flight::default();
        flight.push(at(0), 0, 25, 10);
        assert_eq!(flight.last(10), Some((20, 25)));
        flight.sent_again(at(1), 20, 25, 10);
        assert_eq!(marks(&flight), [(0, 20, Mark::Sent), (20, 25, Mark::Sent)]);
        assert!(flight.lose_first(10) && !flight.lose_first(10));
        assert_eq!((flight.lost(), flight.next_lost(100)), (10, Some((0, 10))));
        flight.sent_again(at(2), 20, 25, 10);
        assert_eq!(flight.next_lost(100), Some((0, 10)), "it is not forgotten");
    }

    #[test]
    fn bytes_behind_a_hole_are_one_record() {
        let mut flight = of_ten(100);
        let mut delivered = Delivered::default();
        for n in [3, 5, 4, 1, 2, 6] {
            flight.sack(n * 10, n * 10 + 10, &mut delivered);
        }
        flight.sack(10, 1000, &mut delivered);
        assert_eq!(marks(&flight), [(0, 10, Mark::Sent), (10, 1000, Mark::Sacked)]);
        assert_eq!((flight.sacked(), flight.sacked_segments(), delivered.bytes), (990, 99, 990));
    }
}
