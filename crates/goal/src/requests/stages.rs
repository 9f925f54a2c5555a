//! The stages of a critical path.

use super::Ns;
use nicety::record::NOT_ACCOUNTED_FOR;
use schemars::JsonSchema;
use serde::Serialize;

/// A stage of a critical path.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Stage {
    /// The name of the stage.
    pub stage: &'static str,
    /// The time in this stage, in nanoseconds.
    pub ns: Ns,
}

/// Returns the stages of the critical path to the end of the last host. Their sum is the time of that end.
pub(super) fn of(path: &[(nicety_types::Stage, u64)], finish_ps: &[u64]) -> Vec<Stage> {
    let named = path.iter().map(|(stage, ps)| Stage { stage: stage.name(), ns: Ns { ps: *ps } });
    let rest = super::last(finish_ps).0.saturating_sub(path.iter().map(|(_, ps)| ps).sum());
    let rest = (rest > 0).then_some(Stage { stage: NOT_ACCOUNTED_FOR, ns: Ns { ps: rest } });
    named.chain(rest).collect()
}
