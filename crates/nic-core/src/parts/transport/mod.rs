//! Reliable transport against packets lost, damaged, duplicated or delayed by the network.
//!
//! It is off by default, since the sPIN paper assumes a lossless network; the card's spec turns it on. When off,
//! [`Wire`] is only the card's port. It is a go-back-N protocol, like the reliable connections of InfiniBand:
//!
//! - Packets from one card to another are numbered, and accepted only in sequence. The card thus sees every message
//!   once, its header first, and headers in the order of sending.
//! - Each packet carries a computed CRC-32 over header and payload. A packet with a wrong CRC is discarded.
//! - Acknowledgements are cumulative. Duplicates are discarded and acknowledged again. The first packet ahead of
//!   sequence is answered by a refusal with the expected number.
//! - The sender keeps unacknowledged packets, at most a window, and waits when the window is full. After a refusal, or
//!   after [`TransportSpec::timeout`] without progress, it resends from the missing packet on. The timeout doubles each
//!   time, at most six times. After [`TransportSpec::retries`] consecutive timeouts the sender gives the flow up, and
//!   its unacknowledged messages have failed.
//! - A card that waits for a reply to an acknowledged message probes the other card. The interval of probes is
//!   [`TransportSpec::patience`], the time after which a card gives up. A probe is a packet with only a number, and is
//!   acknowledged like any other packet. A card that has given up the flow sends farewells as its acknowledgements. A
//!   missing reply is thus detected within a bounded time ([`Wire::answers`]).
//! - Acknowledgements, refusals and probes use the control channel, which takes no buffer space, so they never wait for
//!   data that waits for them. The network may lose them, too.
//!
//! A packet out of sequence is discarded, because it would occupy the packet buffer until the missing packet arrives. A
//! buffer full of such packets would have no room for the missing packets.
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

/// The transport's part of a card's spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportSpec {
    /// Whether reliable transport is on.
    pub reliable: bool,
    /// The most unacknowledged packets to one card.
    pub window: u32,
    /// Time from the last progress to a resend.
    pub timeout: Duration,
    /// The most consecutive timeouts before the flow fails.
    pub retries: u32,
    /// Time to check a received packet.
    pub check: Duration,
    /// Transport header in bytes; the link's packet sizes include it.
    pub header: u64,
    /// Bytes of an acknowledgement without headers.
    pub ack: u64,
}

/// Counters of a card's transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TransportStatistics {
    /// Retransmissions.
    pub retransmitted: u64,
    /// Packets discarded because of a wrong CRC.
    pub corrupted: u64,
    /// Duplicates discarded.
    pub duplicated: u64,
    /// Packets discarded because an earlier one was missing.
    pub out_of_order: u64,
    /// Acknowledgements sent.
    pub acknowledgements: u64,
    /// Refusals sent.
    pub refusals: u64,
    /// Timeouts.
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
    /// Packets discarded for any reason.
    pub const fn discarded(&self) -> u64 {
        self.corrupted + self.duplicated + self.out_of_order
    }
}
