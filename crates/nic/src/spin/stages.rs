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
    /// The packet scheduler assigns a packet to a cluster, when there is room in one.
    pub const SCHEDULE = 312, "packet scheduler";
    /// A packet is copied to its cluster's memory.
    pub const COPY = 314, "packet copy";
    /// A handler runs.
    pub const HANDLER = 320, "handler";
    /// The command unit of a processor carries a command out.
    pub const COMMAND = 325, "command unit";
    /// Waiting for a handler processor.
    pub const HANDLER_QUEUED = 330, "handler, queued";
    /// The card learns of a handler's end, after that of its commands.
    pub const FEEDBACK = 340, "feedback";
    /// A completed message waits for the ones before it.
    pub const IN_ORDER = 400, "completion order";
}
