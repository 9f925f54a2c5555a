//! The symbols on a wire.

use crate::{PacketBox, Pause, Transit};
use nicety_types::{Stage, Time};
use serde::{Deserialize, Serialize};

/// The symbols on a wire. Units on a wire are credits: a slot of the packet buffer is free again at their sender.
#[derive(Debug, Serialize, Deserialize)]
pub enum Symbol {
    /// A packet, whole.
    Packet(PacketBox),
    /// The first byte of a packet, entering a switch.
    Head {
        /// The packet, with its time accounted for until its first byte has arrived.
        packet: Transit,
        /// The time at which its last byte arrives.
        tail: Time,
        /// The stage to which the time from first to last byte belongs.
        slowest: Stage,
    },
    /// A packet of this virtual channel was lost. In a network with credits, the receiver returns the packet's credit.
    Lost(u8),
    /// A pause frame, whole.
    Pause(Pause),
    /// From or to the launcher: a program has reached a barrier, or may leave it.
    Barrier,
}
