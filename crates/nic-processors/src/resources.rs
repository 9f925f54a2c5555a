//! The resources of a card with handler cores.

use crate::programs::program::Kind;
use nicety_types::{End, FlowPoint, Pick, ResourceKind, Tracks};

/// Names of handler runs, by purpose.
const RUNS: &[&str] = &[Kind::Header.name(), Kind::Payload.name(), Kind::Completion.name()];

nicety_types::resources! {
    /// The matching unit.
    pub const MATCHING = ResourceKind {
        name: "matching",
        place: 70,
        tracks: Tracks::One,
        nests: false,
        flow: &[FlowPoint { end: End::Target, pick: Pick::First, purposes: &[] }],
        programs: &[],
    };
    /// Handler cores.
    pub const HPU = ResourceKind {
        name: "HPU",
        place: 100,
        tracks: Tracks::Numbered,
        nests: true,
        flow: &[FlowPoint { end: End::Target, pick: Pick::Last, purposes: RUNS }],
        programs: RUNS,
    };
}
