//! The resources that only this card has.

use nicety_types::{ResourceKind, Tracks};

nicety_types::resources! {
    /// Messages that arrived before their receives, from the time of matching.
    pub const UNEXPECTED = ResourceKind {
        name: "unexpected messages",
        place: 90,
        tracks: Tracks::One,
        nests: false,
        flow: &[],
        programs: &[],
    };
}
