//! A host's calls to its card that take no simulated time. They allocate and free counters, queues, descriptors, portal
//! table entries and handlers. A library makes these calls during set-up, before the measured part of a program.

pub(super) mod attach;
pub(super) mod command;
pub(super) mod hpu_access;
pub(super) mod in_order;
pub(super) mod long;
pub(super) mod match_bits;
pub(super) mod messages;
pub(super) mod post;
pub(super) mod unexpected;
pub(super) mod view;
pub(super) mod wait;

use crate::Card;
use crate::host::long::LONG_MESSAGES;
use nicety_host::Memory;
use nicety_nic_core::CardError;
use nicety_nic_processors::HandlerError;
use nicety_nic_processors::programs::attachments::AttachError;
use nicety_portals::{
    CtHandle, EqHandle, Error, FailType, FailedOperation, List, Md, MdHandle, Me, MeHandle, PtOptions,
};
use std::fmt;

/// The reason why a host's call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The Portals interface refused the call.
    Portals(Error),
    /// The memory is not host memory.
    Memory(nicety_host::MemoryError),
    /// The rank does not exist.
    Rank {
        /// The requested rank.
        rank: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// Operations that increment a counter have failed.
    Failures {
        /// Number of failures.
        failures: u64,
        /// The first failed operation that this host started, if any.
        first: Option<FailedOperation>,
    },
    /// No attached handlers have this number.
    NotAttached {
        /// The number.
        cookie: u32,
    },
    /// The program or the state does not fit on the card.
    Handlers(HandlerError),
    /// An object of the host on its card does not exist, or does not permit this use.
    Attached(AttachError),
    /// All numbers of long messages are in use.
    LongMessages {
        /// Messages with more bytes than this are long.
        eager: u64,
    },
    /// The receiver did not take a long message.
    NotTaken {
        /// The receiver's rank.
        to: u32,
        /// The message's tag.
        tag: u64,
        /// The message's length in bytes.
        bytes: u64,
        /// The outcome of the message.
        fail: FailType,
    },
    /// A message that arrived before its receive could not be got.
    NotGot {
        /// The sender's rank.
        from: u32,
        /// The message's tag.
        tag: u64,
        /// The message's length in bytes.
        bytes: u64,
        /// The outcome of the get.
        fail: FailType,
    },
    /// A message arrived before its receive, and there was no room for it.
    MessageLost {
        /// The message, the reason, and a remedy.
        text: String,
    },
    /// An event queue overflowed.
    EventsLost {
        /// Number of lost events.
        lost: u64,
    },
}

impl From<CallError> for CardError {
    fn from(error: CallError) -> CardError {
        match error {
            // The host detects this error without the card.
            CallError::Rank { .. } => CardError::Input(error.to_string()),
            _ => CardError::Failed(error.to_string()),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Portals(error) => error.fmt(f),
            CallError::Memory(error) => error.fmt(f),
            CallError::Rank { rank, ranks } => {
                write!(f, "there is no rank {rank}; the cluster has ranks 0 to {}", ranks - 1)
            }
            CallError::Failures { failures, first: None } => {
                write!(f, "{failures} of the operations waited for failed at their target")
            }
            CallError::Failures { failures: 1, first: Some(first) } => {
                write!(f, "an operation waited for failed: {first}")
            }
            CallError::Failures { failures, first: Some(first) } => {
                write!(f, "{failures} of the operations waited for failed, the first of them {first}")
            }
            CallError::NotAttached { cookie } => {
                write!(f, "no handlers were attached under number {cookie}; attach them before the append")
            }
            CallError::Handlers(error) => error.fmt(f),
            CallError::Attached(error) => error.fmt(f),
            CallError::LongMessages { eager } => write!(
                f,
                "{LONG_MESSAGES} messages longer than messages.eager ({eager} bytes) wait for their \
                 receivers, which is the maximum of a host; receive earlier, or raise messages.eager"
            ),
            CallError::NotTaken { to, tag, bytes, fail: FailType::Dropped | FailType::PtDisabled } => write!(
                f,
                "a message of {bytes} bytes, tag {tag}, was not taken by rank {to}, which had no room for messages that \
                 arrive before their receives"
            ),
            CallError::NotTaken { to, tag, bytes, fail } => {
                write!(f, "a message of {bytes} bytes, tag {tag}, was not taken by rank {to}: {fail}")
            }
            CallError::NotGot { from, tag, bytes, fail } => write!(
                f,
                "a message of {bytes} bytes, tag {tag}, that waited for its receive at rank {from} could not \
                 be fetched: {fail}"
            ),
            CallError::MessageLost { text } => f.write_str(text),
            CallError::EventsLost { lost } => write!(
                f,
                "PTL_EQ_DROPPED: the event queue was full and {lost} events are lost; allocate a deeper queue or read it more often"
            ),
        }
    }
}

