//! The section of reliable transport in a card's spec.

use crate::parts::transport::TransportSpec;
use nicety_spec::Reader;

/// Reads `[transport]`. All keys are optional. Reliable transport is off by default.
pub fn read(reader: &Reader<'_>) -> TransportSpec {
    let s = reader.section("transport");
    let timeout = s.time_or("timeout", "100 us", "time without progress until packets are resent");
    if timeout.is_zero() {
        s.refuse(
            "timeout",
            "a timeout of 0 expires before any packet can arrive",
            "write for example \"100 us\"",
        );
    }
    TransportSpec {
        reliable: s.flag_or("reliable", false, "whether the card resends packets that the network loses"),
        window: s.count_or("window", 1..=1 << 20, 64, "maximum number of unacknowledged packets to one card")
            as u32,
        timeout,
        retries: s.count_or("retries", 0..=1 << 20, 7, "consecutive timeouts after which messages fail")
            as u32,
        check: s.time_or("check", "0 ns", "time to check a received packet"),
        header: s.size_or(
            "header",
            0..=4096,
            "20 B",
            "bytes that the transport adds to a packet on the link",
        ),
        ack: s.size_or("ack", 0..=4096, "0 B", "bytes of an acknowledgement without headers"),
    }
}
