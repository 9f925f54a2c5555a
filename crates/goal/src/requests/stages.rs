//! A critical path, stage by stage.

use super::Ns;
use nicety::record::NOT_ACCOUNTED_FOR;
use schemars::JsonSchema;
use serde::Serialize;

/// A part of a latency.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Stage {
    /// The stage's name.
    pub stage: &'static str,
    /// Its share in nanoseconds.
    pub ns: Ns,
}

/// The stages of the path to the last host's end, which add up to it.
pub(super) fn of(path: &[(nicety_types::Stage, u64)], finish_ps: &[u64]) -> Vec<Stage> {
    let named = path.iter().map(|(stage, ps)| Stage { stage: stage.name(), ns: Ns { ps: *ps } });
    let rest = super::last(finish_ps).0.saturating_sub(path.iter().map(|(_, ps)| ps).sum());
    let rest = (rest > 0).then_some(Stage { stage: NOT_ACCOUNTED_FOR, ns: Ns { ps: rest } });
    named.chain(rest).collect()
}