impl std::error::Error for CallError {}

impl From<Error> for CallError {
    fn from(error: Error) -> CallError {
        CallError::Portals(error)
    }
}

impl From<HandlerError> for CallError {
    fn from(error: HandlerError) -> CallError {
        CallError::Handlers(error)
    }
}

impl From<AttachError> for CallError {
    fn from(error: AttachError) -> CallError {
        CallError::Attached(error)
    }
}

impl From<nicety_host::MemoryError> for CallError {
    fn from(error: nicety_host::MemoryError) -> CallError {
        CallError::Memory(error)
    }
}

impl Card {
    /// Returns the host's memory.
    pub fn memory(&self) -> &Memory {
        self.dma.memory()
    }

    /// Returns the card's specification.
    pub fn spec(&self) -> &crate::SpinSpec {
        &self.spec
    }

    /// Allocates a counter (`PtlCTAlloc`).
    ///
    /// # Errors
    /// When all counters are in use.
    pub fn ct_alloc(&self) -> Result<CtHandle, CallError> {
        Ok(self.interface.borrow_mut().ct_alloc()?)
    }

    /// Frees a counter (`PtlCTFree`).
    ///
    /// # Errors
    /// When the counter is in use, or does not exist.
    pub fn ct_free(&self, ct: CtHandle) -> Result<(), CallError> {
        self.interface.borrow_mut().ct_free(ct)?;
        self.view.forget_counter(ct);
        Ok(())
    }

    /// Frees an event queue with its events (`PtlEQFree`).
    ///
    /// # Errors
    /// When the queue is in use, or does not exist.
    pub fn eq_free(&self, eq: EqHandle) -> Result<(), CallError> {
        self.interface.borrow_mut().eq_free(eq)?;
        self.view.forget_queue(eq);
        Ok(())
    }

    /// Allocates an event queue of `depth` events (`PtlEQAlloc`).
    ///
    /// # Errors
    /// When all event queues are in use, or the depth exceeds the limit.
    pub fn eq_alloc(&self, depth: u32) -> Result<EqHandle, CallError> {
        Ok(self.interface.borrow_mut().eq_alloc(depth)?)
    }

    /// Binds a memory descriptor (`PtlMDBind`).
    ///
    /// # Errors
    /// When all memory descriptors are in use, or the memory is not host memory.
    pub fn md_bind(&self, md: Md) -> Result<MdHandle, CallError> {
        self.dma.memory().check(md.start, md.length)?;
        Ok(self.interface.borrow_mut().md_bind(md)?)
    }

    /// Releases a memory descriptor (`PtlMDRelease`).
    ///
    /// # Errors
    /// When the descriptor is in use, or does not exist.
    pub fn md_release(&self, md: MdHandle) -> Result<(), CallError> {
        Ok(self.interface.borrow_mut().md_release(md)?)
    }

    /// Allocates a portal table entry (`PtlPTAlloc`).
    ///
    /// # Errors
    /// When the index is taken or beyond the table.
    pub fn pt_alloc(&self, index: Option<u32>, eq: Option<EqHandle>) -> Result<u32, CallError> {
        Ok(self.interface.borrow_mut().pt_alloc(index, eq)?)
    }

    /// Allocates a portal table entry with options, such as flow control.
    ///
    /// # Errors
    /// Like [`Card::pt_alloc`], and when an entry with flow control has no event queue of at least four events.
    pub fn pt_alloc_with(
        &self,
        index: Option<u32>,
        eq: Option<EqHandle>,
        options: PtOptions,
    ) -> Result<u32, CallError> {
        Ok(self.interface.borrow_mut().pt_alloc_with(index, eq, options)?)
    }

    /// Appends a match entry as part of a library's set-up. Takes no simulated time. The entry does not count towards
    /// the limit of entries, is not compared with unexpected headers, and generates no `LINK` event.
    ///
    /// # Errors
    /// When the portal table index is not in use, the memory is not host memory, or the entry's handlers are not
    /// attached.
    pub fn me_set_up(&self, pt: u32, me: Me, list: List) -> Result<MeHandle, CallError> {
        self.dma.memory().check(me.start, me.length)?;
        if let Some(cookie) = me.handlers {
            self.processors().attachments.get(cookie).ok_or(CallError::NotAttached { cookie })?;
        }
        Ok(self.interface.borrow_mut().me_append_own(pt, me, list)?)
    }

    /// Frees a portal table entry (`PtlPTFree`).
    ///
    /// # Errors
    /// When the entry does not exist, or match entries are linked to it or in use.
    pub fn pt_free(&self, pt: u32) -> Result<(), CallError> {
        Ok(self.interface.borrow_mut().pt_free(pt)?)
    }
}
