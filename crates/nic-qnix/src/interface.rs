//! A virtual network interface on the card: its commands, its packets for the link, and the messages with and without
//! receives that arrive for it.

use crate::Endpoint;
use crate::wire::Repr;
use nicety_kernel::{Permit, Signal};
use nicety_nic_core::Tags;
use nicety_nic_core::parts::Matching;
use nicety_types::{MessageId, Path, Payload};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// A completed send or receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The interface at the other end of the message.
    pub peer: Endpoint,
    /// The message's tag.
    pub tag: u64,
    /// Size of the message in bytes.
    pub bytes: u64,
    /// Whether the message was longer than the receive's buffer.
    pub truncated: bool,
}

/// A command in the Command Queue.
pub(super) enum Command {
    Send(SendCommand),
    Receive(ReceiveCommand),
}

/// The location of a message's bytes.
pub(super) enum Source {
    /// The bytes are in the Context Region, where they arrived by programmed I/O.
    Card(Payload),
    /// The bytes are in host memory from this address on. The card has the descriptors of the bytes' pages.
    Host(u64),
}

/// A message to be sent.
pub(super) struct SendCommand {
    pub(super) operation: u64,
    pub(super) message: MessageId,
    pub(super) to: Endpoint,
    pub(super) tag: u64,
    pub(super) bytes: u64,
    pub(super) source: Source,
    /// Number of bytes staged so far.
    pub(super) staged: u64,
    pub(super) path: Path,
}

/// A message to be received.
#[derive(Clone)]
pub(super) struct ReceiveCommand {
    pub(super) operation: u64,
    /// The sender; `None` for any sender.
    pub(super) from: Option<Endpoint>,
    pub(super) tags: Tags,
    pub(super) address: u64,
    pub(super) room: u64,
    pub(super) path: Path,
}

impl ReceiveCommand {
    pub(super) fn takes(&self, from: Endpoint, tag: u64) -> bool {
        self.from.is_none_or(|wanted| wanted == from) && self.tags.has(tag)
    }
}

/// The progress of an operation.
pub(super) enum Progress {
    Pending,
    /// The doorbell for the completion of this message is set. The path ends at the doorbell.
    Done(Completed, Path, MessageId),
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Send,
    Receive,
}

/// A staged packet: a part of a message.
pub(super) struct Staged {
    /// The bytes of the packet. `None` while a channel fetches them.
    pub(crate) bytes: Option<(Payload, Path)>,
    /// The packet's staging slot in the card's memory. `None` if its bytes are in a Context Region.
    pub(crate) place: Option<Permit>,
    pub(crate) operation: u64,
    pub(crate) header: Repr,
    pub(crate) last: bool,
}

/// The location of a received packet.
pub(super) enum Slot {
    /// In the packet buffer.
    Link,
    /// In a staging slot of the sending interface, which is on the same card. In a Context Region if `place` is `None`.
    Staged { place: Option<Permit>, message: MessageId },
    /// In the card's memory, where it occupies this number of bytes.
    Memory(u64),
}

/// A message being received.
pub(super) struct Receiving {
    pub(crate) vni: u32,
    pub(crate) operation: u64,
    pub(crate) message: MessageId,
    pub(crate) address: u64,
    pub(crate) room: u64,
    pub(crate) from: Endpoint,
    pub(crate) tag: u64,
    pub(crate) bytes: u64,
    /// Number of bytes that have arrived, in order.
    pub(crate) come: Cell<u64>,
    /// Number of bytes that are in host memory, or were discarded because they are beyond the buffer.
    pub(crate) settled: Cell<u64>,
    /// The path of the last settled bytes.
    pub(crate) path: RefCell<Path>,
}

/// A message that no receive has taken yet.
pub(super) struct Waiting {
    /// The header of the message's first packet.
    pub(crate) header: Repr,
    pub(crate) come: Cell<u64>,
    pub(crate) packets: RefCell<Vec<Kept>>,
}

/// A packet of a message without a receive, in the card's memory.
pub(crate) struct Kept {
    pub(crate) offset: u64,
    pub(crate) payload: Payload,
    pub(crate) memory: u64,
    pub(crate) path: Path,
}

/// An open interface.
pub(super) struct Interface {
    /// Number of the process that owns the interface.
    pub(super) owner: u32,
    /// The Command Queue.
    pub(super) commands: VecDeque<Command>,
    /// Sends with packets that the card has not staged yet, in order.
    pub(super) sends: VecDeque<SendCommand>,
    /// Staged packets, in order.
    pub(super) staged: VecDeque<Staged>,
    /// Number of staged packets that the control program has handed over.
    pub(super) handed_over: u64,
    /// Posted receives and unmatched messages.
    pub(super) matching: Matching<ReceiveCommand, Rc<Waiting>>,
    /// Messages being received.
    pub(super) receiving: BTreeMap<MessageId, Rc<Receiving>>,
    /// Maps the number of an operation to its kind and progress. An entry stays until the process has seen the
    /// completion.
    pub(super) operations: BTreeMap<u64, (Kind, Progress)>,
    /// Number of bytes of card memory for the descriptors of the process's Buffer Pool.
    pub(super) pool_memory: u64,
    /// Notified when a doorbell of the process is set.
    pub(super) rung: Signal,
}

impl Interface {
    pub(super) fn new(owner: u32, rung: Signal) -> Interface {
        Interface {
            owner,
            commands: VecDeque::new(),
            sends: VecDeque::new(),
            staged: VecDeque::new(),
            handed_over: 0,
            matching: Matching::default(),
            receiving: BTreeMap::new(),
            operations: BTreeMap::new(),
            pool_memory: 0,
            rung,
        }
    }

    /// Number of contexts in use by operations of a kind. An operation holds its context until the process has seen its
    /// doorbell.
    pub(super) fn pending(&self, kind: Kind) -> usize {
        self.operations.values().filter(|(of, _)| *of == kind).count()
    }
}
