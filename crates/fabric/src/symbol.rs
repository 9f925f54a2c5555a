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
        /// When its last byte arrives.
        tail: Time,
        /// The stage of the time from first to last byte.
        slowest: Stage,
    },
    /// A lost packet of this virtual channel. It takes no slot.
    Lost(u8),
    /// A pause frame, whole.
    Pause(Pause),
    /// From or to the launcher: a program has reached a barrier, or may leave it.
    Barrier,
}
