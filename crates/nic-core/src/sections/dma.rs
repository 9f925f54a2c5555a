//! The section of a DMA engine in a card's spec.

use crate::parts::EngineSpec;
use nicety_spec::Reader;

/// Reads `[dma]`: the channels of an engine.
pub fn read(reader: &Reader<'_>) -> EngineSpec {
    let s = reader.section("dma");
    EngineSpec {
        channels: s.count("channels", 1..=64, "channels of the DMA engine") as usize,
        setup: s.time("setup", "a channel's time before a transfer uses the bus"),
    }
}
