//! The stages of a message that only this card has.

nicety_types::stages! {
    /// All stages.
    pub const STAGES;

    /// Execution of an atomic operation on the card.
    pub const ATOMIC = 300, "atomic";
    /// Waiting for earlier atomic operations.
    pub const ATOMIC_QUEUED = 310, "atomic, queued";
    /// Waiting of a completed message for earlier ones.
    pub const IN_ORDER = 400, "completion order";
}
