//! A virtual network interface on the card: what a process has posted, and what waits for it.

use super::Endpoint;
use super::library::Completed;
use super::receive::{Receiving, Waiting};
use super::send::Staged;
use nicety_kernel::Signal;
use nicety_types::{MessageId, Path, Payload};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// A command in the Command Queue.
pub(super) enum Command {
    Send(SendCommand),
    Receive(ReceiveCommand),
}

/// Where the bytes of a message are.
pub(super) enum Source {
    /// In the Context Region: they came by programmed I/O.
    Card(Payload),
    /// In host memory from this address on, in pages whose descriptors the card has.
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
    /// Bytes of it that have been staged.
    pub(super) staged: u64,
    pub(super) path: Path,
}

/// A message to be received.
#[derive(Clone, Copy)]
pub(super) struct ReceiveCommand {
    pub(super) operation: u64,
    /// From anybody where there is none.
    pub(super) from: Option<Endpoint>,
    /// Of any tag where there is none.
    pub(super) tag: Option<u64>,
    pub(super) address: u64,
    pub(super) room: u64,
    pub(super) path: Path,
}

impl ReceiveCommand {
    pub(super) fn takes(&self, from: Endpoint, tag: u64) -> bool {
        self.from.is_none_or(|wanted| wanted == from) && self.tag.is_none_or(|wanted| wanted == tag)
    }
}

/// How an operation went.
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each message")]
pub(super) enum Progress {
    Pending,
    /// Its doorbell is set, for this message.
    Done(Completed, Path, MessageId),
}

/// Which of the two an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Send,
    Receive,
}

/// An interface that a process has.
pub(super) struct Interface {
    /// The process.
    pub(super) owner: u32,
    /// The Command Queue.
    pub(super) commands: VecDeque<Command>,
    /// Sends of which there are packets to be staged, in order.
    pub(super) sends: VecDeque<SendCommand>,
    /// Packets that are staged, in order.
    pub(super) staged: VecDeque<Staged>,
    /// Packets that were staged and have been handed over.
    pub(super) handed_over: u64,
    /// Receives without a message, in order.
    pub(super) receives: VecDeque<ReceiveCommand>,
    /// Messages without a receive, in order.
    pub(super) waiting: VecDeque<Rc<Waiting>>,
    /// Messages that are on their way into a receive.
    pub(super) receiving: BTreeMap<MessageId, Rc<Receiving>>,
    /// What the process has posted, by number, until it has heard of the end.
    pub(super) operations: BTreeMap<u64, (Kind, Progress)>,
    /// Bytes of card memory with the descriptors of its Buffer Pool.
    pub(super) pool_memory: u64,
    /// A doorbell of the process's has been set.
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
            receives: VecDeque::new(),
            waiting: VecDeque::new(),
            receiving: BTreeMap::new(),
            operations: BTreeMap::new(),
            pool_memory: 0,
            rung,
        }
    }

    /// Operations of a kind whose contexts are in use: until the process has seen the doorbell, it belongs to them.
    pub(super) fn pending(&self, kind: Kind) -> usize {
        self.operations.values().filter(|(of, _)| *of == kind).count()
    }
}
