//! Descriptions of dropped messages and failed operations.

use crate::{DropReason, FailType, Header, HeaderKind};
use nicety_types::NodeId;
use std::fmt;

/// A dropped message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedMessage {
    /// The kind of message.
    pub kind: HeaderKind,
    /// The sender.
    pub source: NodeId,
    /// The portal table index at the target.
    pub pt: u32,
    /// The message's match bits.
    pub match_bits: u64,
    /// The reason for the drop.
    pub reason: DropReason,
}

impl fmt::Display for DroppedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DroppedMessage { kind, source, pt, match_bits, reason } = self;
        write!(f, "{} from rank {}, pt {pt}, match bits {match_bits:#x}: {reason}", kind.article(), source.0)
    }
}

/// An operation of this initiator that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedOperation {
    /// The kind of operation.
    pub kind: HeaderKind,
    /// The operation's target.
    pub target: NodeId,
    /// The portal table index at the target.
    pub pt: u32,
    /// The operation's match bits.
    pub match_bits: u64,
    /// The failure.
    pub fail: FailType,
}

impl FailedOperation {
    pub(crate) const fn new(header: &Header, fail: FailType) -> FailedOperation {
        let Header { kind, target, pt, match_bits, .. } = *header;
        FailedOperation { kind, target, pt, match_bits, fail }
    }

    const fn why(&self) -> &'static str {
        match (self.fail, self.kind) {
            (FailType::OpViolation, HeaderKind::Get) => ", its match entry refuses it: it has no op_get",
            (FailType::OpViolation, HeaderKind::FetchAtomic | HeaderKind::Swap) => {
                ", its match entry refuses it: it needs op_put and op_get"
            }
            (FailType::OpViolation, _) => ", its match entry refuses it: it has no op_put",
            (FailType::Dropped, _) => ", no match entry took it, or that portal table index is not in use",
            (FailType::PtDisabled, _) => ", its portal table entry is disabled",
            _ => "",
        }
    }
}

impl fmt::Display for FailedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FailedOperation { kind, target, pt, match_bits, fail } = self;
        let (what, fail, why) = (kind.article(), fail.name(), self.why());
        write!(f, "{what} to rank {}, pt {pt}, match bits {match_bits:#x}: {fail}{why}", target.0)
    }
}

impl HeaderKind {
    const fn article(self) -> &'static str {
        match self {
            HeaderKind::Put => "a put",
            HeaderKind::Get => "a get",
            HeaderKind::Reply => "a reply",
            HeaderKind::Ack => "an acknowledgement",
            HeaderKind::Atomic => "an atomic",
            HeaderKind::FetchAtomic => "a fetch atomic",
            HeaderKind::Swap => "a swap",
        }
    }
}
