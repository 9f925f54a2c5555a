//! The packet scheduler of a card with clusters of handler cores: `[hpu.packets]`.

use crate::spec::pspin_map as map;
use nicety_spec::{Reader, Section};

/// Most bytes of a buffer.
const MOST: u64 = 1 << 30;

/// The path of packets to clusters of handler cores, in cycles of their clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketsSpec {
    /// Bytes moved per cycle.
    pub beat: u64,
    /// Cycles from the time at which a packet is whole in the packet buffer to its assignment to a cluster.
    pub schedule: u64,
    /// Latency of a copy to a cluster's memory.
    pub copy: u64,
    /// Cycles from the end of a handler and its commands until its packet has left.
    pub feedback: u64,
    /// Packets in flight in a cluster, waiting or in handlers.
    pub in_flight: u32,
    /// Bursts in flight for the copies of a cluster.
    pub copies: u32,
    /// Bytes of a burst.
    pub burst: u64,
    /// Bytes of a slot in both of the following memories. A packet takes whole slots.
    pub slot: u64,
    /// Bytes of the packet buffer.
    pub buffer: u64,
    /// Bytes of each cluster's memory for packets.
    pub cluster_buffer: u64,
    /// Groups of banks of a cluster's L1. A beat of DMA occupies one group for a cycle. Zero where DMA does not
    /// contend with cores.
    pub bank_groups: u64,
    /// Rings for the slots of a cluster's memory. Each ring frees its slots in order. 0 where a packet takes the
    /// first free slots.
    pub cluster_rings: u64,
    /// The same for the packet buffer.
    pub buffer_rings: u64,
    /// Packets that are assigned to a cluster and wait for slots there, and feedbacks of a cluster that wait for the
    /// card's scheduler. It takes one of each per cycle. 0 where it takes any number.
    pub cluster_queue: u32,
}

/// Reads `[hpu.packets]`.
pub(super) fn read(reader: &Reader<'_>) -> PacketsSpec {
    let s = reader.section("hpu.packets");
    let cycles = |key, doc| s.count(key, 0..=1_000_000, doc);
    let spec = PacketsSpec {
        beat: s.size("beat", 1..=4096, "bytes of a packet that are moved in a cycle"),
        schedule: cycles("schedule", "cycles from when a packet is whole in its buffer until a cluster has it"),
        copy: cycles("copy", "cycles of a copy to a cluster's memory, in addition to those of its bytes"),
        feedback: cycles(
            "feedback",
            "cycles from the end of a handler and its commands until its packet has left",
        ),
        in_flight: s.count("in_flight", 1..=1 << 20, "packets of a cluster, waiting and in handlers") as u32,
        copies: s.count("copies", 1..=1024, "bursts that the copies of a cluster have in flight") as u32,
        burst: s.size("burst", 1..=1 << 20, "maximum number of bytes of a burst of a copy"),
        slot: s.size_or("slot", 1..=1 << 20, "64 B", "a slot of the packet buffer and of clusters' memories"),
        buffer: s.size_or("buffer", 1..=MOST, "4 MiB", "bytes of the packet buffer, in slots"),
        cluster_buffer: s.size_or(
            "cluster_buffer",
            1..=MOST,
            "64 KiB",
            "bytes of a cluster's memory for packets, in slots",
        ),
        bank_groups: s.count_or(
            "bank_groups",
            0..=64,
            0,
            "groups of banks of a cluster's L1; a beat of DMA takes one for a cycle, the next beat the next one, and a core's access to it waits",
        ),
        cluster_rings: s.count_or(
            "cluster_rings",
            0..=64,
            0,
            "rings of a cluster's memory for packets, each freed in order; 0 where a packet takes the first free slots",
        ),
        buffer_rings: s.count_or(
            "buffer_rings",
            0..=64,
            0,
            "rings of the packet buffer, each freed in order; 0 where a packet takes the first free slots",
        ),
        cluster_queue: s.count_or(
            "cluster_queue",
            0..=1 << 20,
            0,
            "packets of a cluster that wait for slots, and feedbacks that wait for the scheduler, which takes one of each in a cycle; 0 where it takes any number",
        ) as u32,
    };
    check_sizes(&s, &spec);
    spec
}

