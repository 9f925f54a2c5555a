//! The stages of a message that are specific to this card.

nicety_types::stages! {
    /// All stages.
    pub const STAGES;

    /// The driver works on the host's CPU: mailboxes, page lists, doorbells.
    pub const DRIVER = 80, "driver";
    /// A manager of the card moves a channel's mailbox, or starts its move by DMA.
    pub const MANAGER = 120, "manager";
    /// A message waits for a manager.
    pub const MANAGER_QUEUED = 130, "manager, queued";
    /// A process on the card does its own work.
    pub const PROCESS = 340, "process";
    /// A message waits for its receiver.
    pub const RECEIVER = 350, "receiver";
    /// DMA reads or writes a memory of the card.
    pub const CARD_MEMORY = 360, "card memory";
}
