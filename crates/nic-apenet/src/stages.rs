//! The stages of a message that are specific to this card.

nicety_types::stages! {
    /// All stages.
    pub const STAGES;

    /// The driver turns a buffer into descriptors, and writes them to the transmit ring.
    pub const DRIVER = 55, "driver";
    /// A message waits until receives take earlier messages, or for a buffer of the library.
    pub const WINDOW_QUEUED = 45, "window, queued";
    /// An operation waits for the driver, or for a free descriptor of the transmit ring.
    pub const RING_QUEUED = 57, "transmit ring, queued";
    /// The card fetches descriptors from the transmit ring.
    pub const DESCRIPTOR = 120, "descriptors";
    /// Descriptors wait until the card fetches them.
    pub const DESCRIPTOR_QUEUED = 130, "descriptors, queued";
    /// A lookup in the TLB.
    pub const TLB = 280, "tlb";
    /// The embedded processor translates an address that the TLB does not have.
    pub const TRANSLATION = 290, "translation";
    /// A translation waits for the embedded processor.
    pub const TRANSLATION_QUEUED = 300, "translation, queued";
    /// The driver copies an event to the queue of its process.
    pub const EVENT = 425, "event";
    /// An event waits until the event's process, or the driver, looks for it.
    pub const EVENT_QUEUED = 427, "event, queued";
    /// The embedded processor changes its table of registered memory.
    pub const REGISTER = 75, "register";
    /// A registration waits for the embedded processor.
    pub const REGISTER_QUEUED = 77, "register, queued";
}
