//! The stages of a message that only this card has.

nicety_types::stages! {
    /// All of them.
    pub const STAGES;

    /// The card's control program processes it.
    pub const CONTROL = 140, "control program";
    /// Waiting for the card's control program.
    pub const CONTROL_QUEUED = 150, "control program, queued";
    /// A DMA channel is set up to tell the host that something is complete.
    pub const DOORBELL = 390, "doorbell";
    /// A message that has come waits for the thread of the host's library.
    pub const LIBRARY_QUEUED = 392, "library, queued";
}
