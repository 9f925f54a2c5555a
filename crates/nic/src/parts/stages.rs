//! The stages of a message at parts that several designs may have.

nicety_types::stages! {
    /// Those of the channels of a DMA engine.
    pub const ENGINE;

    /// A DMA channel is set up.
    pub const DMA_SETUP = 160, "dma set-up";
    /// Waiting for a DMA channel.
    pub const DMA_QUEUED = 170, "dma, queued";
}
