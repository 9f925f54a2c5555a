//! Finds the send that each receive matched. Messages with the same source, destination and tag are matched in the order of
//! sending, by receives in the order of posting.

use crate::check::named;

use super::rank::State;
use crate::schedule::{Kind, Schedule};
use crate::spans::Spans;
use nicety::Error;

/// One end of a message: its destination, source and tag, and the index of the operation in the schedule.
type End = ((u32, u32, u32), usize);

/// Sets the start of each receive to the start of its send, if the send started later.
///
/// # Errors
/// When a message is longer than its receive.
pub(super) fn note(schedule: &Schedule, ranks: &[State], spans: &mut Spans) -> Result<(), Error> {
    let (mut sends, mut receives): (Vec<End>, Vec<End>) = (Vec::new(), Vec::new());
    for (rank, State { taken, order, .. }) in (0..).zip(ranks) {
        for number in order {
            let at = schedule.first_op(rank) + *number as usize;
            let op = &schedule.ops()[at];
            if op.kind == Kind::Send {
                sends.push(((op.peer, rank, op.tag), at));
            } else {
                let (source, tag) = taken.get(number).copied().unwrap_or((op.peer, op.tag));
                receives.push(((rank, source, tag), at));
            }
        }
    }
    // The sort is stable, so that messages of a key stay in order.
    sends.sort_by_key(|(key, _)| *key);
    receives.sort_by_key(|(key, _)| *key);
    for ((to, receive), (from, send)) in receives.into_iter().zip(sends) {
        debug_assert_eq!(to, from, "all messages were taken");
        let (wanted, sent) = (&schedule.ops()[receive], &schedule.ops()[send]);
        if sent.size > wanted.size {
            let number = |rank: u32, at: usize| (at - schedule.first_op(rank)) as u32;
            return Err(Error::Program(format!(
                "rank {}: {} is too short for rank {}'s {}",
                to.0,
                named(number(to.0, receive), wanted),
                to.1,
                named(number(to.1, send), sent)
            )));
        }
        spans.take(receive, send);
    }
    Ok(())
}
