//! The symbols on a wire.

use crate::{PacketBox, Pause, Transit};
use nicety_types::{Stage, Time};
use serde::{Deserialize, Serialize};

/// The symbols on a wire. A unit on a wire is a credit: a slot of the buffer at the sender of the unit is free again.
#[derive(Debug, Serialize, Deserialize)]
pub enum Symbol {
    /// A complete packet.
    Packet(PacketBox),
    /// The first byte of a packet, entering a switch.
    Head {
        /// The packet. Its time is accounted for until the arrival of its first byte.
        packet: Transit,
        /// The time at which the packet's last byte arrives.
        tail: Time,
        /// The stage to which the time from the first to the last byte is accounted.
        slowest: Stage,
    },
    /// Reports the loss of a packet of this virtual channel. In a network with credits, the receiver returns the
    /// packet's credit.
    Lost(u8),
    /// A complete pause frame.
    Pause(Pause),
    /// From a host to the launcher: the host's program has reached a barrier. From the launcher: the program may leave
    /// it.
    Barrier,
}
