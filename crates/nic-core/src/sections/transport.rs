//! Reliable transport in a card's spec.

use crate::parts::transport::TransportSpec;
use nicety_spec::Reader;

/// Reads `[transport]`. All keys are optional; reliable transport is off by default.
pub fn read(reader: &Reader<'_>) -> TransportSpec {
    let s = reader.section("transport");
    let timeout = s.time_or("timeout", "100 us", "without progress, until packets are sent again");
    if timeout.is_zero() {
        s.refuse(
            "timeout",
            "a timeout of 0 is over before anything can come",
            "write for example \"100 us\"",
        );
    }
    TransportSpec {
        reliable: s.flag_or("reliable", false, "packets that the network loses are sent again"),
        window: s.count_or("window", 1..=1 << 20, 64, "packets to one card that may be unacknowledged")
            as u32,
        timeout,
        retries: s.count_or("retries", 0..=1 << 20, 7, "timeouts in a row, until messages have failed")
            as u32,
        check: s.time_or("check", "0 ns", "checking a packet that came"),
        header: s.size_or("header", 0..=4096, "20 B", "bytes that a packet has more on the link"),
        ack: s.size_or("ack", 0..=4096, "0 B", "bytes of an acknowledgement beside headers"),
    }
}
