//! Operations that could not end, and messages that were not received.

use super::rank::State;
use crate::loggops::Stuck;
use crate::schedule::{Kind, Schedule};
use std::collections::HashMap;

/// The fields by which a receive selects a message: destination, source and tag.
type Key = (u32, u32, u32);

/// Returns the unfinished part of a schedule when no event is left; `None` if all operations have ended.
pub(super) fn left(schedule: &Schedule, ranks: &[State]) -> Option<Stuck> {
    let mut stuck = Stuck::default();
    // For each key, the number of messages that receives have taken.
    let mut taken: HashMap<Key, u64> = HashMap::new();
    let mut sent: Vec<(u64, u32, u32)> = Vec::new();
    for (rank, State { spans, order, taken: found, .. }) in (0..).zip(ranks) {
        for number in order {
            let begun = spans.begun(*number as usize).unwrap_or(0);
            if schedule.rank(rank).ops[*number as usize].kind == Kind::Send {
                sent.push((begun, rank, *number));
            }
        }
        for (number, op) in (0..).zip(schedule.rank(rank).ops) {
            let (begun, ended) = (spans.begun(number as usize), spans.ended(number as usize));
            match (op.kind, begun, ended) {
                (_, None, _) => stuck.waiting += 1,
                (Kind::Calc, Some(_), None) => stuck.waiting += 1,
                (Kind::Recv, Some(_), None) => stuck.receives.push((rank, number)),
                (Kind::Recv, Some(_), Some(_)) => {
                    let (source, tag) = found.get(&number).copied().unwrap_or((op.peer, op.tag));
                    *taken.entry((rank, source, tag)).or_default() += 1;
                }
                (Kind::Send, Some(_), _) | (Kind::Calc, Some(_), Some(_)) => {}
            }
            stuck.counts.operations += u64::from(ended.is_some());
        }
    }
    // Receives take the messages of a key in the order of sending.
    sent.sort_by_key(|(begun, ..)| *begun);
    for (_, rank, number) in sent {
        let op = &schedule.rank(rank).ops[number as usize];
        match taken.get_mut(&(op.peer, rank, op.tag)) {
            Some(count) if *count > 0 => *count -= 1,
            _ => stuck.sends.push((rank, number)),
        }
    }
    (stuck.waiting > 0 || !stuck.sends.is_empty() || !stuck.receives.is_empty()).then_some(stuck)
}

/// Returns the notes in the text of a deadlock. They name possible causes other than the schedule.
pub(super) fn notes(text: &str) -> String {
    text.lines()
        .filter(|line| line.trim_start().starts_with("note:"))
        .map(|line| format!("\n{line}"))
        .collect()
}
