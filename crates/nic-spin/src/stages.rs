//! The stages of a message that only this card has.

nicety_types::stages! {
    /// All stages.
    pub const STAGES;

    /// The card carries out an atomic operation.
    pub const ATOMIC = 300, "atomic";
    /// Waiting for earlier atomic operations.
    pub const ATOMIC_QUEUED = 310, "atomic, queued";
    /// A completed message waits for earlier messages.
    pub const IN_ORDER = 400, "completion order";
}
