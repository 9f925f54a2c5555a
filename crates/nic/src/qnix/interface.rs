//! A virtual network interface on the card: posted commands and unmatched messages.

use super::Endpoint;
use super::library::Completed;
use super::receive::{Receiving, Waiting};
use super::send::Staged;
use crate::parts::Matching;
use nicety_kernel::Signal;
use nicety_types::{MessageId, Path, Payload};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// A command in the Command Queue.
pub(super) enum Command {
    Send(SendCommand),
    Receive(ReceiveCommand),
}

/// The location of a message's bytes.
pub(super) enum Source {
    /// In the Context Region: they came by programmed I/O.
    Card(Payload),
    /// In host memory, from this address on; the card has the descriptors of its pages.
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
    /// Bytes staged so far.
    pub(super) staged: u64,
    pub(super) path: Path,
}

/// A message to be received.
#[derive(Clone)]
pub(super) struct ReceiveCommand {
    pub(super) operation: u64,
    /// The sender; any if none.
    pub(super) from: Option<Endpoint>,
    /// The tag; any if none.
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

/// The progress of an operation.
pub(super) enum Progress {
    Pending,
    /// Its doorbell is set, for this message.
    Done(Completed, Path, MessageId),
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Send,
    Receive,
}

/// An open interface.
pub(super) struct Interface {
    /// The process.
    pub(super) owner: u32,
    /// The Command Queue.
    pub(super) commands: VecDeque<Command>,
    /// Sends with packets still to be staged, in order.
    pub(super) sends: VecDeque<SendCommand>,
    /// Staged packets, in order.
    pub(super) staged: VecDeque<Staged>,
    /// Number of packets staged and handed over.
    pub(super) handed_over: u64,
    /// Posted receives and unmatched messages.
    pub(super) matching: Matching<ReceiveCommand, Rc<Waiting>>,
    /// Messages being received.
    pub(super) receiving: BTreeMap<MessageId, Rc<Receiving>>,
    /// The operations of the process, by number, until it has seen their completion.
    pub(super) operations: BTreeMap<u64, (Kind, Progress)>,
    /// Bytes of card memory with the descriptors of its Buffer Pool.
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

    /// Number of contexts in use by operations of a kind; an operation holds its context until the process has seen
    /// its doorbell.
    pub(super) fn pending(&self, kind: Kind) -> usize {
        self.operations.values().filter(|(of, _)| *of == kind).count()
    }
}
