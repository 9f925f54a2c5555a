//! Failures that an initiator reports for its operations, and the target's reasons to drop a message.

use crate::named::named;
use std::fmt;

named! {
    /// The outcome of an operation ('Events', `ptl_ni_fail_t`).
    #[derive(Default)]
    pub enum FailType {
        /// The operation succeeded.
        #[default]
        Ok = "PTL_NI_OK",
        /// The message could not be delivered to its target.
        Undeliverable = "PTL_NI_UNDELIVERABLE",
        /// The portal table entry is disabled.
        PtDisabled = "PTL_NI_PT_DISABLED",
        /// The target dropped the message.
        Dropped = "PTL_NI_DROPPED",
        /// The match entry accepts only another user.
        PermViolation = "PTL_NI_PERM_VIOLATION",
        /// The match entry does not allow this operation.
        OpViolation = "PTL_NI_OP_VIOLATION",
        /// The memory of the match entry or memory descriptor is not mapped.
        Segv = "PTL_NI_SEGV",
        /// The target does not support this operation.
        Unsupported = "PTL_NI_UNSUPPORTED",
        /// A handler of the message failed. The Portals specification lacks this value; sPIN adds it.
        HandlerError = "PTL_NI_HANDLER_ERROR",
        /// No unexpected header matches the search.
        NoMatch = "PTL_NI_NO_MATCH",
        /// The application of the message's handlers has used up its budget of cycles. sPIN adds this value, too.
        HandlerBudget = "PTL_NI_HANDLER_BUDGET",
    }
}

impl FailType {
    /// Returns whether the operation succeeded.
    pub const fn is_ok(self) -> bool {
        matches!(self, FailType::Ok)
    }

    /// Returns this failure. If the operation succeeded, returns `other`.
    #[must_use]
    pub const fn or(self, other: FailType) -> FailType {
        if self.is_ok() { other } else { self }
    }
}

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $fail:ident;)*) => {
        /// The reason for a dropped message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DropReason { $($(#[$doc])* $name),* }

        impl DropReason {
            /// All reasons.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$name),*];

            /// Returns the failure that the answer reports to the initiator. If the message has disabled its portal
            /// table entry, the answer reports [`FailType::PtDisabled`] instead.
            pub const fn fail_type(self) -> FailType {
                match self { $(DropReason::$name => FailType::$fail),* }
            }
        }

        impl fmt::Display for DropReason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(DropReason::$name => $text),* })
            }
        }
    };
}

drop_reasons! {
    /// No match entry accepts the message.
    NoMatch = "no match entry takes it", Dropped;
    /// The message's portal table entry is not allocated.
    PtInvalid = "its portal table index is not in use", Dropped;
    /// The message's portal table entry is disabled.
    PtDisabled = "its portal table entry is disabled", PtDisabled;
    /// The match entry does not allow the operation.
    OpViolation = "the match entry does not allow this operation", OpViolation;
    /// The match entry accepts only another user.
    PermViolation = "the match entry is for another user", PermViolation;
    /// The portal table entry has flow control, and its event queue has no room for the message's events.
    NoEventRoom = "the event queue has no room for its events", PtDisabled;
    /// The message matched, but the card has no room to handle it.
    NoContext = "the card has no room to handle it", Dropped;
    /// The message matched on the overflow list, but there is no room for another unexpected header.
    NoUnexpectedHeader = "there is no room for one more unexpected header", Dropped;
    /// The message's target is another node.
    WrongTarget = "it is for another node", Undeliverable;
    /// The target's card does not support this operation, or this length.
    Unsupported = "this operation is not supported", Unsupported;
    /// The message is an answer, but no operation waits for it.
    StrayAnswer = "it answers no pending operation", Dropped;
}

impl DropReason {
    /// Returns whether a resource that the host can provide was exhausted. For these reasons, flow control disables the
    /// portal table entry.
    pub(crate) const fn is_exhaustion(self) -> bool {
        use DropReason::*;
        matches!(self, NoMatch | NoEventRoom | NoContext | NoUnexpectedHeader)
    }
}
