//! A schedule of processes' operations: their messages, their computations, and the dependencies.
//!
//! A process continues after a call as soon as the operation has started. After a look at its completions it depends on the ends of the
//! completed operations. The message of each receive is known, so each pair of send and receive has a tag of its own.

use nicety_goal::{Builder, Kind, MOST_OPERATIONS, Op, Schedule};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

/// The schedule under construction.
pub(crate) struct Log(RefCell<Made>);

struct Made {
    ranks: Vec<Own>,
    /// Messages without a receive, by sender, receiver and the program's tag.
    sent: BTreeMap<(u32, u32, u64), VecDeque<Sent>>,
    /// The next tag between a sender and a receiver.
    tags: BTreeMap<(u32, u32), u32>,
    /// Accesses to registered memory, which a schedule cannot have.
    accesses: u64,
}

#[derive(Default)]
struct Own {
    ops: Vec<Logged>,
    /// An operation, its dependent, and whether that waits for the start.
    waits: Vec<(u32, u32, bool)>,
    /// The position of the process: after this operation, or after its start.
    place: Option<(u32, bool)>,
    /// Operations with completions that the process has taken since.
    ended: Vec<u32>,
    /// Operations with completions that the process has not taken, in order.
    complete: VecDeque<Option<u32>>,
    /// The rest below a whole nanosecond, in picoseconds.
    rest: u64,
}

/// An operation; without a match it is omitted.
#[derive(Clone, Copy)]
struct Logged {
    op: Op,
    is_matched: bool,
}

struct Sent {
    op: u32,
    bytes: u64,
    tag: u32,
}

/// A complete schedule of processes' operations.
pub(crate) struct Written {
    pub(crate) schedule: Schedule,
    /// Messages without a receive.
    pub(crate) unreceived: u64,
    /// Accesses to registered memory, which it omits.
    pub(crate) accesses: u64,
}

impl Log {
    pub(crate) fn new(ranks: u32) -> Log {
        let ranks = (0..ranks).map(|_| Own::default()).collect();
        Log(RefCell::new(Made { ranks, sent: BTreeMap::new(), tags: BTreeMap::new(), accesses: 0 }))
    }

    /// Records a computation.
    pub(crate) fn computes(&self, rank: u32, ps: u64) {
        let own = &mut self.0.borrow_mut().ranks[rank as usize];
        let spent = own.rest.saturating_add(ps);
        own.rest = spent % 1000;
        if spent >= 1000 {
            let op = own.push(Op::new(Kind::Calc, spent / 1000, 0, 0), true);
            own.place = Some((op, false));
        }
    }

    /// Records a send, with the program's tag.
    pub(crate) fn sends(&self, (rank, to): (u32, u32), program_tag: u64, bytes: u64) -> u32 {
        let made = &mut *self.0.borrow_mut();
        let next = made.tags.entry((rank, to)).or_default();
        let tag = *next;
        *next += 1;
        let op = made.ranks[rank as usize].starts(Op::new(Kind::Send, bytes, to, tag));
        made.sent.entry((rank, to, program_tag)).or_default().push_back(Sent { op, bytes, tag });
        op
    }

    /// Records an access to registered memory of another process.
    pub(crate) fn accesses(&self) {
        self.0.borrow_mut().accesses += 1;
    }

    /// Records a posted receive.
    pub(crate) fn posts(&self, rank: u32) -> u32 {
        self.0.borrow_mut().ranks[rank as usize].starts(Op::new(Kind::Recv, 0, 0, 0))
    }

    /// Records a buffer for many messages, for [`Log::posts_behind`].
    pub(crate) fn posts_many(&self, rank: u32) -> u32 {
        let own = &mut self.0.borrow_mut().ranks[rank as usize];
        let op = own.push(Op::new(Kind::Calc, 0, 0, 0), true);
        own.place = Some((op, false));
        op
    }

    /// Records a receive of a buffer for many messages.
    pub(crate) fn posts_behind(&self, rank: u32, many: u32) -> u32 {
        let own = &mut self.0.borrow_mut().ranks[rank as usize];
        let op = own.add(Op::new(Kind::Recv, 0, 0, 0), false);
        own.waits.push((many, op, false));
        op
    }

    /// Records the message of a receive. Of several with one tag it is the first of that length: a short one may end first.
    pub(crate) fn got(&self, (rank, op): (u32, u32), (from, program_tag): (u32, u64), bytes: u64) {
        let made = &mut *self.0.borrow_mut();
        let Some(sent) = made.sent.get_mut(&(from, rank, program_tag)) else { return };
        let at = sent.iter().position(|sent| sent.bytes == bytes).unwrap_or_default();
        let Some(sent) = sent.remove(at) else { return };
        made.ranks[from as usize].ops[sent.op as usize].is_matched = true;
        let own = &mut made.ranks[rank as usize].ops[op as usize];
        (own.op.size, own.op.peer, own.op.tag, own.is_matched) = (bytes, from, sent.tag, true);
    }

