//! The parts of a card and its host that can be the bottleneck of a line-rate check.

use schemars::JsonSchema;
use serde::Serialize;

/// A part of a card or its host: a bottleneck, or one with headroom. `lock`: a word that one handler at a time holds.
/// `contended word`: a word that handlers change only if it is unchanged. `cache misses`: handler cores wait for lines, and would
/// keep up without. `packet buffer`: no part has too much load, and the sender waits for credits, or packets are lost. `waiting`:
/// no part has too much load, and handlers wait for one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Part {
    /// The cores that execute handlers.
    #[default]
    #[serde(rename = "handler cores")]
    HandlerCores,
    /// The issue of instructions, where the hardware threads of a core share it.
    #[serde(rename = "instruction issue")]
    InstructionIssue,
    /// The matching unit.
    #[serde(rename = "matching unit")]
    MatchingUnit,
    /// The card's own link, with the packets that handlers send.
    #[serde(rename = "link")]
    Link,
    /// The host bus, towards the card.
    #[serde(rename = "bus to card")]
    BusToCard,
    /// The host bus, towards host memory.
    #[serde(rename = "bus to host")]
    BusToHost,
    /// The send engine of a card of Portals messages.
    #[serde(rename = "send engine")]
    SendEngine,
    /// The writer of the packet buffer, on a card with clusters.
    #[serde(rename = "packet writer")]
    PacketWriter,
    /// The DMA engine of a cluster.
    #[serde(rename = "cluster DMA")]
    ClusterDma,
    /// The sender of handlers' packets, on a card with clusters.
    #[serde(rename = "packet sender")]
    PacketSender,
    /// The command engine of a cluster, for handlers written for PsPIN.
    #[serde(rename = "command engine")]
    CommandEngine,
    /// The channel between command engines and the card's memories.
    #[serde(rename = "memory channel")]
    MemoryChannel,
    /// The places of packets in clusters (`hpu.packets.in_flight`).
    #[serde(rename = "packets in flight")]
    PacketsInFlight,
    /// The slots of packets, in the packet buffer or in the clusters' memories.
    #[serde(rename = "packet slots")]
    PacketSlots,
    /// A word that one handler at a time holds.
    #[serde(rename = "lock")]
    Lock,
    /// A word that handlers change only if it is unchanged.
    #[serde(rename = "contended word")]
    ContendedWord,
    /// A bank of a shared level of memory.
    #[serde(rename = "memory bank")]
    MemoryBank,
    /// The waits for lines of data caches: with hits only, the cores would keep up.
    #[serde(rename = "cache misses")]
    CacheMisses,
    /// The part of the host that takes frames.
    #[serde(rename = "host")]
    Host,
    /// The packet buffer: the sender waits for credits, or packets are lost.
    #[serde(rename = "packet buffer")]
    PacketBuffer,
    /// The contexts of messages that handlers have not finished (`hpu.contexts`).
    #[serde(rename = "message contexts")]
    MessageContexts,
    /// No part has too much load: handlers wait for one another.
    #[serde(rename = "waiting")]
    Waiting,
}

impl Part {
    /// The name in reports.
    pub(super) fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => unreachable!("each part is a name"),
        }
    }
}
