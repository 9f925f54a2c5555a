//! The names in calls: threads and channels on the host, contexts and targets on the card.

/// The direction of a message. Each channel has one mailbox per direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the host to the card. The card's read managers serve this direction.
    ToCard,
    /// From the card to the host. The card's write managers serve this direction.
    ToHost,
}

/// The name of a mailbox. Host and card each have a copy of the mailbox, under the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mailbox {
    /// The channel's number, from [`Channel::index`].
    pub channel: u16,
    /// The direction of the mailbox's messages.
    pub direction: Direction,
}

/// A channel between the host and one target. Its name becomes stale when the channel is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel {
    pub(crate) index: u16,
    pub(crate) generation: u16,
}

impl Channel {
    /// Returns the channel's number, which names its mailboxes. A later channel may reuse the number.
    pub const fn index(self) -> u16 {
        self.index
    }

    /// Returns the channel as one number, for a host program.
    pub const fn to_bits(self) -> u32 {
        (self.generation as u32) << 16 | self.index as u32
    }

    /// Returns the channel for a number from [`Channel::to_bits`]. Any other number gives a stale channel.
    pub const fn from_bits(bits: u32) -> Channel {
        Channel { index: bits as u16, generation: (bits >> 16) as u16 }
    }
}

/// The ID of the card's end of a channel. A host subscribes to this ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId(pub u32);

/// A thread of the host. The driver numbers threads from zero. A thread is blocked in at most one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u16);

/// A hardware context of the card, numbered from zero. A context is blocked in at most one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u16);

/// A manager of the card, named by its direction and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManagerId {
    /// [`Direction::ToCard`]: a read manager; [`Direction::ToHost`]: a write manager.
    pub direction: Direction,
    /// The index among the managers of this direction, from zero.
    pub index: u8,
}

/// A range of bytes in a host thread's virtual memory, or in a memory of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// The address of the first byte. On the card at most 40 bits, see [`crate::CARD_ADDRESS_BITS`].
    pub address: u64,
    /// The number of bytes.
    pub bytes: u32,
}

/// The message that a receiver expects, or that a sender sends. Both ends of an exchange must name the same size and
/// kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    /// A direct message of this many bytes.
    Direct(u32),
    /// An indirect message, which is written to this memory or read from it.
    Indirect(Buffer),
}

impl Want {
    /// Returns the size of the message in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Want::Direct(bytes) => bytes,
            Want::Indirect(buffer) => buffer.bytes,
        }
    }

    /// Returns the kind of the message.
    pub const fn kind(self) -> Kind {
        match self {
            Want::Direct(_) => Kind::Direct,
            Want::Indirect(_) => Kind::Indirect,
        }
    }
}

/// The transport of a message's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The bytes are in the mailbox.
    Direct,
    /// DMA moves the bytes from or to host pages. The page lists are in mailboxes.
    Indirect,
}

/// One alternative of a `select`: receive `want` from `from`. `E` is [`Channel`] on the host and [`TargetId`] on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard<E> {
    /// The channel or target.
    pub from: E,
    /// The message to receive.
    pub want: Want,
}

/// The time at which a call stops waiting for the other end, in the driver's unit. With `None`, the call waits for
/// ever.
pub type Deadline = Option<u64>;
