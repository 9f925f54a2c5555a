//! The interconnect between a card's engines, the memories of its clusters and its host: `[hpu.interconnect]`.

use nicety_spec::Reader;

/// The sharing of a card's memories by transfers of the engines, in beats of `hpu.commands.beat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterconnectSpec {
    /// Transactions in flight for an engine's reads, and for its writes.
    pub transactions: u32,
    /// Cycles from the last beat of a transaction to the first beat of one that waited for it.
    pub turn: u64,
    /// Boundary of a burst: a burst ends at a multiple of this many bytes.
    pub burst: u64,
    /// Cycles between two bursts of an engine, without their beats.
    pub burst_gap: u64,
    /// Bursts in flight to the host, and likewise from it.
    pub host_bursts: u32,
}

const KEYS: [&str; 5] = ["transactions", "turn", "burst", "burst_gap", "host_bursts"];

/// Reads `[hpu.interconnect]`, if it is present. Without it, transfers of engines do not wait for one another.
pub(super) fn read(reader: &Reader<'_>) -> Option<InterconnectSpec> {
    let s = reader.section("hpu.interconnect");
    if !KEYS.iter().any(|key| s.has(key)) {
        return None;
    }
    Some(InterconnectSpec {
        transactions: s.count(
            "transactions",
            1..=1024,
            "transactions in flight of an engine's reads, or of its writes, to one memory; before it \
             accesses another memory, it waits for all",
        ) as u32,
        turn: s.count(
            "turn",
            1..=1024,
            "cycles from the last beat of a transaction to the first of one that waited for its end",
        ),
        burst: s.size("burst", 64..=1 << 20, "boundary that no burst of DMA crosses, in bytes"),
        burst_gap: s.count(
            "burst_gap",
            0..=1024,
            "cycles between two bursts of an engine, in addition to their beats",
        ),
        host_bursts: s.count(
            "host_bursts",
            1..=1024,
            "bursts of DMA in flight to the host, and the same number from the host",
        ) as u32,
    })
}
