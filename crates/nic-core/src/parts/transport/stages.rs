//! The stages of a message under reliable transport.

nicety_types::stages! {
    /// All stages.
    pub const STAGES;

    /// Reliable transport: a packet is checked, or its acknowledgement is in flight.
    pub const TRANSPORT = 230, "transport";
    /// Waiting for room in the window of unacknowledged packets.
    pub const TRANSPORT_QUEUED = 240, "transport, queued";
    /// Waiting for the retransmission of lost packets.
    pub const RETRANSMIT = 250, "transport, retransmit";
}
