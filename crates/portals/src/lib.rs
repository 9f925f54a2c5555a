//! Portals 4 message semantics as a plain state machine: what a message matches, where its bytes belong,
//! which events and counters it moves, and which waiting operations that sets off.
//!
//! There is no time, no memory and no network in here. A card drives one [`Interface`]: it hands in the
//! host's commands and the headers that arrive, moves the bytes where it is told to, reports when they are
//! there, and makes the resulting [`Effects`] visible when its own timing says so. The same machine can
//! therefore be driven by a simulated card, by a test or by a fuzzer.
//!
//! # Layers, from the bottom
//! - [`MeHandle`] and its siblings: names of resources that go stale when the resource is freed, over bounded
//!   slabs. Nothing in the crate grows beyond [`Limits`].
//! - [`MeOptions`], [`MdOptions`], [`Event`], [`FailType`], [`Error`]: the vocabulary of the specification.
//! - [`Atomic`] (`atomic.rs`): operators and types of atomic operations, and their arithmetic on bytes.
//! - [`Header`]: what goes over the wire, and its bytes.
//! - Counters and event queues (`counter.rs`, `queue.rs`): triggered operations live with the counter they
//!   wait on, and are started in the same call that moves the counter.
//! - The initiator (`request.rs`, `initiator.rs`, `ending.rs`): memory descriptors, [`Interface::put`],
//!   [`Interface::get`], [`Interface::atomic`], [`Interface::fetch_atomic`], [`Interface::swap`], each also
//!   triggered, and the SEND, ACK and REPLY that end an operation.
//! - The target (`list.rs`, `portal.rs`, `unexpected.rs`, `target.rs`): portal table with flow control,
//!   match entries on priority and overflow lists, unexpected headers and their search,
//!   [`Interface::arrive`] at a message's header and [`Interface::complete`] after its last byte.
//!
//! # One message
//! `put` at the initiator gives an [`Outgoing`]: a header and a range of host memory. At the target, `arrive`
//! searches the lists and answers with a [`Delivery`]: an address and how many of the bytes to keep. The
//! match takes effect there and then (a use-once entry is gone, a local offset has moved), so messages match
//! in the order in which their headers arrive, whatever their payloads do. `complete` then gives the events,
//! the acknowledgement, the counts, and the triggered operations they make due, in that order.
//!
//! ```
//! use nicety_portals::*;
//! use nicety_types::NodeId;
//!
//! let (mut alice, mut bob) =
//!     (Interface::new(NodeId(0), Limits::default()), Interface::new(NodeId(1), Limits::default()));
//! let mut effects = Effects::new();
//!
//! // Bob takes one message of 4 KiB or less with match bits 7, and counts it.
//! let received = bob.ct_alloc()?;
//! let pt = bob.pt_alloc(None, None)?;
//! let options = MeOptions::OP_PUT | MeOptions::USE_ONCE | MeOptions::EVENT_CT_COMM;
//! let me = Me { start: 0x1000, length: 4096, match_bits: 7, ct: Some(received), options, ..Me::default() };
//! bob.me_append(pt, me, List::Priority, &mut effects)?;
//!
//! // Alice sends 64 bytes from her address 0x8000.
//! let md = alice.md_bind(Md { start: 0x8000, length: 64, ..Md::default() })?;
//! let outgoing = alice.put(&PutRequest::new(md, 64, bob.node(), pt, 7))?;
//! let wire = outgoing.header.encode();
//! alice.sent(outgoing.operation, FailType::Ok, &mut effects)?;
//!
//! // Bob's card learns where the bytes go, moves them, and says that they are there.
//! let Arrival::Matched(delivery) = bob.arrive(&Header::decode(&wire)?, &mut effects) else { panic!() };
//! assert_eq!((delivery.start, delivery.mlength), (0x1000, 64));
//! bob.complete(&delivery, FailType::Ok, &mut effects)?;
//! assert_eq!(effects.as_slice(), [Effect::Count { ct: received, value: CtEvent::success(1) }]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A message that is answered with bytes
//! A get, fetch-and-atomic or swap is matched in the same way. The card reads at [`Delivery::start`], sends
//! what it reads behind the header that [`Delivery::reply`] gives, lets [`Atomic::apply`] work on the memory
//! where the kind says so, and calls `complete`. At the initiator, `arrive` answers the reply's header with a
//! [`Reply`], which says where the bytes go; [`Interface::complete_reply`] gives the REPLY event. A failure
//! comes as a reply without bytes, so no initiator waits for ever.
//!
//! Which of these operations there are is up to the card: [`Limits::features`]. Without the feature, the host
//! cannot start one, and a target drops it as [`DropReason::Unsupported`] and says so to its initiator.
//!
//! # Flow control
//! On a portal table entry with [`PtOptions::FLOWCTRL`], a message that finds a resource exhausted disables
//! the entry: see `portal.rs`. Its sender, and every sender behind it, is told [`FailType::PtDisabled`] and
//! may send again; the host is told once, by [`EventKind::PtDisabled`]. A message is let in only if there is
//! room for all of its events, and a host command that would post more events than there is room for is
//! refused with [`Error::EqFull`], so what was let in is never lost. A card that may be short of handler
//! contexts asks with [`Interface::arrive_if`].
//!
//! # Limits
//! Non-matching interfaces, scattered memory (`PTL_IOVEC`) and long double.
//!
//! Sections cited in the documentation are those of 'The Portals 4.x Network Programming Interface' by topic.

mod atomic;
mod counter;
mod diagnosis;
mod ending;
mod error;
mod event;
mod handle;
mod header;
mod initiator;
mod interface;
mod late;
mod list;
mod options;
mod portal;
mod queue;
mod request;
mod target;
mod unexpected;

pub use atomic::{Atomic, AtomicOp, Datatype, Operand};
pub use counter::CtEvent;
pub use diagnosis::{Counted, DroppedMessage, FailedOperation, UnexpectedMessage, WaitingTriggered};
pub use error::Error;
pub use event::{Effect, Effects, Event, EventKind, FailType};
pub use handle::{CtHandle, EqHandle, MdHandle, MeHandle, OperationHandle};
pub use header::{HEADER_BYTES, Header, HeaderError, HeaderKind};
pub use initiator::{Md, Outgoing, Reply};
pub use interface::{Interface, Limits, Statistics, StatusRegister};
pub use list::{List, Me, Source, User};
pub use options::{AckRequest, Features, MdOptions, MeOptions, PtOptions};
pub use portal::OWN_PT;
pub use request::{AtomicRequest, FetchRequest, GetRequest, PutRequest, Request};
pub use target::{Arrival, Delivery, DropReason, Prospect};
pub use unexpected::SearchOp;
