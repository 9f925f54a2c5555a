//! Records the operations of processes as a schedule: messages, computations, and the dependencies between them.
//!
//! After a call, the next operation of the process depends on the start of the call's operation. After a look that found
//! completions, it also depends on the ends of the completed operations. The message that each receive took is known, so each
//! pair of send and receive has its own tag.

use nicety_goal::{Builder, Kind, MOST_OPERATIONS, Op, Schedule};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

/// The schedule under construction.
pub(crate) struct Log(RefCell<Made>);

struct Made {
    ranks: Vec<Own>,
    /// Messages that are not yet received, by sender, receiver and the program's tag.
    sent: BTreeMap<(u32, u32, u64), VecDeque<Sent>>,
    /// The next tag of the schedule for each pair of sender and receiver.
    tags: BTreeMap<(u32, u32), u32>,
    /// The number of accesses to registered memory. A schedule cannot have them.
    accesses: u64,
}

#[derive(Default)]
struct Own {
    ops: Vec<Logged>,
    /// Dependencies: the number of an operation, the number of an operation that depends on it, and whether it depends only on
    /// the start.
    waits: Vec<(u32, u32, bool)>,
    /// The position of the process: after the end of this operation, or after its start.
    place: Option<(u32, bool)>,
    /// Operations with completions that the process has taken since then.
    ended: Vec<u32>,
    /// Operations that have completed, in order. The process has not taken their completions.
    complete: VecDeque<Option<u32>>,
    /// The part of computations below one nanosecond, in picoseconds. It is added to the next computation.
    rest: u64,
}

/// An operation. A send or receive without a match is left out.
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
    /// The number of messages that were never received.
    pub(crate) unreceived: u64,
    /// The number of accesses to registered memory. The schedule does not have them.
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

    /// Records a send with the program's tag. Returns the number of the operation.
    pub(crate) fn sends(&self, (rank, to): (u32, u32), program_tag: u64, bytes: u64) -> u32 {
        let made = &mut *self.0.borrow_mut();
        let next = made.tags.entry((rank, to)).or_default();
        let tag = *next;
        *next += 1;
        let op = made.ranks[rank as usize].starts(Op::new(Kind::Send, bytes, to, tag));
        made.sent.entry((rank, to, program_tag)).or_default().push_back(Sent { op, bytes, tag });
        op
    }

    /// Counts an access to registered memory of another process.
    pub(crate) fn accesses(&self) {
        self.0.borrow_mut().accesses += 1;
    }

    /// Records a posted receive. Returns the number of the operation.
    pub(crate) fn posts(&self, rank: u32) -> u32 {
        self.0.borrow_mut().ranks[rank as usize].starts(Op::new(Kind::Recv, 0, 0, 0))
    }

    /// Records the post of a buffer for many messages. Returns the number that [`Log::posts_behind`] needs.
    pub(crate) fn posts_many(&self, rank: u32) -> u32 {
        let own = &mut self.0.borrow_mut().ranks[rank as usize];
        let op = own.push(Op::new(Kind::Calc, 0, 0, 0), true);
        own.place = Some((op, false));
        op
    }

    /// Records a receive of one message into a buffer for many messages.
    pub(crate) fn posts_behind(&self, rank: u32, many: u32) -> u32 {
        let own = &mut self.0.borrow_mut().ranks[rank as usize];
        let op = own.add(Op::new(Kind::Recv, 0, 0, 0), false);
        own.waits.push((many, op, false));
        op
    }

    /// Records the message that a receive took. If several messages have the same tag, it is the first one of this length,
    /// because a short message may overtake a long one.
    pub(crate) fn got(&self, (rank, op): (u32, u32), (from, program_tag): (u32, u64), bytes: u64) {
        let made = &mut *self.0.borrow_mut();
        let Some(sent) = made.sent.get_mut(&(from, rank, program_tag)) else { return };
        let at = sent.iter().position(|sent| sent.bytes == bytes).unwrap_or_default();
        let Some(sent) = sent.remove(at) else { return };
        made.ranks[from as usize].ops[sent.op as usize].is_matched = true;
        let own = &mut made.ranks[rank as usize].ops[op as usize];
        (own.op.size, own.op.peer, own.op.tag, own.is_matched) = (bytes, from, sent.tag, true);
    }

    /// Records that the process has got a completion of operation `op`.
    pub(crate) fn completes(&self, rank: u32, op: Option<u32>) {
        self.0.borrow_mut().ranks[rank as usize].complete.push_back(op);
    }

    /// Records that the process has taken the next `count` completions.
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
                // Operations that depend on this one continue at once.
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
    /// Adds an operation without dependencies. Returns its number.
    fn add(&mut self, op: Op, is_matched: bool) -> u32 {
        self.ops.push(Logged { op, is_matched });
        self.ops.len() as u32 - 1
    }

    /// Adds an operation that depends on the position of the process. Returns its number.
    fn push(&mut self, op: Op, is_matched: bool) -> u32 {
        let op = self.add(op, is_matched);
        self.waits.extend(self.place.map(|(before, on_start)| (before, op, on_start)));
        self.waits.extend(self.ended.drain(..).map(|before| (before, op, false)));
        op
    }

    /// Adds an operation, and lets the process continue when the operation has started.
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
        // Rank 0 posts a receive and sends. When it has both completions, it computes for 1.5 ns and then for 0.5 ns.
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
        // The short message arrives first.
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
