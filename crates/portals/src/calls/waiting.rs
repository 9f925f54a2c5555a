//! Reports why a program may wait: unexpected messages, counters, triggered operations.

use crate::diagnosis::FailedOperation;
use crate::state::counter::Action;
use crate::{CtEvent, CtHandle, Header, HeaderKind, Interface, MdOptions, MeOptions};
use nicety_types::NodeId;

/// A message on the overflow list that no append has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnexpectedMessage {
    /// The sender.
    pub source: NodeId,
    /// The message's match bits.
    pub match_bits: u64,
    /// The message's length in bytes, before truncation.
    pub length: u64,
}

/// The kinds of sources that count into a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// No memory descriptor, match entry or triggered operation counts into the counter, and none has counted.
    ByNothing,
    /// Only handlers of match entries may count, by a command.
    ByHandlers,
    /// Only acknowledgements count, if operations request them.
    ByAcknowledgements,
    /// Another source counts or has counted.
    Yes,
}

/// A triggered operation that waits for its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingTriggered {
    /// The operation's name, such as `put`.
    pub what: &'static str,
    /// The threshold of successes plus failures.
    pub threshold: u64,
    /// The counter's current value.
    pub value: CtEvent,
}

impl Interface {
    /// Returns the first message on the overflow list of a portal table entry that no append has taken, and the number of such messages.
    pub fn unexpected(&self, pt: u32) -> Option<(UnexpectedMessage, u32)> {
        let portal = self.table.get(pt)?;
        let mut waiting = portal.unexpected.iter().filter(|unexpected| unexpected.claimed.is_none());
        let Header { source, match_bits, length, .. } = waiting.next()?.header;
        Some((UnexpectedMessage { source, match_bits, length }, 1 + waiting.count() as u32))
    }

    /// Returns the first failed operation that this counter has counted since it was allocated.
    pub fn first_failure(&self, ct: CtHandle) -> Option<FailedOperation> {
        self.counters.get(ct).ok()?.first_failure
    }

    /// Returns the kinds of sources that count into a counter. The call searches all resources, so it is meant for the
    /// end of a run.
    pub fn counted(&self, ct: CtHandle) -> Counted {
        let communication = MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_OVERFLOW;
        let by_entry =
            self.entries.values().any(|e| e.me.ct == Some(ct) && e.me.options.intersects(communication));
        let by_trigger = self.counters.values().flat_map(|c| &c.waiting).any(|(_, action)| match action {
            Action::Start(_) => false,
            Action::Inc(target, _) | Action::Set(target, _) => *target == ct,
        });
        if by_entry || by_trigger {
            return Counted::Yes;
        }
        let other = MdOptions::EVENT_CT_SEND | MdOptions::EVENT_CT_REPLY;
        let options = self.descriptors.values().filter(|d| d.md.ct == Some(ct)).map(|d| d.md.options);
        let all = options.fold(MdOptions::empty(), |all, options| all | options);
        if all.intersects(other) {
            Counted::Yes
        } else if all.contains(MdOptions::EVENT_CT_ACK) {
            Counted::ByAcknowledgements
        } else if self.counters.get(ct).is_ok_and(|counter| counter.value != CtEvent::default()) {
            // The counter is not zero. The use-once entry that counted is gone.
            Counted::Yes
        } else if self.entries.values().any(|e| e.me.ct == Some(ct) && e.me.handlers.is_some()) {
            Counted::ByHandlers
        } else {
            Counted::ByNothing
        }
    }

    /// Returns one of the waiting triggered operations.
    pub fn waiting_triggered(&self) -> Option<WaitingTriggered> {
        let counter = self.counters.values().find(|counter| !counter.waiting.is_empty())?;
        let &(threshold, action) = counter.waiting.front()?;
        let what = match action {
            Action::Inc(..) => "counter increment",
            Action::Set(..) => "change of a counter",
            Action::Start(operation) => match self.operations.get(operation).ok()?.header.kind {
                HeaderKind::Get => "get",
                HeaderKind::Atomic => "atomic",
                HeaderKind::FetchAtomic => "fetch atomic",
                HeaderKind::Swap => "swap",
                HeaderKind::Put | HeaderKind::Reply | HeaderKind::Ack => "put",
            },
        };
        Some(WaitingTriggered { what, threshold, value: counter.value })
    }
}
