//! The stages of a message that only this card has.

nicety_types::stages! {
    /// All of them.
    pub const STAGES;

    /// A driver's own work on the host's CPU: mailboxes, page lists, doorbells.
    pub const DRIVER = 80, "driver";
    /// A manager of the card moves a channel's mailbox, or has it moved.
    pub const MANAGER = 120, "manager";
    /// Waiting for a manager.
    pub const MANAGER_QUEUED = 130, "manager, queued";
    /// A process of the card does its own work.
    pub const PROCESS = 340, "process";
    /// A message waits until its receiver comes for it.
    pub const RECEIVER = 350, "receiver";
    /// DMA reads or writes a memory of the card.
    pub const CARD_MEMORY = 360, "card memory";
}
