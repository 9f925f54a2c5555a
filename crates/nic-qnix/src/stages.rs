//! The stages of a message that are specific to this card.

nicety_types::stages! {
    /// All stages.
    pub const STAGES;

    /// The card's control program processes the message.
    pub const CONTROL = 140, "control program";
    /// The message waits for the card's control program.
    pub const CONTROL_QUEUED = 150, "control program, queued";
    /// The set-up of a DMA channel for the doorbell of a completion.
    pub const DOORBELL = 390, "doorbell";
    /// An arrived message waits for the thread of the host's library.
    pub const LIBRARY_QUEUED = 392, "library, queued";
}