/// Refuses bursts, slots and rings that do not divide what they are parts of.
fn check_sizes(s: &Section<'_>, spec: &PacketsSpec) {
    if !spec.burst.is_multiple_of(spec.beat) {
        s.refuse(
            "burst",
            &format!("bursts of {} bytes do not divide into beats of {} bytes", spec.burst, spec.beat),
            &format!("write for example \"{} B\"", spec.burst.next_multiple_of(spec.beat)),
        );
    }
    for (key, bytes) in [("buffer", spec.buffer), ("cluster_buffer", spec.cluster_buffer)] {
        if !bytes.is_multiple_of(spec.slot) {
            s.refuse(
                key,
                &format!("{bytes} bytes do not divide into slots of {} bytes", spec.slot),
                &format!("write for example \"{} B\"", bytes.next_multiple_of(spec.slot)),
            );
        }
    }
    for (key, rings, bytes) in [
        ("buffer_rings", spec.buffer_rings, spec.buffer),
        ("cluster_rings", spec.cluster_rings, spec.cluster_buffer),
    ] {
        if rings > 0 && bytes.is_multiple_of(spec.slot) && !bytes.is_multiple_of(rings * spec.slot) {
            s.refuse(
                key,
                &format!(
                    "{bytes} bytes do not divide into {rings} rings of whole slots of {} bytes",
                    spec.slot
                ),
                "write for example 1",
            );
        }
    }
}

impl PacketsSpec {
    /// Refuses buffers too small for the longest packet of `packet` bytes, which would wait for ever. With PsPIN,
    /// also refuses buffers larger than their room in the memory map that handlers see.
    pub fn check(&self, reader: &Reader<'_>, packet: u64, pspin: bool) {
        let s = reader.section("hpu.packets");
        let least = packet.next_multiple_of(self.slot);
        let rooms =
            [("buffer", self.buffer, map::L2_ROOM), ("cluster_buffer", self.cluster_buffer, map::PACKETS)];
        for (key, rings, bytes) in [
            ("buffer_rings", self.buffer_rings, self.buffer),
            ("cluster_rings", self.cluster_rings, self.cluster_buffer),
        ] {
            if rings > 1 && bytes / rings < least && bytes >= least {
                s.refuse(
                    key,
                    &format!(
                        "a ring of {} bytes has no room for the longest packet, of {packet} bytes (packet.payload)",
                        bytes / rings
                    ),
                    &format!("write {} or less", (bytes / least).max(1)),
                );
            }
        }
        for (key, bytes, room) in rooms {
            if bytes < least {
                s.refuse(
                    key,
                    &format!("{bytes} bytes have no room for the longest packet, of {packet} bytes (packet.payload)"),
                    &format!("write \"{least} B\" or more"),
                );
            } else if pspin && bytes > u64::from(room) {
                s.refuse(
                    key,
                    &format!("{bytes} bytes: the memory map of PsPIN has room for {room} bytes"),
                    &format!("write \"{room} B\" or less"),
                );
            }
        }
    }
}

#[cfg(test)]
impl PacketsSpec {
    /// Returns the scheduler of a small card, without rings and without groups of banks.
    pub(crate) const fn of_tests() -> PacketsSpec {
        PacketsSpec {
            beat: 64,
            schedule: 4,
            copy: 16,
            feedback: 1,
            in_flight: 20,
            copies: 2,
            burst: 256,
            slot: 64,
            buffer: 4096,
            cluster_buffer: 1024,
            bank_groups: 4,
            cluster_rings: 0,
            buffer_rings: 0,
            cluster_queue: 0,
        }
    }
}
