//! Messages that were not received, and receives without a message.

use super::counts::Counts;
use super::engine::Shard;
use crate::check::named;
use crate::schedule::Schedule;

/// The unfinished part of a schedule when no event is left. Operations are pairs of rank and number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    /// Sends of messages that were not received. `sends` and `receives` are in the order of the receiving ranks, and for each
    /// rank in the order of its queue.
    pub sends: Vec<(u32, u32)>,
    /// Receives without a message.
    pub receives: Vec<(u32, u32)>,
    /// Number of operations that could not start.
    pub waiting: u64,
    /// The counts of the run so far.
    pub counts: Counts,
}

impl Stuck {
    pub(super) fn find<const COMPAT: bool>(shards: &[Shard<'_, COMPAT>], counts: Counts) -> Option<Stuck> {
        let mut stuck = Stuck { counts, ..Stuck::default() };
        for shard in shards {
            for (rank, host) in shard.ranks().zip(&shard.hosts) {
                let (posted, unexpected) = shard.matching.left(&host.lines);
                stuck.sends.extend(unexpected.iter().map(|message| (message.source, message.op)));
                stuck.receives.extend(posted.iter().map(|receive| (rank, receive.op)));
            }
            stuck.waiting += shard.remaining.iter().filter(|left| **left > 0).count() as u64;
        }
        (!stuck.sends.is_empty() || !stuck.receives.is_empty()).then_some(stuck)
    }

    /// Describes the unfinished part. Each of the first operations has a line.
    pub fn describe(&self, schedule: &Schedule) -> String {
        const MOST: usize = 8;
        let count = |count: u64, one: &str, several: &str| match count {
            1 => format!("1 {one}"),
            _ => format!("{count} {several}"),
        };
        let mut text = format!(
            "the schedule cannot finish: {} without a receive, {} without a message, {} blocked by them",
            count(self.sends.len() as u64, "message", "messages"),
            count(self.receives.len() as u64, "receive", "receives"),
            count(self.waiting, "operation", "operations"),
        );
        let tell = |(rank, op): &(u32, u32), what: &str| {
            format!("\nrank {rank}: {}: {what}", named(*op, &schedule.rank(*rank).ops[*op as usize]))
        };
        let receives = self.receives.iter().map(|at| tell(at, "no message came"));
        let sends = self.sends.iter().map(|at| tell(at, "no receive took it"));
        let lines = self.receives.len() + self.sends.len();
        text.extend(receives.chain(sends).take(MOST));
        if lines > MOST {
            text += &format!("\nand {} more", lines - MOST);
        }
        text
    }
}
