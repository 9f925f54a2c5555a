//! The packet scheduler of a card whose handler processors are in clusters: `[hpu.packets]`.

use nicety_spec::Reader;

/// How packets come to clusters of handler processors, in cycles of their clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketsSpec {
    /// Bytes that are moved in a cycle.
    pub beat: u64,
    /// From when a packet is whole in the packet buffer until it is assigned to a cluster.
    pub schedule: u64,
    /// Latency of a copy to a cluster's memory.
    pub copy: u64,
    /// From the end of a handler and its commands until its packet has left.
    pub feedback: u64,
    /// Packets of a cluster, waiting and in handlers.
    pub in_flight: u32,
    /// Bursts that a cluster's copies have in flight.
    pub copies: u32,
    /// Bytes of a burst.
    pub burst: u64,
    /// What an access to a packet takes longer while packets stream into its cluster.
    pub conflict: u32,
}

/// Reads `[hpu.packets]`.
pub(super) fn read(reader: &Reader<'_>) -> PacketsSpec {
    let s = reader.section("hpu.packets");
    let cycles = |key, doc| s.count(key, 0..=1_000_000, doc);
    let spec = PacketsSpec {
        beat: s.size("beat", 1..=4096, "bytes of a packet that are moved in a cycle"),
        schedule: cycles(
            "schedule",
            "cycles from when a packet is whole in its buffer until a cluster has it",
        ),
        copy: cycles("copy", "cycles of a copy to a cluster's memory, beside those of its bytes"),
        feedback: cycles(
            "feedback",
            "cycles from the end of a handler and its commands until its packet has left",
        ),
        in_flight: s.count("in_flight", 1..=1 << 20, "packets of a cluster, waiting and in handlers") as u32,
        copies: s.count("copies", 1..=1024, "bursts that the copies of a cluster have in flight") as u32,
        burst: s.size("burst", 1..=1 << 20, "most bytes of a burst of a copy"),
        conflict: s.count_or(
            "conflict",
            0..=1000,
            0,
            "cycles that an access to a packet takes longer while packets stream into its cluster",
        ) as u32,
    };
    if !spec.burst.is_multiple_of(spec.beat) {
        s.refuse(
            "burst",
            &format!("bursts of {} bytes do not divide into beats of {} bytes", spec.burst, spec.beat),
            &format!("write for example \"{} B\"", spec.burst.next_multiple_of(spec.beat)),
        );
    }
    spec
}
