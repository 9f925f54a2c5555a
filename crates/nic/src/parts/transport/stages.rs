//! The stages of a message under reliable transport.

nicety_types::stages! {
    /// All of them.
    pub const STAGES;

    /// Reliable transport: a packet is checked, or its acknowledgement is in flight.
    pub const TRANSPORT = 230, "transport";
    /// Waiting for room among the packets that are not acknowledged yet.
    pub const TRANSPORT_QUEUED = 240, "transport, queued";
    /// Waiting until lost packets are sent again.
    pub const RETRANSMIT = 250, "transport, retransmit";
}
