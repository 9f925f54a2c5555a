//! Handlers that are ready to run, and their packets.

use crate::programs::program::Kind;
use nicety_fabric::{Packet, PacketBox};
use nicety_types::{MessageId, Path, Time};
use std::ops::{Deref, DerefMut};

/// A packet in the packet buffer, with the fields of its header.
pub struct Arrived {
    /// The message it is part of.
    pub message: MessageId,
    /// Offset of its payload in the message, in bytes.
    pub offset: u64,
    /// The time at which the whole packet is in the packet buffer, where clusters copy it from there.
    pub written: Time,
    /// The packet.
    pub packet_box: PacketBox,
}

impl Deref for Arrived {
    type Target = Packet;
    fn deref(&self) -> &Packet {
        &self.packet_box
    }
}

impl DerefMut for Arrived {
    fn deref_mut(&mut self) -> &mut Packet {
        &mut self.packet_box
    }
}

/// The position of a run's packet in each buffer, from the start of the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// Offset in the packet buffer.
    pub buffer: Option<u32>,
    /// Offset in the memory of its cluster.
    pub cluster: Option<u32>,
}

/// The times at which the run of a packet got its places.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stay {
    /// The packet got slots in the packet buffer.
    pub admitted: Time,
    /// The run was assigned to a cluster.
    pub assigned: Time,
    /// The packet got slots in the cluster.
    pub placed: Time,
    /// The handler began.
    pub began: Time,
}

/// A handler ready to run.
pub struct Run {
    /// Index of its message among the messages in progress.
    pub place: usize,
    /// The kind of the handler.
    pub kind: Kind,
    /// The packet, for header and payload handlers.
    pub packet: Option<Arrived>,
    /// The path up to the time at which it became ready.
    pub path: Path,
    /// The slots of its packet, on a card with clusters, and the times of its allocations.
    pub slots: Slots,
    /// The times at which it got its places.
    pub stay: Stay,
}

impl Run {
    /// Returns a run that is ready now.
    pub fn new(place: usize, kind: Kind, packet: Option<Arrived>, path: Path) -> Run {
        Run { place, kind, packet, path, slots: Slots::default(), stay: Stay::default() }
    }

    /// Returns the bytes of its packet.
    pub fn packet_bytes(&self) -> u64 {
        self.packet.as_ref().map_or(0, |packet| packet.payload.len())
    }
}
