//! Portals 4 message semantics as a plain state machine: matching, addresses of data, events, counters and triggered operations.
//!
//! This crate models no time, memory or network. A card drives one [`Interface`]: it passes the host's commands and the
//! arriving headers to it, moves the bytes, and reports their arrival. The card decides when the host sees the
//! resulting [`Effects`]. So a simulated card, a test or a fuzzer can drive the same state machine.
//!
//! # Layers, from the bottom
//! - [`MeHandle`] and the other handles: names of resources in bounded slabs. A handle becomes stale when its resource
//!   is freed. All resources of the crate are bounded by [`Limits`].
//! - [`MeOptions`], [`MdOptions`], [`FailType`], [`DropReason`], [`Error`]: the vocabulary of the specification.
//! - [`Atomic`] (`atomic.rs`): operators and types of atomic operations, and their arithmetic on bytes.
//! - [`Header`]: the header of a message, and its encoding.
//! - [`Event`], [`Effects`] and [`Delivery`]: the results of calls.
//! - `state`: the parts of an interface, a file for each subject. They do not refer to the interface.
//! - [`Interface`] (`interface.rs`): the parts, limits and statistics of an interface.
//! - `calls`: the methods of [`Interface`], a file for each subject:
//!   - Event queues and counters. Triggered operations are stored with their counter, and start in the call that changes the counter.
//!   - The initiator: memory descriptors; operations, now ([`Interface::start`]) or triggered ([`Interface::trigger`]); and the SEND, ACK
//!     and REPLY that end an operation.
//!   - The target: portal table with flow control; match entries on priority and overflow lists; unexpected headers and
//!     their search. [`Interface::arrive`] handles the arrival of a message's header, and [`Interface::complete`] that
//!     of its last byte.
//!
//! # One message
//! `start` at the initiator returns an [`Outgoing`]: a header and a range of host memory. At the target, `arrive`
//! searches the lists and returns a [`Delivery`]: an address, and the number of bytes to keep. The match takes effect
//! at once: a use-once entry is gone, and a local offset has moved. So messages match in the order in which their
//! headers arrive, regardless of their payloads. `complete` then returns the events, the acknowledgement, the counts,
//! and the triggered operations that become due, in that order.
//!
//! ```
//! use nicety_portals::*;
//! use nicety_types::NodeId;
//!
//! let (mut alice, mut bob) =
//!     (Interface::new(NodeId(0), Limits::default()), Interface::new(NodeId(1), Limits::default()));
//! let mut effects = Effects::new();
//!
//! // Bob accepts one message of at most 4 KiB with match bits 7, and counts it.
//! let received = bob.ct_alloc()?;
//! let pt = bob.pt_alloc(None, None)?;
//! let options = MeOptions::OP_PUT | MeOptions::USE_ONCE | MeOptions::EVENT_CT_COMM;
//! let me = Me { start: 0x1000, length: 4096, match_bits: 7, ct: Some(received), options, ..Me::default() };
//! bob.me_append(pt, me, List::Priority, &mut effects)?;
//!
//! // Alice sends 64 bytes from her address 0x8000.
//! let md = alice.md_bind(Md { start: 0x8000, length: 64, ..Md::default() })?;
//! let outgoing = alice.start(&PutRequest::new(md, 64, bob.node(), pt, 7).into())?;
//! let wire = outgoing.header.encode();
//! alice.sent(outgoing.operation, FailType::Ok, &mut effects)?;
//!
//! // Bob's card gets the address of the bytes, moves them, and reports their arrival.
//! let Arrival::Matched(delivery) = bob.arrive(&Header::decode(&wire)?, &mut effects) else { panic!() };
//! assert_eq!((delivery.start, delivery.mlength), (0x1000, 64));
//! bob.complete(&delivery, FailType::Ok, &mut effects)?;
//! assert_eq!(effects.as_slice(), [Effect::Count { ct: received, value: CtEvent::success(1) }]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A message with a reply
//! A get, fetch-and-atomic or swap matches in the same way. The card reads at [`Delivery::start`], and sends these bytes behind the header
//! from [`Delivery::reply`]. For an atomic kind it also applies [`Atomic::apply`] to the memory. Then it calls `complete`. At the
//! initiator, `arrive` turns the reply's header into a [`Reply`], with the address of the bytes; [`Interface::complete_reply`] returns the
//! REPLY event. A failed operation sends a reply without bytes, so no initiator waits for ever.
//!
//! [`Limits::features`] lists the card's operations. If a card lacks the feature of an operation, its host cannot start
//! the operation. As a target, such a card drops the operation's message for [`DropReason::Unsupported`], and reports
//! that to the initiator.
//!
//! # Flow control
//! On a portal table entry with [`PtOptions::FLOWCTRL`], a message that finds an exhausted resource disables the entry
//! (`calls/portals.rs`). Its sender, and every later sender, gets [`FailType::PtDisabled`] and may send again. The host gets one
//! [`EventKind::PtDisabled`].
//!
//! A message is admitted only if there is room for all of its events. If the events of a host command do not fit into
//! the queue, the command is refused with [`Error::EqFull`]. So no event of an admitted message is lost. A card that
//! may lack handler contexts uses [`Interface::arrive_if`].
//!
//! # Limits
//! No non-matching interfaces, no scattered memory (`PTL_IOVEC`) and no long double.
//!
//! Quoted titles in this documentation are topics of 'The Portals 4.x Network Programming Interface'.

mod atomic;
mod calls;
mod delivery;
mod diagnosis;
mod effect;
mod error;
mod event;
mod failure;
mod handle;
mod header;
mod interface;
mod named;
mod options;
mod request;
mod state;

pub use atomic::{Atomic, AtomicOp, Datatype, Operand};
pub use calls::waiting::{Counted, UnexpectedMessage, WaitingTriggered};
pub use delivery::{Arrival, Delivery, Prospect, Reply};
pub use diagnosis::{DroppedMessage, FailedOperation};
pub use effect::{Effect, Effects, Outgoing};
pub use error::Error;
pub use event::{CtEvent, Event, EventKind};
pub use failure::{DropReason, FailType};
pub use handle::{CtHandle, EqHandle, MdHandle, MeHandle, OperationHandle};
pub use header::{HEADER_BYTES, Header, HeaderError, HeaderKind};
pub use interface::{Interface, Limits, Statistics, StatusRegister};
pub use options::{AckRequest, Features, List, MdOptions, MeOptions, PtOptions, SearchOp};
pub use request::{AtomicRequest, FetchRequest, GetRequest, PutRequest, Request};
pub use state::descriptor::Md;
pub use state::entry::{Me, Source, User};
pub use state::portal::OWN_PT;
