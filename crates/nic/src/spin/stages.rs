//! The stages of a message that only this card has.

nicety_types::stages! {
    /// All of them.
    pub const STAGES;

    /// The matching unit's service.
    pub const MATCH = 280, "match";
    /// Waiting for the matching unit.
    pub const MATCH_QUEUED = 290, "match, queued";
    /// The card computes an atomic operation.
    pub const ATOMIC = 300, "atomic";
    /// Waiting for the atomic operations before it.
    pub const ATOMIC_QUEUED = 310, "atomic, queued";
    /// A handler runs.
    pub const HANDLER = 320, "handler";
    /// Waiting for a handler processor.
    pub const HANDLER_QUEUED = 330, "handler, queued";
    /// A completed message waits for the ones before it.
    pub const IN_ORDER = 400, "completion order";
}
