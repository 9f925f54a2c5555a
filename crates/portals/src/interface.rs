//! One network interface: its resources, limits and statistics.

use crate::handle::Slab;
use crate::state::counter::{Action, Counters};
use crate::state::descriptor::Descriptors;
use crate::state::entry::Entries;
use crate::state::late::LateMessages;
use crate::state::operation::Operations;
use crate::state::portal::PortalTable;
use crate::state::queue::Queues;
use crate::state::unexpected::UnexpectedHeader;
use crate::{DropReason, DroppedMessage, Features};
use nicety_types::NodeId;
use std::collections::VecDeque;

/// The limits of an interface (`ptl_ni_limits_t`). The values of [`Limits::default`] are large. A card's spec sets the
/// card's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Maximum number of match entries that are linked or still in use.
    pub entries: u32,
    /// Maximum number of match entries on one list.
    pub list_length: u32,
    /// Maximum number of unexpected headers of all portal table entries together.
    pub unexpected_headers: u32,
    /// Memory descriptors.
    pub descriptors: u32,
    /// Counting events.
    pub counters: u32,
    /// Event queues.
    pub event_queues: u32,
    /// Events in one queue.
    pub event_queue_depth: u32,
    /// Portal table entries.
    pub portal_table: u32,
    /// Maximum number of waiting triggered operations.
    pub triggered: u32,
    /// Maximum number of operations of this initiator that have not ended, including waiting triggered operations.
    pub operations: u32,
    /// Maximum length of a message in bytes (`max_msg_size`).
    pub message_bytes: u64,
    /// Maximum length of an atomic in bytes (`max_atomic_size`).
    pub atomic_bytes: u64,
    /// Maximum length of a fetch-and-atomic or swap in bytes (`max_fetch_atomic_size`).
    pub fetch_atomic_bytes: u64,
    /// The operations that the card supports beside puts. By default, none.
    pub features: Features,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            entries: 65_536,
            list_length: 16_384,
            unexpected_headers: 65_536,
            descriptors: 65_536,
            counters: 65_536,
            event_queues: 1024,
            event_queue_depth: 1 << 20,
            portal_table: 64,
            triggered: 65_536,
            operations: 65_536,
            message_bytes: 1 << 40,
            atomic_bytes: 4096,
            fetch_atomic_bytes: 4096,
            features: Features::empty(),
        }
    }
}

/// Statistics of an interface since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Messages that matched on a priority list.
    pub matched: u64,
    /// Messages that matched on an overflow list.
    pub matched_overflow: u64,
    /// Messages truncated to the remaining memory of their match entry.
    pub truncated: u64,
    /// Full events that were lost because their queue was full.
    pub events_dropped: u64,
    /// Number of times that flow control has disabled a portal table entry.
    pub flow_control: u64,
    pub(crate) dropped: [u64; DropReason::ALL.len()],
    pub(crate) first_dropped: Option<DroppedMessage>,
}

impl Statistics {
    /// Returns the value of a status register (`PtlNIStatus`).
    pub fn register(&self, register: StatusRegister) -> u64 {
        match register {
            StatusRegister::DropCount => self.dropped_total(),
            StatusRegister::PermissionViolations => self.dropped(DropReason::PermViolation),
            StatusRegister::OperationViolations => self.dropped(DropReason::OpViolation),
        }
    }

    /// Returns the number of messages dropped for `reason`.
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Returns the number of messages dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Returns the first dropped message.
    pub const fn first_dropped(&self) -> Option<DroppedMessage> {
        self.first_dropped
    }
}

/// A status register of an interface (`ptl_sr_index_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusRegister {
    /// `PTL_SR_DROP_COUNT`: messages dropped, for any reason.
    DropCount,
    /// `PTL_SR_PERMISSION_VIOLATIONS`: messages dropped because the match entry accepts only another user.
    PermissionViolations,
    /// `PTL_SR_OPERATION_VIOLATIONS`: messages dropped because the match entry does not allow the operation.
    OperationViolations,
}

impl StatusRegister {
    /// All status registers.
    pub const ALL: [StatusRegister; 3] = [
        StatusRegister::DropCount,
        StatusRegister::PermissionViolations,
        StatusRegister::OperationViolations,
    ];

    /// Returns the register's name in the specification, in lower case and without `PTL_SR_`.
    pub const fn name(self) -> &'static str {
        match self {
            StatusRegister::DropCount => "drop_count",
            StatusRegister::PermissionViolations => "permission_violations",
            StatusRegister::OperationViolations => "operation_violations",
        }
    }

    /// Returns the register of this name.
    pub fn from_name(name: &str) -> Option<StatusRegister> {
        StatusRegister::ALL.into_iter().find(|register| register.name() == name)
    }
}

/// One network interface of one node (`PtlNIInit`). It is both initiator and target.
pub struct Interface {
    pub(crate) node: NodeId,
    pub(crate) uid: u32,
    pub(crate) limits: Limits,
    pub(crate) statistics: Statistics,
    pub(crate) queues: Queues,
    pub(crate) counters: Counters,
    pub(crate) descriptors: Descriptors,
    pub(crate) operations: Operations,
    /// Number of sent operations without a complete answer.
    pub(crate) unanswered: u32,
    pub(crate) entries: Entries,
    pub(crate) table: PortalTable,
    /// Number of unexpected headers of all portal table entries together.
    pub(crate) unexpected: u32,
    /// Unexpected headers that an append has found, before their events are posted. Empty between calls.
    pub(crate) found: Vec<UnexpectedHeader>,
    /// Redelivered messages in flight to the match entry that found them.
    pub(crate) late: LateMessages,
    /// Number of triggered operations that are posted and not yet carried out.
    pub(crate) triggered: u32,
    /// Triggered operations that are due. Empty between calls.
    pub(crate) due: VecDeque<Action>,
}

impl Interface {
    /// Returns an interface of the node with rank `node`.
    pub fn new(node: NodeId, limits: Limits) -> Interface {
        Interface {
            node,
            uid: 0,
            limits,
            statistics: Statistics::default(),
            queues: Slab::new(limits.event_queues),
            counters: Slab::new(limits.counters),
            descriptors: Slab::new(limits.descriptors),
            operations: Slab::new(limits.operations),
            unanswered: 0,
            entries: Slab::new(limits.entries),
            table: PortalTable::default(),
            unexpected: 0,
            found: Vec::new(),
            late: LateMessages::default(),
            triggered: 0,
            due: VecDeque::new(),
        }
    }

    /// Sets the user of the node's processes. The header of every operation names the user. The default is zero.
    #[must_use]
    pub const fn of_user(mut self, uid: u32) -> Interface {
        self.uid = uid;
        self
    }

    /// Changes the user of the node's processes to `uid`.
    pub const fn set_uid(&mut self, uid: u32) {
        self.uid = uid;
    }

    /// Returns the user of the node's processes (`PtlGetUid`).
    pub const fn uid(&self) -> u32 {
        self.uid
    }

    /// Returns the node of this interface.
    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// Returns the limits.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the statistics.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the number of operations of this initiator that have not ended.
    pub fn pending_operations(&self) -> usize {
        self.operations.len()
    }

    /// Returns the number of sent operations without a complete answer.
    pub const fn unanswered_operations(&self) -> u32 {
        self.unanswered
    }

    /// Returns the number of waiting triggered operations.
    pub const fn pending_triggered(&self) -> u32 {
        self.triggered
    }
}
