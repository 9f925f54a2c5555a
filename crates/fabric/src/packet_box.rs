//! Packets in recycled memory. Wires and switches pass a pointer, so the bytes of a packet are not copied on its way.

use crate::Packet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Maximum number of free boxes in a thread's pool: about 8 MiB.
const POOLED: usize = (8 << 20) / size_of::<Packet>();

/// Memory for a packet, behind a pointer so that it stays in place.
type Memory = Box<Option<Packet>>;

thread_local! {
    static POOL: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

/// A packet in a recycled box.
pub struct PacketBox(Option<Memory>);

impl PacketBox {
    /// Puts a packet into a box.
    #[inline]
    pub fn new(packet: Packet) -> PacketBox {
        match POOL.with_borrow_mut(Vec::pop) {
            Some(mut pooled) => {
                *pooled = Some(packet);
                PacketBox(Some(pooled))
            }
            None => PacketBox(Some(Box::new(Some(packet)))),
        }
    }

    /// Removes the packet from its box and returns it.
    pub fn open(mut self) -> Packet {
        self.0.as_mut().and_then(|pooled| pooled.take()).expect(FULL)
    }
}

impl From<Packet> for PacketBox {
    fn from(packet: Packet) -> PacketBox {
        PacketBox::new(packet)
    }
}

const FULL: &str = "a box has a packet until it is opened";

impl Deref for PacketBox {
    type Target = Packet;
    #[inline]
    fn deref(&self) -> &Packet {
        self.0.as_ref().and_then(|pooled| pooled.as_ref().as_ref()).expect(FULL)
    }
}

impl DerefMut for PacketBox {
    #[inline]
    fn deref_mut(&mut self) -> &mut Packet {
        self.0.as_mut().and_then(|pooled| pooled.as_mut().as_mut()).expect(FULL)
    }
}

impl Drop for PacketBox {
    fn drop(&mut self) {
        let Some(mut pooled) = self.0.take() else { return };
        *pooled = None;
        // A thread that is ending has already dropped its pool, so its boxes are freed.
        let _ = POOL.try_with(|pool| {
            let pool = &mut *pool.borrow_mut();
            if pool.len() < POOLED {
                pool.push(pooled);
            }
        });
    }
}

impl Serialize for PacketBox {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(to)
    }
}

impl<'de> Deserialize<'de> for PacketBox {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PacketBox, D::Error> {
        Packet::deserialize(from).map(PacketBox::new)
    }
}

impl fmt::Debug for PacketBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
