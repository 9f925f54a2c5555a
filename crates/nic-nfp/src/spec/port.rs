//! The spec of the Ethernet port.

use nicety_spec::Reader;

/// The spec of the port. Durations are in cycles.
#[derive(Clone, Copy, Debug)]
pub struct PortSpec {
    /// Maximum payload of a frame, in bytes.
    pub payload: u64,
    /// Minimum payload of a frame, in bytes. A shorter payload is padded to this size.
    pub least: u64,
    /// Capacity of the transmit queue in frames.
    pub queue: u64,
    /// Cycles to send a frame.
    pub send: u64,
    /// Cycles to give a received frame to a process.
    pub receive: u64,
}

/// Reads the section `port`.
pub(super) fn read(reader: &Reader<'_>) -> PortSpec {
    let s = reader.section("port");
    PortSpec {
        payload: s.size("payload", 46..=9000, "maximum payload of a frame"),
        least: s.size("least", 0..=1500, "minimum payload of a frame; a shorter payload is padded"),
        queue: s.count("queue", 1..=65_536, "frames that the transmit queue holds"),
        send: s.count("send", 0..=10_000_000, "cycles to send a frame"),
        receive: s.count("receive", 0..=10_000_000, "cycles to give a received frame to a process"),
    }
}
