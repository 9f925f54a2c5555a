//! The stages of a message on a card with handler cores.

nicety_types::stages! {
    /// All stages.
    pub const STAGES;

    /// The matching unit's service.
    pub const MATCH = 280, "match";
    /// Waiting for the matching unit.
    pub const MATCH_QUEUED = 290, "match, queued";
    /// The packet scheduler assigns a packet to a cluster once the cluster has room.
    pub const SCHEDULE = 312, "packet scheduler";
    /// The copy of a packet to the memory of its cluster.
    pub const COPY = 314, "packet copy";
    /// The run of a handler.
    pub const HANDLER = 320, "handler";
    /// The execution of a command by a processor's command unit.
    pub const COMMAND = 325, "command unit";
    /// Waiting for a handler core.
    pub const HANDLER_QUEUED = 330, "handler, queued";
    /// The feedback to the card that a handler and its commands have ended.
    pub const FEEDBACK = 340, "feedback";
}
