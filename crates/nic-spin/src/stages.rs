//! The stages of a message that only this card has.

nicety_types::stages! {
    /// All stages.
    pub const STAGES;

    /// The card executes an atomic operation.
    pub const ATOMIC = 300, "atomic";
    /// Waiting for earlier atomic operations.
    pub const ATOMIC_QUEUED = 310, "atomic, queued";
    /// A message that is complete waits for earlier messages.
    pub const IN_ORDER = 400, "completion order";
}
