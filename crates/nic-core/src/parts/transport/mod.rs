//! Reliable transport. It recovers from packets that the network loses, damages, duplicates or delays.
//!
//! Reliable transport is off by default, since the sPIN paper assumes a lossless network. The card's spec turns it on.
//! If it is off, [`Wire`] is only the card's port. The protocol is go-back-N, like the reliable connections of
//! InfiniBand:
//!
//! - Packets from one card to another are numbered, and accepted only in sequence. So the card sees every message once,
//!   its header first, and headers in the order in which they were sent.
//! - Each packet has a computed CRC-32 over header and payload. A packet with a wrong CRC is discarded.
//! - Acknowledgements are cumulative. Duplicates are discarded and acknowledged again. If a packet is missing, the
//!   first packet that arrives after the gap is answered by a refusal with the missing number.
//! - The sender keeps unacknowledged packets, at most a window of them, and waits when the window is full. It resends
//!   from the missing packet on after a refusal, or after [`TransportSpec::timeout`] without progress. The timeout
//!   doubles each time, at most six times. After [`TransportSpec::retries`] consecutive timeouts the sender gives up
//!   the flow, and its unacknowledged messages have failed.
//! - A card that waits for a reply to an acknowledged message sends probes to the remote card. The interval of probes
//!   is [`TransportSpec::patience`], the time after which a card gives up a flow. A probe is a packet with only a
//!   number, and is acknowledged like any other packet. If the remote card has given up its flow to this card, it sends
//!   farewells as its acknowledgements. So a missing reply is detected within a bounded time ([`Wire::answers`]).
//! - Acknowledgements, refusals and probes use the control channel, which takes no buffer space. So they never wait for
//!   data that waits for them. The network may lose them, too.
//!
//! A packet out of sequence is discarded. Otherwise it would occupy the packet buffer until the missing packet arrives.
//! A buffer full of such packets would have no room for the missing packet.
//!
//! | part | file |
//! |---|---|
//! | the two ends of a flow, without simulated time | `flow.rs` |
//! | the transport header and its CRC | `frame.rs` |
//! | flows and headers in simulated time, between card and port | `wire.rs` |

mod flow;
mod frame;
pub mod stages;
mod wire;

use flow::DOUBLINGS;
pub use flow::{Arrived, Expired, Receiving, Sending};
pub use frame::checksum;
pub use frame::{FRAME_BYTES, Frame, Kind};
pub use wire::{Launched, Turn, Undelivered, Wire};

use nicety_types::Duration;
use schemars::JsonSchema;
use serde::Serialize;

/// The specification of a card's reliable transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportSpec {
    /// Whether reliable transport is on.
    pub reliable: bool,
    /// Maximum number of unacknowledged packets to one card.
    pub window: u32,
    /// Time from the last progress of a flow to a resend.
    pub timeout: Duration,
    /// Maximum number of consecutive timeouts before the flow fails.
    pub retries: u32,
    /// Time to check a received packet.
    pub check: Duration,
    /// Size of the transport header in bytes. The packet sizes of the link include it.
    pub header: u64,
    /// Size of an acknowledgement in bytes, without headers.
    pub ack: u64,
}

/// Counters of a card's transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TransportStatistics {
    /// Number of retransmissions.
    pub retransmitted: u64,
    /// Number of packets discarded because of a wrong CRC.
    pub corrupted: u64,
    /// Number of duplicates discarded.
    pub duplicated: u64,
    /// Number of packets discarded because an earlier packet was missing.
    pub out_of_order: u64,
    /// Number of acknowledgements sent.
    pub acknowledgements: u64,
    /// Number of refusals sent.
    pub refusals: u64,
    /// Number of timeouts.
    pub timeouts: u64,
}

impl TransportSpec {
    /// The time from the last progress of a flow until its sender gives it up.
    pub fn patience(&self) -> Duration {
        let (doubling, longest) = (u64::from(self.retries.min(DOUBLINGS)), u64::from(self.retries));
        let timeouts = (2 << doubling) - 1 + (longest - doubling) * (1 << DOUBLINGS);
        Duration::from_ps(self.timeout.ps().saturating_mul(timeouts))
    }
}

impl TransportStatistics {
    /// Number of packets discarded for any reason.
    pub const fn discarded(&self) -> u64 {
        self.corrupted + self.duplicated + self.out_of_order
    }
}
