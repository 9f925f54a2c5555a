//! Counts of a run.

use serde::{Deserialize, Serialize};
use std::iter::Sum;

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Operations that were executed.
    pub operations: u64,
    /// Messages that have arrived.
    pub messages: u64,
    /// Events taken from a queue, and queue entries searched for messages.
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
