//! Counts of a run.

use serde::{Deserialize, Serialize};
use std::iter::Sum;

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of operations executed.
    pub operations: u64,
    /// Number of messages that have arrived.
    pub messages: u64,
    /// Number of events taken from a queue, plus number of queue entries searched for matches.
    pub steps: u64,
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Counts>>(counts: I) -> Counts {
        counts.fold(Counts::default(), |sum, counts| Counts {
            operations: sum.operations + counts.operations,
            messages: sum.messages + counts.messages,
            steps: sum.steps + counts.steps,
        })
    }
}
