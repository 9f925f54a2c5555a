//! The stages of a message at components that several designs share.

nicety_types::stages! {
    /// Stages of the channels of a DMA engine.
    pub const ENGINE;

    /// A DMA channel is set up.
    pub const DMA_SETUP = 160, "dma set-up";
    /// Waiting for a DMA channel.
    pub const DMA_QUEUED = 170, "dma, queued";
}

nicety_types::stages! {
    /// Stages of a graphics processor's memory.
    pub const GPU_MEMORY;

    /// A graphics processor reads or writes its memory for the card, at a lower rate than the bus.
    pub const GPU = 192, "gpu memory";
    /// Waiting for a graphics processor's memory.
    pub const GPU_QUEUED = 194, "gpu memory, queued";
}