    /// Records a completion for the process.
    pub(crate) fn completes(&self, rank: u32, op: Option<u32>) {
        self.0.borrow_mut().ranks[rank as usize].complete.push_back(op);
    }

    /// Records that the process takes completions.
    pub(crate) fn takes(&self, rank: u32, count: usize) {
        let own = &mut self.0.borrow_mut().ranks[rank as usize];
        own.ended.extend(own.complete.drain(..count).flatten());
    }

    /// Returns the schedule; `None` if a rank has too many operations.
    pub(crate) fn finish(&self) -> Option<Written> {
        let mut made = self.0.borrow_mut();
        let unreceived = made.sent.values().map(|sent| sent.len() as u64).sum();
        let mut builder = Builder::new();
        for own in std::mem::take(&mut made.ranks) {
            if own.ops.len() > MOST_OPERATIONS as usize {
                return None;
            }
            for logged in &own.ops {
                // Its dependents continue at once.
                let op = if logged.is_matched { logged.op } else { Op::new(Kind::Calc, 0, 0, 0) };
                builder.push(op)?;
            }
            for (first, then, on_start) in own.waits {
                if !builder.depend(first, then, on_start) {
                    return None;
                }
            }
            builder.end_rank();
        }
        Some(Written { schedule: builder.finish(), unreceived, accesses: made.accesses })
    }
}

impl Own {
    /// Adds an operation without dependencies.
    fn add(&mut self, op: Op, is_matched: bool) -> u32 {
        self.ops.push(Logged { op, is_matched });
        self.ops.len() as u32 - 1
    }

    /// Adds an operation at the process's position.
    fn push(&mut self, op: Op, is_matched: bool) -> u32 {
        let op = self.add(op, is_matched);
        self.waits.extend(self.place.map(|(before, on_start)| (before, op, on_start)));
        self.waits.extend(self.ended.drain(..).map(|before| (before, op, false)));
        op
    }

    /// Adds an operation that the process does not wait for.
    fn starts(&mut self, op: Op) -> u32 {
        let op = self.push(op, false);
        self.place = Some((op, true));
        op
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(log: &Log) -> String {
        let mut bytes = Vec::new();
        nicety_goal::text::write(&log.finish().unwrap().schedule, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_ping_and_its_answer() {
        let log = Log::new(2);
        // Rank 0 posts its receive, sends, and computes for 1.5 ns when it has both completions, and then once more.
        let answer = log.posts(0);
        let ping = log.sends((0, 1), 7, 8);
        let at_1 = log.posts(1);
        log.got((1, at_1), (0, 7), 8);
        log.completes(1, Some(at_1));
        log.takes(1, 1);
        log.sends((1, 0), 7, 16);
        log.got((0, answer), (1, 7), 16);
        log.completes(0, Some(ping));
        log.completes(0, Some(answer));
        log.takes(0, 2);
        log.computes(0, 1500);
        log.computes(0, 500);
        assert_eq!(
            text(&log),
            "num_ranks 2\n\nrank 0 {\nl1: recv 16b from 1\nl2: send 8b to 1\nl3: calc 1\nl4: calc 1\nl3 requires l1\n\
             l2 irequires l1\nl3 requires l2\nl3 irequires l2\nl4 requires l3\n}\n\nrank 1 {\nl1: recv 8b from 0\n\
             l2: send 16b to 0\nl2 requires l1\nl2 irequires l1\n}\n"
        );
    }

    #[test]
    fn messages_of_one_tag_have_tags_of_their_own() {
        let log = Log::new(2);
        for bytes in [100, 8] {
            log.sends((0, 1), 5, bytes);
        }
        let posted = [log.posts(1), log.posts(1)];
        // The short one arrives first.
        log.got((1, posted[1]), (0, 5), 8);
        log.got((1, posted[0]), (0, 5), 100);
        let schedule = log.finish().unwrap().schedule;
        let of = |rank| schedule.rank(rank).ops.iter().map(|op| (op.size, op.tag)).collect::<Vec<_>>();
        assert_eq!(of(0), [(100, 0), (8, 1)]);
        assert_eq!(of(1), of(0));
    }

    #[test]
    fn unmatched_messages_are_omitted() {
        let log = Log::new(2);
        log.sends((0, 1), 5, 3);
        let many = log.posts_many(1);
        let got = log.posts_behind(1, many);
        log.posts_behind(1, many);
        log.posts(1);
        log.sends((0, 1), 6, 4);
        log.got((1, got), (0, 6), 4);
        let written = log.finish().unwrap();
        assert_eq!(written.unreceived, 1);
        let kinds = |rank| written.schedule.rank(rank).ops.iter().map(|op| op.kind).collect::<Vec<_>>();
        assert_eq!(kinds(0), [Kind::Calc, Kind::Send]);
        assert_eq!(kinds(1), [Kind::Calc, Kind::Recv, Kind::Calc, Kind::Calc]);
    }
}
