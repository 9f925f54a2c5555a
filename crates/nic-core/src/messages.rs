//! Messages between ranks: the interface between a host's `send` and `recv` and a card of any design.

use crate::CardError;
use nicety_host::Cpus;
use nicety_kernel::Sim;
use nicety_types::{MessageId, NodeId, Path, Recorder, Resource, Time};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;

/// A pending call of a host's program.
pub type Calling<'c, T> = Pin<Box<dyn Future<Output = T> + 'c>>;

/// A thread of a host's program that calls its card.
#[derive(Clone, Copy)]
pub struct Caller<'c> {
    /// The node's handle to the simulation.
    pub sim: &'c Sim,
    /// The host's CPUs.
    pub cpus: &'c Cpus,
    /// The recorder of the node's events.
    pub recorder: &'c Recorder,
    /// The number of the thread on its host. The program's first thread has number 0.
    pub thread: u32,
    /// The path of the thread.
    pub path: &'c RefCell<Path>,
}

impl Caller<'_> {
    /// Makes a call that takes virtual time, on the thread's path. Records the call.
    pub async fn timed<T>(&self, what: &'static str, call: impl AsyncFnOnce(&mut Path) -> T) -> T {
        let start = self.sim.now();
        let result = self.on_path(call).await;
        self.called(what, start);
        result
    }

    /// Makes a part of a call on the thread's path. Does not record it.
    pub async fn on_path<T>(&self, part: impl AsyncFnOnce(&mut Path) -> T) -> T {
        let mut path = self.path.borrow().clone();
        let result = part(&mut path).await;
        self.path.replace(path);
        result
    }

    /// Records the end of a call that began at `start`.
    pub fn called(&self, what: &'static str, start: Time) {
        self.recorder.slice(Resource::PROGRAM, start, self.sim.now(), None, what);
    }
}

/// Numbers the messages of a node.
#[derive(Debug, Default)]
pub struct MessageNumbers(Cell<u64>);

impl MessageNumbers {
    /// Returns the identity of the next message of `source`.
    pub fn next(&self, source: NodeId) -> MessageId {
        MessageId { source, sequence: self.0.replace(self.0.get() + 1) }
    }

    /// Returns the number of messages numbered so far.
    pub fn given(&self) -> u64 {
        self.0.get()
    }
}

/// Number of bits of a tag. Libraries use the 64th bit to distinguish short messages from long messages.
pub const TAG_BITS: u32 = 63;

/// The largest tag.
pub const LARGEST_TAG: u64 = (1 << TAG_BITS) - 1;

/// Checks that a tag is not too large.
///
/// # Errors
/// When it has more than [`TAG_BITS`] bits.
pub fn check_tag(tag: u64) -> Result<(), CardError> {
    if tag <= LARGEST_TAG {
        return Ok(());
    }
    let text = format!("tag {tag} is too large: tags of messages have {TAG_BITS} bits, 0 to {LARGEST_TAG}");
    Err(CardError::Input(text))
}

/// Pairs of processes with one process on each of two hosts. Two hosts have several pairs if several processes share
/// the library of a card. Some bits of a message's tag hold the number of the pair. Each pair has its own room for
/// messages without a receive, so no pair waits for another pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// The lowest bit of the pair's number in a tag.
    pub first: u32,
    /// Number of bits of the pair's number.
    pub bits: u32,
}

impl Pairs {
    /// The single pair of hosts with one process each.
    pub const ONE: Pairs = Pairs { first: 0, bits: 0 };

    /// Number of pairs between two hosts.
    pub const fn count(self) -> u32 {
        1 << self.bits
    }

    /// Returns the pair of a message with this tag.
    pub const fn of(self, tag: u64) -> u32 {
        (tag >> self.first) as u32 & (self.count() - 1)
    }
}

/// The tags that a receive takes: all tags that equal `bits` in every bit that is 0 in `ignore`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tags {
    /// The bits of the tag.
    pub bits: u64,
    /// A mask of the bits that are not compared. A bit that is 1 is ignored.
    pub ignore: u64,
}

impl Tags {
    /// All tags.
    pub const ANY: Tags = Tags { bits: 0, ignore: !0 };

    /// Returns one tag.
    pub const fn exactly(tag: u64) -> Tags {
        Tags { bits: tag, ignore: 0 }
    }

    /// Returns one tag, or all tags if `tag` is `None`.
    pub fn exactly_or_any(tag: Option<u64>) -> Tags {
        tag.map_or(Tags::ANY, Tags::exactly)
    }

    /// Whether a receive with these tags takes a message with this tag.
    pub const fn has(self, tag: u64) -> bool {
        (tag ^ self.bits) & !self.ignore == 0
    }

    /// The tags of a receive in words, such as 'tag 5'.
    pub fn what(self) -> String {
        let Tags { bits, ignore } = self;
        match ignore & LARGEST_TAG {
            0 => format!("tag {bits}"),
            LARGEST_TAG => "any tag".to_owned(),
            ignore => format!("tag {bits:#x} except for the bits {ignore:#x}"),
        }
    }
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The destination rank. The host has checked that it exists.
    pub to: u32,
    /// The message's tag. The host has [checked](check_tag) it.
    pub tag: u64,
    /// The address of the message in host memory.
    pub address: u64,
    /// The message's length in bytes.
    pub bytes: u64,
}

/// A receive to post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The source rank, or `None` for any rank. The host has checked that the rank exists.
    pub source: Option<u32>,
    /// The tags. The host has [checked](check_tag) their bits.
    pub tags: Tags,
    /// The address of its buffer in host memory.
    pub address: u64,
    /// Size of the buffer in bytes.
    pub room: u64,
}

impl Wanted {
    /// Whether the receive takes a message from this rank with this tag.
    pub fn takes(&self, source: u32, tag: u64) -> bool {
        self.source.is_none_or(|wanted| wanted == source) && self.tags.has(tag)
    }

    /// Describes the message in words, as the object of 'waits for' in deadlock hints.
    pub fn what(&self) -> String {
        let from = self.source.map_or("any rank".to_owned(), |rank| format!("rank {rank}"));
        format!("a message from {from}, {}", self.tags.what())
    }
}

/// A message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The sender's rank.
    pub source: u32,
    /// The message's tag.
    pub tag: u64,
    /// The message's length in bytes when it was sent.
    pub bytes: u64,
    /// Size of the receive's buffer in bytes. A longer message was cut to this size.
    pub room: u64,
}

/// A posted receive, in the own type of the card's design. A clone refers to the same receive.
#[derive(Clone)]
pub struct PostedReceive(Rc<dyn Any>);

const OTHER: &str = "a receive is asked for on the card that it was posted on";

impl PostedReceive {
    /// Wraps the receive of a design.
    pub fn new(posted: impl Any) -> PostedReceive {
        PostedReceive(Rc::new(posted))
    }

    /// Whether the receive has this type.
    pub fn is<P: Any>(&self) -> bool {
        self.0.is::<P>()
    }

    /// Returns the receive in the type of the card's design, read-only.
    ///
    /// # Panics
    /// When it was posted on a card of another design.
    pub fn look<P: Any>(&self) -> &P {
        self.0.downcast_ref().expect(OTHER)
    }

    /// Returns the receive in the type of the card's design.
    ///
    /// # Panics
    /// When it was posted on a card of another design.
    pub fn of<P: Any + Clone>(self) -> P {
        Rc::unwrap_or_clone(self.0.downcast().expect(OTHER))
    }
}
