//! The start and end of operations, and the division of a rank's time into computation and communication.

use crate::schedule::{Kind, Rank};
use serde::{Deserialize, Serialize};

const NEVER: u64 = u64::MAX;

/// The start and the end of each operation by number, in picoseconds. If a receive waited for its message, its start is the time
/// at which the message was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spans(Vec<(u64, u64)>);

/// The computation and communication times of a rank, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// The time with a calculation in progress.
    pub computing: u64,
    /// The time with a message in flight, from the rank or to it. A send counts from its start to its end. A receive counts from
    /// the time at which its message was sent.
    pub communicating: u64,
    /// The time with both a calculation and a message.
    pub both: u64,
}

impl Spans {
    pub(crate) fn new(operations: usize) -> Spans {
        Spans(vec![(NEVER, NEVER); operations])
    }

    #[inline]
    pub(crate) fn begin(&mut self, op: usize, now: u64) {
        self.0[op].0 = now;
    }

    #[inline]
    pub(crate) fn end(&mut self, op: usize, now: u64) {
        self.0[op].1 = now;
    }

    /// Sets the start of a receive to the start of its send, if the send started later.
    #[inline]
    pub(crate) fn take(&mut self, receive: usize, send: usize) {
        let (sent, begun) = (self.0[send].0, &mut self.0[receive].0);
        *begun = sent.max(*begun);
    }

    /// Appends the starts and ends of the next ranks' operations.
    pub(crate) fn extend(&mut self, more: &Spans) {
        self.0.extend_from_slice(&more.0);
    }

    /// Returns the start of an operation; `None` if it did not begin.
    pub fn begun(&self, op: usize) -> Option<u64> {
        Some(self.0[op].0).filter(|time| *time != NEVER)
    }

    /// Returns the end of an operation; `None` if it did not end.
    pub fn ended(&self, op: usize) -> Option<u64> {
        Some(self.0[op].1).filter(|time| *time != NEVER)
    }

    /// Returns the latest end of all operations; `None` if no operation ended.
    pub(crate) fn last_end(&self) -> Option<u64> {
        (0..self.0.len()).filter_map(|op| self.ended(op)).max()
    }

    /// Returns the computation and communication times of a rank. The rank's first operation has index `first` here. All its
    /// operations must have ended.
    pub fn shares(&self, rank: Rank<'_>, first: usize) -> Shares {
        let of = |calculates: bool| {
            let own = rank.ops.iter().zip(&self.0[first..]);
            union(
                own.filter(|(op, _)| (op.kind == Kind::Calc) == calculates).map(|(_, span)| *span).collect(),
            )
        };
        let (computing, communicating) = (of(true), of(false));
        let sum = |spans: &[(u64, u64)]| spans.iter().map(|(begin, end)| end - begin).sum();
        Shares {
            computing: sum(&computing),
            communicating: sum(&communicating),
            both: common(&computing, &communicating),
        }
    }
}

/// Sorts intervals, and merges those that overlap or touch.
fn union(mut spans: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    spans.sort_unstable();
    let mut made: Vec<(u64, u64)> = Vec::new();
    for (begin, end) in spans {
        match made.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => made.push((begin, end)),
        }
    }
    made
}

/// Returns the time that two lists of merged intervals have in common.
fn common(some: &[(u64, u64)], others: &[(u64, u64)]) -> u64 {
    let (mut sum, mut at) = (0, 0);
    for (begin, end) in some {
        while at < others.len() && others[at].0 < *end {
            sum += others[at].1.min(*end).saturating_sub(others[at].0.max(*begin));
            if others[at].1 > *end {
                break;
            }
            at += 1;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Builder, Op};
    use proptest::prelude::*;

    fn shares_of(ops: &[(bool, u64, u64)]) -> Shares {
        let (mut builder, mut spans) = (Builder::new(), Spans::new(ops.len()));
        for (number, (calculates, begin, end)) in ops.iter().enumerate() {
            let kind = if *calculates { Kind::Calc } else { Kind::Recv };
            builder.push(Op::new(kind, 0, 0, 0)).unwrap();
            spans.begin(number, *begin);
            spans.end(number, *end);
        }
        builder.end_rank();
        spans.shares(builder.finish().rank(0), 0)
    }

    #[test]
    fn shares_by_hand() {
        let ops =
            [(true, 0, 10), (true, 5, 20), (false, 15, 40), (false, 18, 19), (true, 30, 35), (true, 60, 61)];
        assert_eq!(shares_of(&ops), Shares { computing: 26, communicating: 25, both: 10 });
        assert_eq!(shares_of(&[]), Shares::default());
        // A calculation and a later message do not overlap.
        assert_eq!(shares_of(&[(true, 0, 5), (false, 5, 9)]).both, 0);
    }

    proptest! {
        #[test]
        fn shares_are_those_of_each_picosecond(
            ops in prop::collection::vec((any::<bool>(), 0..60_u64, 0..20_u64), 0..12)
        ) {
            let ops: Vec<_> = ops.into_iter().map(|(calculates, begin, long)| (calculates, begin, begin + long)).collect();
            let mut expected = Shares::default();
            for ps in 0..80 {
                let [computes, communicates] = [true, false].map(|kind| {
                    ops.iter().any(|(calculates, begin, end)| *calculates == kind && (*begin..*end).contains(&ps))
                });
                expected.computing += u64::from(computes);
                expected.communicating += u64::from(communicates);
                expected.both += u64::from(computes && communicates);
            }
            prop_assert_eq!(shares_of(&ops), expected);
        }
    }
}
