//! Reliable transport: what a card does about packets that the network loses, damages, doubles or delays.
//!
//! It is off unless the card's spec says otherwise, since the sPIN paper assumes a network without losses; then [`Wire`]
//! is the card's port and nothing else. Switched on, it goes back to the first packet that is missing, as the reliable
//! connections of InfiniBand do:
//!
//! - Packets from one card to another are numbered. The receiver takes them in order of their numbers only, so the card
//!   behind it sees every message once, its header first, and headers in the order in which they were sent.
//! - Each carries a CRC-32 over header and payload, really computed. A packet that fails it is discarded.
//! - What has been taken is acknowledged, all of it by one number. Packets that were here before are discarded and
//!   acknowledged again. The first one that is ahead of what is expected is refused, which names what is expected.
//! - The sender keeps what is not acknowledged, at most a window, and waits when that is full. Refused, or after
//!   [`TransportSpec::timeout`] without progress, it sends everything from the missing packet on again. The timeout
//!   doubles each time, six times at most; after [`TransportSpec::retries`] in a row nothing more is sent to that
//!   card, and the messages that it has not acknowledged have failed.
//! - A card that waits for an answer to what was acknowledged asks whether the other is still there, each time after the time
//!   that the other needs to give up. It asks with a packet that has a number and nothing else, which has to be acknowledged
//!   as any other. A card that has given up says so in its acknowledgements. So answers that will never come are known to be
//!   missing after a bounded time ([`Wire::answers`]).
//! - Acknowledgements, refusals and questions go over the control channel, which needs no place in any buffer, so they never wait for
//!   data that waits for them. They may be lost themselves.
//!
//! A packet out of order is discarded, not kept: to keep it would take a place in the packet buffer until the missing one
//! comes, and cards whose buffers are full of such packets have no place for those that are missing.
//!
//! | part | file |
//! |---|---|
//! | the two ends of a flow, without time | `flow.rs` |
//! | what a packet carries, and its CRC | `frame.rs` |
//! | the same in time, between card and port | `wire.rs` |

mod flow;
mod frame;
mod wire;

use flow::DOUBLINGS;
pub use flow::{Arrived, Expired, Receiving, Sending};
pub use frame::{FRAME_BYTES, Frame, Kind};
pub use wire::{Launched, Turn, Undelivered, Wire};

use nicety_types::Duration;

/// How a card's transport is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportSpec {
    /// Whether there is any.
    pub reliable: bool,
    /// Packets to one card that may be under way unacknowledged.
    pub window: u32,
    /// From the last progress until packets are sent again.
    pub timeout: Duration,
    /// How often in a row, until they have failed.
    pub retries: u32,
    /// Checking a packet that came.
    pub check: Duration,
    /// Bytes that a packet has more on the wire; they are among those of the link already.
    pub header: u64,
    /// Bytes of an acknowledgement beside headers.
    pub ack: u64,
}

/// What a card's transport has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportStatistics {
    /// Packets sent again.
    pub retransmitted: u64,
    /// Packets discarded because their CRC was wrong.
    pub corrupted: u64,
    /// Packets discarded because they had come before.
    pub duplicated: u64,
    /// Packets discarded because one before them was missing.
    pub out_of_order: u64,
    /// Acknowledgements sent.
    pub acknowledgements: u64,
    /// Refusals sent.
    pub refusals: u64,
    /// How often nothing had come in time.
    pub timeouts: u64,
}

impl TransportSpec {
    /// How long a card tries until it gives up.
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
